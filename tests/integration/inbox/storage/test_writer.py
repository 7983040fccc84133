"""Each caller gets the outcome of its own delivery, after the commit, whatever befalls the others."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Iterator

import pytest
from sqlalchemy import event, insert, text

from airflow_provider_webdata.inbox.server.storage import database as limits
from airflow_provider_webdata.inbox.server.storage import writer as writers
from airflow_provider_webdata.inbox.server.storage.errors import RefusedError, StoreUnavailableError
from airflow_provider_webdata.inbox.server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox.server.storage.store import DeliveryStore, _row_of
from airflow_provider_webdata.inbox.server.storage.tables import delivery
from airflow_provider_webdata.inbox.server.storage.writer import BATCH_DELIVERIES, Writer
from tests.support.postgres import Postgres
from tests.support.waiting import until, wait_until

from .conftest import Database, NewOne
from .postgres_proxy import PostgresProxy

Outcome = bool | BaseException
HALF_A_LETTER = "\ud800"  # which no driver can encode


@pytest.fixture
async def writer(database: Database) -> AsyncIterator[Writer]:
    writer = Writer(database.store())
    yield writer
    await writer.close()


class CommitGate:
    """Lets a store's transactions wait just before their commit."""

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
        assert self._open.wait(30)
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
    """PostgreSQL leaves a transaction that waits at the gate alone."""
    longer = limits._LIMITS.bindparams(lock="2s", statement="60s", idle="60s")
    monkeypatch.setattr(limits, "_LIMITS", longer)
    monkeypatch.setattr(writers, "ONE_BY_ONE_SECONDS", 30.0)


@pytest.fixture
def gate(database: Database, long_transactions: None) -> CommitGate:
    return CommitGate(database)


