"""No cursor ever passes a delivery over, whatever order transactions are committed in."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event, insert, select, text
from sqlalchemy.engine import RootTransaction

from airflow_provider_webdata.inbox.server.storage.database import transaction
from airflow_provider_webdata.inbox.server.storage.errors import ContendedError, StoreUnavailableError
from airflow_provider_webdata.inbox.server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox.server.storage.sequencer import assign_positions
from airflow_provider_webdata.inbox.server.storage.store import DeliveryStore, _row_of
from airflow_provider_webdata.inbox.server.storage.tables import delivery

from .conftest import Database, NewOne

CONN = "webdata_default"
ALL = DeliveryFilter()


@dataclass
class Writer:
    """A transaction that is held open: what another process is about to commit."""

    connection: Connection
    transaction: RootTransaction | None = None
    inserted: list[str] = field(default_factory=list)

    def insert(self, new: NewDelivery) -> None:
        if self.transaction is None:
            self.transaction = self.connection.begin()
        self.connection.execute(insert(delivery).values(_row_of(new)))
        self.inserted.append(new.job_id or "")

    def finish(self, commit: bool) -> list[str]:
        if self.transaction is None:
            return []
        (self.transaction.commit if commit else self.transaction.rollback)()
        self.transaction = None
        done, self.inserted = self.inserted, []
        return done if commit else []


@dataclass
class Reader:
    """Pages forward by the cursor it was given last."""

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
    """What a reader would do that trusts generated ids."""

    def read(cursor: int, limit: int) -> tuple[list[tuple[int, str]], int]:
        query = select(delivery.c.id, delivery.c.job_id).where(delivery.c.id > cursor)
        with engine.connect() as connection:
            rows = connection.execute(query.order_by(delivery.c.id).limit(limit)).all()
        return [(row.id, row.job_id) for row in rows], rows[-1].id if rows else cursor

    return Reader(read)


def run(steps: list[tuple[str, int]], writers: list[Writer], readers: list[Reader], new: NewOne) -> list[str]:
    """Run a schedule, finish it, let every reader read to the end, and return what was committed."""
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


def test_a_generated_id_is_no_cursor_but_a_position_is(postgres_database: Database, new: NewOne) -> None:
    engine = postgres_database.engine()
    ours, naive = by_position(postgres_database.store()), by_id(engine)
    committed = run(HELD_OPEN, connections(engine, 2), [ours, naive], new)
    assert [job for _, job in ours.seen] == committed
    assert [job for _, job in naive.seen] == committed[:1], "ids lost nothing: this schedule proves nothing"


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["insert", "insert", "commit", "commit", "rollback", "read", "read"]),
            st.integers(0, 11),
        ),
        max_size=60,
    )
)
def test_every_schedule(postgres_database: Database, new: NewOne, steps: list[tuple[str, int]]) -> None:
    engine = postgres_database.engine(pool_size=8)
    with engine.begin() as connection:
        connection.execute(text("TRUNCATE webdata_inbox_delivery"))
    writers = connections(engine, 4)
    readers = [by_position(postgres_database.store()) for _ in range(2)]
    for reader in readers:
        reader.cursor = DeliveryStore(engine).end()
    try:
        committed = run(steps, writers, readers, new)
    finally:
        for writer in writers:
            writer.connection.close()
        engine.dispose()
    for reader in readers:
        assert sorted(job for _, job in reader.seen) == sorted(committed)
        positions = [position for position, _ in reader.seen]
        assert positions == sorted(set(positions))


def patiently(call: Callable[[], Any]) -> Any:
    """Call again as long as the database is too busy, as everyone does who stores or reads."""
    while True:
        with contextlib.suppress(StoreUnavailableError):
            return call()


def test_writers_readers_and_sequencers_at_once(database: Database, new: NewOne) -> None:
    """Real threads, each with a connection of its own; on PostgreSQL commits come in any order."""
    stores = [database.store() for _ in range(4)]
    readers = [by_position(database.store()) for _ in range(3)]
    writing = threading.Event()
    writing.set()

    def write(store: DeliveryStore) -> list[str]:
        dice, stored = random.Random(id(store)), []
        for _ in range(40):
            batch = [new() for _ in range(dice.randint(1, 8))]
            patiently(lambda batch=batch: store.add(batch))
            stored += [one.job_id or "" for one in batch]
            if dice.random() < 0.3:
                patiently(store.publish)
        return stored

    def read(reader: Reader) -> None:
        while writing.is_set():
            patiently(lambda: reader.step(7))
        while patiently(lambda: reader.step(1000)):
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


def test_a_transaction_that_is_held_open_delays_only_its_own(
    postgres_database: Database, new: NewOne
) -> None:
    store = postgres_database.store()
    (held,) = connections(postgres_database.engine(), 1)
    held.insert(late := new())
    early = [new(), new()]
    # Each would fail after two seconds if it had to wait for a lock.
    assert store.add(early) == [True, True]
    assert store.publish() == 2
    assert [d.job_id for d in store.read(CONN, ALL, 0, 10).deliveries] == [one.job_id for one in early]
    assert store.prune(early[0].received_at) == 0
    cursor = store.end()
    held.finish(commit=True)
    assert [d.job_id for d in store.read(CONN, ALL, cursor, 10).deliveries] == [late.job_id]


def test_whether_it_is_a_duplicate_is_known_when_the_other_has_committed(
    postgres_database: Database, new: NewOne
) -> None:
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


def test_only_one_gives_positions_at_a_time(postgres_database: Database, new: NewOne) -> None:
    """Otherwise two could give the same position, or one that readers have passed already."""
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


def test_a_process_that_stops_does_not_hold_the_order_for_ever(
    postgres_database: Database, new: NewOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit as it is, see `slow_machine`.
    monkeypatch.undo()
    stopped, store = postgres_database.engine(), postgres_database.store()
    store.add([new("a")])
    with contextlib.ExitStack() as stack:
        assert assign_positions(stack.enter_context(transaction(stopped))) == 1
        # It has the counter in its hand and does nothing more: the server ends its session, and those who fail
        # meanwhile get on with their next try.
        for _ in range(10):
            with contextlib.suppress(ContendedError):
                found = store.read(CONN, ALL, 0, 10).deliveries
                break
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            stack.close()
    assert [d.job_id for d in found] == ["a"]
