# SPDX-License-Identifier: Apache-2.0
"""The writer: each caller receives the outcome of its own delivery after the commit."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event, text

from airflow_provider_webdata.airflow_db.errors import RefusedError, StoreUnavailableError
from airflow_provider_webdata.inbox_server.storage import writer as writers
from airflow_provider_webdata.inbox_server.storage import writer as writing
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.writer import BATCH_DELIVERIES, Writer
from tests.support.postgres import Postgres
from tests.support.waiting import PATIENCE, until, wait_until
from tests.support.warm import Warm, airflow_environ

from .conftest import Database, NewOne, insert_row
from .postgres_proxy import PostgresProxy

Outcome = bool | BaseException
HALF_A_LETTER = "\ud800"  # which no driver can encode


@pytest.fixture
async def writer(sqlite_store: DeliveryStore) -> AsyncIterator[Writer]:
    writer = Writer(sqlite_store)
    yield writer
    await writer.close()


class CommitGate:
    """Holds the transactions of a store just before their commit."""

    def __init__(self, database: Database) -> None:
        engine = database.engine()
        self.store = DeliveryStore(engine)
        self.reached = threading.Event()
        self.commits = 0
        self._open = threading.Event()
        self._open.set()
        event.listen(engine, "commit", self._at_commit)

    def _at_commit(self, _: object) -> None:
        self.reached.set()
        assert self._open.wait(PATIENCE)
        self.commits += 1

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()


@pytest.fixture
def long_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a batch whose transaction waits at the gate as long as it takes."""
    monkeypatch.setattr(writers, "ONE_BY_ONE_SECONDS", PATIENCE)


@pytest.fixture
def gate(sqlite_database: Database, long_transactions: None) -> CommitGate:
    return CommitGate(sqlite_database)


async def begun(calls: list[Awaitable[bool]]) -> list[asyncio.Task[bool]]:
    """Return tasks that have all begun."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    return tasks


async def outcomes(tasks: list[asyncio.Task[bool]]) -> list[Outcome]:
    return await asyncio.gather(*tasks, return_exceptions=True)


async def retrying(writer: Writer, new: NewDelivery) -> bool:
    """Submit until the writer answers in time, as the service does."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(StoreUnavailableError):
            return await writer.submit(new)
    return await writer.submit(new)


async def test_many_share_a_commit_and_none_returns_before_it(
    gate: CommitGate, sqlite_database: Database, new: NewOne
) -> None:
    writer = Writer(gate.store)
    deliveries = [new() for _ in range(100)]
    with gate.closed():
        tasks = await begun([writer.submit(one) for one in [*deliveries, deliveries[0]]])
        await until(gate.reached.is_set)
        assert sqlite_database.job_ids() == []
        assert not any(task.done() for task in tasks)
    assert await outcomes(tasks) == [True] * 100 + [False]
    # The first may have gone alone, while the others arrived.
    assert gate.commits <= 2
    assert sqlite_database.job_ids() == [one.envelope.job_id for one in deliveries]
    await writer.close()


async def test_the_size_of_a_batch_is_limited(gate: CommitGate, new: NewOne) -> None:
    writer = Writer(gate.store)
    count = 3 * BATCH_DELIVERIES
    with gate.closed():
        tasks = await begun([writer.submit(new()) for _ in range(count)])
        await until(gate.reached.is_set)
    assert await outcomes(tasks) == [True] * count
    assert 3 <= gate.commits <= 4
    await writer.close()


async def test_a_full_queue(gate: CommitGate, new: NewOne, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "MAX_WAITING", 5)
    writer = Writer(gate.store)
    with gate.closed():
        first = await begun([writer.submit(new("first"))])
        await until(gate.reached.is_set)
        waiting = await begun([writer.submit(new()) for _ in range(5)])
        with pytest.raises(StoreUnavailableError, match="too many deliveries are waiting"):
            await writer.submit(new("sixth"))
    assert await outcomes([*first, *waiting]) == [True] * 6
    assert await writer.submit(new("seventh")) is True
    await writer.close()