async def begun(calls: list[Awaitable[bool]]) -> list[asyncio.Task[bool]]:
    """Tasks that have all begun."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    return tasks


async def outcomes(tasks: list[asyncio.Task[bool]]) -> list[Outcome]:
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_after_the_other(writer: Writer, database: Database, new: NewOne) -> None:
    same = new()
    assert [await writer.submit(one) for one in (same, new(), same)] == [True, True, False]
    assert len(database.job_ids()) == 2


async def test_many_share_a_commit_and_none_returns_before_it(
    gate: CommitGate, database: Database, new: NewOne
) -> None:
    writer = Writer(gate.store)
    deliveries = [new() for _ in range(100)]
    with gate.closed():
        tasks = await begun([writer.submit(one) for one in [*deliveries, deliveries[0]]])
        await until(gate.reached.is_set)
        assert database.job_ids() == []
        assert not any(task.done() for task in tasks)
    assert await outcomes(tasks) == [True] * 100 + [False]
    # The first may have gone alone, while the others arrived.
    assert gate.commits <= 2
    assert database.job_ids() == [one.job_id for one in deliveries]
    await writer.close()


async def test_a_delivery_is_in_the_database_once_it_is_acknowledged(
    writer: Writer, database: Database, new: NewOne
) -> None:
    async def submit(one: NewDelivery) -> bool:
        await writer.submit(one)
        return one.job_id in database.job_ids()

    assert all(await asyncio.gather(*(submit(new()) for _ in range(60))))


async def test_a_batch_has_an_end(gate: CommitGate, new: NewOne) -> None:
    writer = Writer(gate.store)
    count = 3 * BATCH_DELIVERIES
    with gate.closed():
        tasks = await begun([writer.submit(new()) for _ in range(count)])
        await until(gate.reached.is_set)
    assert await outcomes(tasks) == [True] * count
    assert 3 <= gate.commits <= 4
    await writer.close()


async def test_a_full_queue_turns_away(gate: CommitGate, new: NewOne) -> None:
    writer = Writer(gate.store, most_waiting=5)
    with gate.closed():
        first = await begun([writer.submit(new("first"))])
        await until(gate.reached.is_set)
        waiting = await begun([writer.submit(new()) for _ in range(5)])
        with pytest.raises(StoreUnavailableError, match="too many deliveries wait"):
            await writer.submit(new("sixth"))
    assert await outcomes([*first, *waiting]) == [True] * 6
    assert await writer.submit(new("seventh")) is True
    await writer.close()


async def test_large_bodies_fill_the_queue_sooner(gate: CommitGate, new: NewOne) -> None:
    writer = Writer(gate.store)
    body = bytes(50 * 2**20)
    with gate.closed():
        tasks = await begun([writer.submit(new())])
        await until(gate.reached.is_set)
        tasks += await begun([writer.submit(new(body=body)) for _ in range(2)])
        with pytest.raises(StoreUnavailableError, match="too many deliveries wait"):
            await writer.submit(new(body=body))
        for task in tasks[1:]:
            task.cancel()
        # What its caller gave up need not be stored for this test.
        writer._waiting.clear()
    assert (await outcomes(tasks))[0] is True
    await writer.close()


async def test_who_goes_away_takes_nobody_along(gate: CommitGate, database: Database, new: NewOne) -> None:
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
    assert database.job_ids() == [one.job_id for one in deliveries]
    assert await outcomes(await begun([writer.submit(new())])) != [True]


async def test_one_that_is_refused_does_not_fail_its_neighbours(
    gate: CommitGate, database: Database, new: NewOne
) -> None:
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


async def test_one_that_another_process_holds_does_not_fail_its_neighbours(
    postgres_database: Database, long_transactions: None, new: NewOne
) -> None:
    gate = CommitGate(postgres_database)
    writer = Writer(gate.store, timeout=30)
    held = new("held")
    with postgres_database.engine().connect() as other:
        other.execute(insert(delivery).values(_row_of(held)))
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


async def test_two_processes_that_get_the_same_in_opposite_order(database: Database, new: NewOne) -> None:
    writers = [Writer(database.store()), Writer(database.store())]
    for _ in range(20):
        batch = [new() for _ in range(10)]
        one, other = await asyncio.gather(
            asyncio.gather(*(writers[0].submit(each) for each in batch)),
            asyncio.gather(*(writers[1].submit(each) for each in reversed(batch))),
        )
        assert [a + b for a, b in zip(one, reversed(other), strict=True)] == [1] * 10
    for writer in writers:
        await writer.close()


async def test_closing_stores_what_waits(gate: CommitGate, database: Database, new: NewOne) -> None:
    writer = Writer(gate.store)
    with gate.closed():
        tasks = await begun([writer.submit(new()) for _ in range(30)])
        await until(gate.reached.is_set)
        closing = asyncio.create_task(writer.close())
        await asyncio.sleep(0)
    await closing
    assert await outcomes(tasks) == [True] * 30
    assert len(database.job_ids()) == 30
    with pytest.raises(StoreUnavailableError, match="closing"):
        await writer.submit(new())


async def test_a_writer_serves_several_event_loops(writer: Writer, new: NewOne) -> None:
    def in_a_loop_of_its_own() -> list[bool]:
        async def submit() -> list[bool]:
            return await asyncio.gather(*(writer.submit(new()) for _ in range(20)))

        return asyncio.run(submit())

    found = await asyncio.gather(*(asyncio.to_thread(in_a_loop_of_its_own) for _ in range(3)))
    assert found == [[True] * 20] * 3


async def test_an_error_of_our_own_is_no_success_and_not_the_end(
    database: Database, new: NewOne, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(DeliveryStore):
        def add(self, batch: object) -> list[bool]:
            raise ZeroDivisionError

    writer = Writer(Broken(database.engine()))
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="the inbox failed"):
            await writer.submit(new())
    assert "failed while it stored 1 deliveries" in caplog.text
    await writer.close()


async def test_a_commit_whose_outcome_is_unknown_is_no_success(
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
        # This time it had been committed. The service sends it again, and it is the duplicate that it is.
        assert one.job_id in postgres_database.job_ids()
        assert await writer.submit(one) is False
        await writer.close()


async def test_a_connection_that_dies_without_a_word(
    postgres: Postgres, postgres_database: Database, new: NewOne
) -> None:
    with PostgresProxy(postgres.port) as proxy:
        url = postgres_database.url.replace(f":{postgres.port}/", f":{proxy.port}/")
        writer = Writer(postgres_database.store(url=url), timeout=6)
        assert await writer.submit(new("before")) is True
        proxy.silence()
        with pytest.raises(StoreUnavailableError, match="has not answered for"):
            await writer.submit(new("lost"))
        await until(lambda: time.monotonic() - writer._thread.busy_since > writer._timeout)
        # The thread hangs in the dead connection. Another one takes over, with another connection.
        assert await writer.submit(new("after")) is True
        assert postgres_database.job_ids() == ["before", "after"]
        await writer.close()


STORE_UNTIL_KILLED = """
import asyncio, sys
from datetime import datetime, timezone
from sqlalchemy import create_engine
from airflow_provider_webdata.inbox.server.storage.records import NewDelivery
from airflow_provider_webdata.inbox.server.storage.inbox import Inbox

async def main():
    inbox = Inbox.open(create_engine(sys.argv[1]))
    async def submit(worker):
        for number in range(10**9):
            body = b'{"id": "job-%d-%d"}' % (worker, number)
            new = NewDelivery.from_body("webdata_default", None, body, datetime.now(timezone.utc))
            if await inbox.writer.submit(new):
                sys.stdout.write(f"{new.job_id}\\n")
                sys.stdout.flush()
    await asyncio.gather(*(submit(worker) for worker in range(16)))

asyncio.run(main())
"""


def test_what_was_acknowledged_survives_a_killed_process(database: Database) -> None:
    url = database.url + ("?application_name=doomed" if database.kind == "postgresql" else "")
    process = subprocess.Popen(
        [sys.executable, "-c", STORE_UNTIL_KILLED, url], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    printed = list(itertools.islice(process.stdout, 500))
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    printed += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    if database.kind == "postgresql":
        # It carries out a commit that it was sent, and only then sees that nobody is there.
        serving = text("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'doomed'")
        with database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            assert wait_until(lambda: connection.execute(serving).scalar() == 0)
    stored = database.job_ids()
    assert {line.strip() for line in printed} <= set(stored)
    assert len(stored) == len(set(stored))
    # And whoever comes next finds the database usable, and all of it in order.
    page = database.store().read("webdata_default", DeliveryFilter(), 0, 1000)
    assert len(page.deliveries) == min(1000, len(stored))
