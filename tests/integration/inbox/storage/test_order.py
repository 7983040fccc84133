# SPDX-License-Identifier: Apache-2.0
"""The order of the feed: no cursor skips a delivery, in whatever order transactions commit."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event, select, text
from sqlalchemy.engine import RootTransaction

from airflow_provider_webdata.airflow_db.database import transaction
from airflow_provider_webdata.airflow_db.errors import ContendedError, StoreUnavailableError
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox_server.storage.sequencer import assign_positions
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import delivery
from tests.support.waiting import PATIENCE

from .conftest import Database, NewOne, insert_row

CONN = "webdata_default"
ALL = DeliveryFilter()


@dataclass
class Writer:
    """A transaction that another process holds open."""

    connection: Connection
    transaction: RootTransaction | None = None
    inserted: list[str] = field(default_factory=list)

    def insert(self, new: NewDelivery) -> None:
        if self.transaction is None:
            self.transaction = self.connection.begin()
        insert_row(self.connection, new)
        self.inserted.append(new.envelope.job_id or "")

    def finish(self, commit: bool) -> list[str]:
        if self.transaction is None:
            return []
        (self.transaction.commit if commit else self.transaction.rollback)()
        self.transaction = None
        done, self.inserted = self.inserted, []
        return done if commit else []


@dataclass
class Reader:
    """Pages forward by its latest cursor."""

    read: Callable[[int, int], tuple[list[tuple[int, str]], int]]
    cursor: int = 0
    seen: list[tuple[int, str]] = field(default_factory=list)

    def step(self, limit: int) -> int:
        found, self.cursor = self.read(self.cursor, limit)
        self.seen += found
        return len(found)


def by_position(store: DeliveryStore) -> Reader:
    def read(cursor: int, limit: int) -> tuple[list[tuple[int, str]], int]:
        page = store.read(CONN, ALL, cursor, limit)
        return [(d.position or 0, d.job_id or "") for d in page.deliveries], page.cursor

    return Reader(read)


def by_id(engine: Engine) -> Reader:
    """Return a reader that uses generated ids as cursors."""

    def read(cursor: int, limit: int) -> tuple[list[tuple[int, str]], int]:
        query = select(delivery.c.id, delivery.c.job_id).where(delivery.c.id > cursor)
        with engine.connect() as connection:
            rows = connection.execute(query.order_by(delivery.c.id).limit(limit)).all()
        return [(row.id, row.job_id) for row in rows], rows[-1].id if rows else cursor

    return Reader(read)


def run(steps: list[tuple[str, int]], writers: list[Writer], readers: list[Reader], new: NewOne) -> list[str]:
    """Run a schedule, finish it, let every reader read to the end, and return the committed job ids."""
    committed: list[str] = []
    for what, which in steps:
        if what == "insert":
            writers[which % len(writers)].insert(new())
        elif what == "read":
            readers[which % len(readers)].step(1 + which % 3)
        else:
            committed += writers[which % len(writers)].finish(commit=what == "commit")
    for writer in writers:
        committed += writer.finish(commit=True)
    for reader in readers:
        while reader.step(5):
            pass
    return committed


def connections(engine: Engine, count: int) -> list[Writer]:
    return [Writer(engine.connect()) for _ in range(count)]


HELD_OPEN = [("insert", 0), ("insert", 1), ("commit", 1), ("read", 0), ("read", 1), ("commit", 0)]


def test_positions_are_cursors_and_generated_ids_are_not(postgres_database: Database, new: NewOne) -> None:
    engine = postgres_database.engine()
    ours, naive = by_position(postgres_database.store()), by_id(engine)
    committed = run(HELD_OPEN, connections(engine, 2), [ours, naive], new)
    assert [job for _, job in ours.seen] == committed
    assert [job for _, job in naive.seen] == committed[:1], "ids lost nothing: this schedule proves nothing"


@pytest.fixture
def schedule_engine(postgres_database: Database) -> Engine:
    return postgres_database.engine(pool_size=8)


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["insert", "insert", "commit", "commit", "rollback", "read", "read"]),
            st.integers(0, 11),
        ),
        max_size=60,
    )
)
def test_every_schedule(schedule_engine: Engine, new: NewOne, steps: list[tuple[str, int]]) -> None:
    with schedule_engine.begin() as connection:
        connection.execute(text("DELETE FROM webdata_inbox_delivery"))
    store = DeliveryStore(schedule_engine)
    writers = connections(schedule_engine, 4)
    readers = [by_position(store) for _ in range(2)]
    for reader in readers:
        reader.cursor = store.end()
    try:
        committed = run(steps, writers, readers, new)
    finally:
        for writer in writers:
            writer.connection.close()
    for reader in readers:
        assert sorted(job for _, job in reader.seen) == sorted(committed)
        positions = [position for position, _ in reader.seen]
        assert positions == sorted(set(positions))


def retrying(call: Callable[[], Any]) -> Any:
    """Call again as long as the database is too busy, as every caller does."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(StoreUnavailableError):
            return call()
    return call()