async def test_large_bodies_fill_the_queue(
    gate: CommitGate, new: NewOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "MAX_WAITING_BYTES", 1000)
    writer = Writer(gate.store)
    with gate.closed():
        tasks = await begun([writer.submit(new(body=bytes(5000)))])
        await until(gate.reached.is_set)
        tasks += await begun([writer.submit(new(body=bytes(400))) for _ in range(2)])
        with pytest.raises(StoreUnavailableError, match="too many deliveries are waiting"):
            await writer.submit(new(body=bytes(400)))
    assert await outcomes(tasks) == [True] * 3
    assert await writer.submit(new(body=bytes(400))) is True
    await writer.close()


async def test_a_cancelled_caller_affects_no_other(
    gate: CommitGate, sqlite_database: Database, new: NewOne
) -> None:
    writer = Writer(gate.store)
    deliveries = [new() for _ in range(10)]
    with gate.closed():
        tasks = await begun([writer.submit(one) for one in deliveries])
        await until(gate.reached.is_set)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.sleep(0)
    found = await outcomes(tasks)
    assert found[1::2] == [True] * 5
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in found[::2])
    await writer.close()
    assert sqlite_database.job_ids() == [one.envelope.job_id for one in deliveries]
    assert await outcomes(await begun([writer.submit(new())])) != [True]


async def test_a_rejected_delivery_does_not_fail_its_batch(
    long_transactions: None, database: Database, new: NewOne
) -> None:
    gate = CommitGate(database)
    writer = Writer(gate.store)
    batch = [new("a"), new("bad", event=HALF_A_LETTER), new("c"), new("worse", event=HALF_A_LETTER), new("e")]
    with gate.closed():
        tasks = await begun([writer.submit(new("first"))])
        await until(gate.reached.is_set)
        tasks += await begun([writer.submit(one) for one in batch])
    found = await outcomes(tasks)
    assert [outcome for outcome in found if outcome is True] == [True] * 4
    assert [type(found[n]) for n in (2, 4)] == [RefusedError] * 2
    assert database.job_ids() == ["first", "a", "c", "e"]
    await writer.close()


@pytest.mark.usefixtures("long_transactions", "short_lock_waits")
async def test_a_locked_delivery_does_not_fail_its_batch(postgres_database: Database, new: NewOne) -> None:
    gate = CommitGate(postgres_database)
    writer = Writer(gate.store)
    held = new("held")
    with postgres_database.engine().connect() as other:
        insert_row(other, held)
        with gate.closed():
            tasks = await begun([writer.submit(new("first"))])
            await until(gate.reached.is_set)
            tasks += await begun([writer.submit(one) for one in (new("a"), held, new("b"))])
        found = await outcomes(tasks)
        assert [found[n] for n in (0, 1, 3)] == [True] * 3
        assert isinstance(found[2], StoreUnavailableError)
        other.commit()
    assert await writer.submit(held) is False
    await writer.close()


async def test_two_processes_receive_the_same_in_opposite_order(database: Database, new: NewOne) -> None:
    writers = [Writer(database.store()), Writer(database.store())]
    for _ in range(10):
        batch = [new() for _ in range(10)]
        one, other = await asyncio.gather(
            asyncio.gather(*(writers[0].submit(each) for each in batch)),
            asyncio.gather(*(writers[1].submit(each) for each in reversed(batch))),
        )
        assert [a + b for a, b in zip(one, reversed(other), strict=True)] == [1] * 10
    for writer in writers:
        await writer.close()


async def test_closing_stores_waiting_deliveries(
    gate: CommitGate, sqlite_database: Database, new: NewOne
) -> None:
    writer = Writer(gate.store)
    with gate.closed():
        tasks = await begun([writer.submit(new()) for _ in range(30)])
        await until(gate.reached.is_set)
        closing = asyncio.create_task(writer.close())
        await asyncio.sleep(0)
    await closing
    assert await outcomes(tasks) == [True] * 30
    assert len(sqlite_database.job_ids()) == 30
    with pytest.raises(StoreUnavailableError, match="closing"):
        await writer.submit(new())