def test_concurrent_writers_readers_and_sequencers(database: Database, new: NewOne) -> None:
    """Each thread has a separate connection; on PostgreSQL they commit in any order."""
    stores = [database.store() for _ in range(4)]
    readers = [by_position(database.store()) for _ in range(3)]
    writing = threading.Event()
    writing.set()

    def write(store: DeliveryStore) -> list[str]:
        dice, stored = random.Random(id(store)), []
        for _ in range(15):
            batch = [new() for _ in range(dice.randint(1, 8))]
            retrying(lambda batch=batch: store.add(batch))
            stored += [one.envelope.job_id or "" for one in batch]
            if dice.random() < 0.3:
                retrying(store.publish)
        return stored

    def read(reader: Reader) -> None:
        while writing.is_set():
            retrying(lambda: reader.step(7))
        while retrying(lambda: reader.step(1000)):
            pass

    with ThreadPoolExecutor(16) as pool:
        reading = [pool.submit(read, reader) for reader in readers]
        stored = [job for jobs in pool.map(write, stores) for job in jobs]
        writing.clear()
        for done in reading:
            done.result()
    for reader in readers:
        assert sorted(job for _, job in reader.seen) == sorted(stored)
        positions = [position for position, _ in reader.seen]
        assert positions == sorted(set(positions))


def test_an_open_transaction_delays_only_its_own_deliveries(postgres_database: Database, new: NewOne) -> None:
    store = postgres_database.store()
    (held,) = connections(postgres_database.engine(), 1)
    held.insert(late := new())
    early = [new(), new()]
    # Each would fail after two seconds if it had to wait for a lock.
    assert store.add(early) == [True, True]
    assert store.publish() == 2
    assert [d.job_id for d in store.read(CONN, ALL, 0, 10).deliveries] == [
        one.envelope.job_id for one in early
    ]
    assert store.prune(early[0].received_at) == 0
    cursor = store.end()
    held.finish(commit=True)
    assert [d.job_id for d in store.read(CONN, ALL, cursor, 10).deliveries] == [late.envelope.job_id]


@pytest.mark.usefixtures("short_lock_waits")
def test_a_duplicate_of_an_uncommitted_delivery(postgres_database: Database, new: NewOne) -> None:
    """It is a duplicate only if the other transaction commits."""
    store = postgres_database.store()
    same = new()
    for commit in (False, True):
        (held,) = connections(postgres_database.engine(), 1)
        held.insert(same)
        with pytest.raises(ContendedError, match="locked by another transaction"):
            store.add([new(), same])
        held.finish(commit)
        assert store.add([same]) == [not commit]
        if not commit:
            store.prune(new().received_at)


@pytest.mark.usefixtures("short_lock_waits")
def test_one_process_assigns_positions_at_a_time(postgres_database: Database, new: NewOne) -> None:
    """Two could assign the same position, or one that readers have passed already."""
    engine, other = postgres_database.engine(), postgres_database.store()
    other.add([new("first")])
    other.publish()
    turned_away = []

    @event.listens_for(engine, "before_cursor_execute")
    def _(*call: Any) -> None:
        if call[2].startswith("UPDATE webdata_inbox_delivery"):
            other.add([new("b")])
            with pytest.raises(ContendedError):
                other.publish()
            turned_away.append(True)

    store = DeliveryStore(engine)
    store.add([new("a")])
    assert store.publish() == 1
    assert turned_away
    assert [d.job_id for d in other.read(CONN, ALL, 0, 10).deliveries] == ["first", "a", "b"]


def test_a_stopped_process_releases_the_order(postgres_database: Database, new: NewOne) -> None:
    stopped, store = postgres_database.engine(), postgres_database.store()
    store.add([new("a")])
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(transaction(stopped))
        assert assign_positions(connection) == 1
        # It holds the counter and does nothing more: the server ends its session, here sooner than by default.
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
        found = retrying(lambda: store.read(CONN, ALL, 0, 10)).deliveries
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            stack.close()
    assert [d.job_id for d in found] == ["a"]


def test_limits_of_a_transaction(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    # The default limits, see `slow_machine`.
    monkeypatch.undo()
    queries, expected = {
        "sqlite": (["PRAGMA busy_timeout"], [4000]),
        "postgresql": (
            [
                f"SELECT current_setting('{name}')"
                for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
            ],
            ["2s", "4s", "4s"],
        ),
    }[database.kind]
    with transaction(database.engine()) as connection:
        assert [connection.exec_driver_sql(query).scalar() for query in queries] == expected