async def test_an_unexpected_error(
    sqlite_database: Database, new: NewOne, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(DeliveryStore):
        def add(self, batch: object) -> list[bool]:
            raise ZeroDivisionError

    writer = Writer(Broken(sqlite_database.engine()))
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="internal error"):
            await writer.submit(new())
    assert "Failed to store 1 deliveries" in caplog.text
    await writer.close()


async def test_a_commit_with_an_unknown_outcome(
    postgres: Postgres, postgres_database: Database, new: NewOne
) -> None:
    one = new()
    with PostgresProxy(postgres.port) as proxy:
        url = postgres_database.url.replace(f":{postgres.port}/", f":{proxy.port}/")
        writer = Writer(postgres_database.store(url=url))
        assert await writer.submit(new("before")) is True
        proxy.cut_after(b"COMMIT")
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            await writer.submit(one)
        assert proxy.was_cut.is_set()
        # Here it was committed. The service sends it again, and it is a duplicate.
        assert one.envelope.job_id in postgres_database.job_ids()
        assert await writer.submit(one) is False
        await writer.close()


async def test_a_silent_connection_is_replaced(
    postgres: Postgres, postgres_database: Database, new: NewOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "STORE_TIMEOUT", 1)
    with PostgresProxy(postgres.port) as proxy:
        url = postgres_database.url.replace(f":{postgres.port}/", f":{proxy.port}/")
        writer = Writer(postgres_database.store(url=url))
        await retrying(writer, new("before"))
        proxy.silence()
        with pytest.raises(StoreUnavailableError, match="has not responded for"):
            await writer.submit(new("lost"))
        # Its thread hangs in the silent connection, and the next delivery takes another one.
        await retrying(writer, new("after"))
        assert postgres_database.job_ids() == ["before", "after"]
        await writer.close()


STORE_UNTIL_KILLED = """
import asyncio, sys
from datetime import datetime, timezone
from sqlalchemy import create_engine
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox

async def main():
    inbox = Inbox(create_engine(sys.argv[1]))
    async def submit(worker):
        for number in range(10**9):
            body = b'{"id": "job-%d-%d"}' % (worker, number)
            new = NewDelivery.from_body("webdata_default", None, body, datetime.now(timezone.utc))
            if await inbox.writer.submit(new):
                sys.stdout.write(f"{new.envelope.job_id}\\n")
                sys.stdout.flush()
    await asyncio.gather(*(submit(worker) for worker in range(16)))

asyncio.run(main())
"""


def test_acknowledged_deliveries_survive_a_killed_process(
    database: Database, warm: Warm, tmp_path: Path
) -> None:
    url = database.url + ("?application_name=doomed" if database.kind == "postgresql" else "")
    process = warm.start(
        ["-c", STORE_UNTIL_KILLED, url], env=airflow_environ(tmp_path), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    printed = list(itertools.islice(process.stdout, 500))
    process.kill()
    printed += [line for line in process.stdout if line.endswith("\n")]
    process.wait()
    if database.kind == "postgresql":
        # The server carries out a commit that it received, and only then notices the end of the connection.
        serving = text("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'doomed'")
        with database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            assert wait_until(lambda: connection.execute(serving).scalar() == 0)
    stored = database.job_ids()
    assert {line.strip() for line in printed} <= set(stored)
    assert len(stored) == len(set(stored))
    page = database.store().read("webdata_default", DeliveryFilter(), 0, 1000)
    assert len(page.deliveries) == min(1000, len(stored))


async def test_a_machine_without_threads_refuses_one_batch(
    sqlite_store: DeliveryStore, new: NewOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sender repeats it, and later deliveries are stored."""
    writer = Writer(sqlite_store)

    def start_no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("airflow_provider_webdata.inbox_server.storage.threads._idle", threading.Semaphore(0))
        patched.setattr(threading.Thread, "start", start_no_thread)
        with pytest.raises(StoreUnavailableError, match="internal error"):
            await writer.submit(new("a"))
    assert await writer.submit(new("a"))
    await writer.close()
