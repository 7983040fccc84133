# SPDX-License-Identifier: Apache-2.0
"""Long polling: a waiting reader receives each delivery that it asks for, and no other one wakes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import event

from airflow_provider_webdata.airflow_db.errors import ContendedError, StoreUnavailableError
from airflow_provider_webdata.inbox_server.storage import feed as feeds
from airflow_provider_webdata.inbox_server.storage.errors import TooManyReadersError
from airflow_provider_webdata.inbox_server.storage.feed import Feed
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, StoredPage
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from tests.support.postgres import Postgres
from tests.support.waiting import until
from tests.support.warm import Warm, airflow_environ

from .conftest import Database, NewOne

CONN = "webdata_default"
ALL = DeliveryFilter()
LONG = 60.0
"""Seconds of a long poll that ends earlier."""


@pytest.fixture
async def inbox(sqlite_database: Database) -> AsyncIterator[Inbox]:
    inbox = Inbox(sqlite_database.engine())
    yield inbox
    await inbox.close()


def job_ids_of(page: StoredPage) -> list[str | None]:
    return [delivery.job_id for delivery in page.deliveries]


async def readers_wait(feed: Feed, count: int = 1) -> None:
    """Return when exactly `count` readers wait."""
    await until(lambda: len(feed.readers) == count)


async def test_stored_deliveries_are_returned_immediately(inbox: Inbox, new: NewOne) -> None:
    await inbox.writer.submit(new("a"))
    page = await inbox.feed.read(CONN, ALL, wait=LONG)
    assert job_ids_of(page) == ["a"]
    assert await inbox.feed.read(CONN, ALL, page.cursor) == StoredPage([], page.cursor, more=False)
    assert (await inbox.feed.read(CONN, ALL, "end")).cursor == page.cursor


async def test_a_delivery_of_this_process_wakes_without_a_poll(
    database: Database, new: NewOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = database.store()
    # Without polling, only the commit can wake the reader.
    monkeypatch.setattr(feeds, "POLL_INTERVAL", 1e6)
    feed = Feed(store)
    for number in range(3):
        reading = asyncio.create_task(feed.read(CONN, ALL, "end", wait=LONG))
        await readers_wait(feed)
        store.add([new(f"job{number}")])
        feed.publish_soon()
        assert job_ids_of(await reading) == [f"job{number}"]
    feed.close()


async def test_a_delivery_of_another_process_is_noticed(database: Database, new: NewOne) -> None:
    feed = Feed(database.store())
    reading = asyncio.create_task(feed.read(CONN, ALL, "end", wait=LONG))
    await readers_wait(feed)
    # The other store has no feed: on PostgreSQL the row has no position, as if its process had died.
    database.store().add([new("a")])
    assert job_ids_of(await reading) == ["a"]
    feed.close()


async def test_a_wait_without_deliveries(inbox: Inbox) -> None:
    assert await inbox.feed.read(CONN, ALL, wait=0.05) == StoredPage([], 0, more=False)
    assert await inbox.feed.read(CONN, ALL, "end", wait=0.05) == StoredPage([], 0, more=False)


async def test_a_filtered_delivery_does_not_end_the_wait(inbox: Inbox, new: NewOne) -> None:
    wanted = DeliveryFilter(events=("check.completed",), keys=("k",))
    reading = asyncio.create_task(inbox.feed.read(CONN, wanted, wait=LONG))
    await readers_wait(inbox.feed)
    match = {"event": "monitor.check.completed", "name": "check.completed"}
    for one in (
        new("other connection", conn_id="other", key="k", **match),
        new("other event", key="k"),
        new("other key", key="x", **match),
    ):
        await inbox.writer.submit(one)
    await readers_wait(inbox.feed)
    assert not reading.done()
    await inbox.writer.submit(new("wanted", key="k", **match))
    assert job_ids_of(await reading) == ["wanted"]


async def test_the_cursor_of_an_empty_page_advances(inbox: Inbox, new: NewOne) -> None:
    await inbox.writer.submit(new(conn_id="other"))
    end = await asyncio.to_thread(inbox.store.end)
    assert (await inbox.feed.read(CONN, ALL, wait=0.05)).cursor == end > 0


async def test_readers_of_a_connection_are_woken_and_no_others(inbox: Inbox, new: NewOne) -> None:
    conns = [f"conn-{number % 10}" for number in range(50)]
    reading = [asyncio.create_task(inbox.feed.read(conn, ALL, "end", wait=LONG)) for conn in conns]
    await readers_wait(inbox.feed, len(conns))
    await asyncio.gather(*(inbox.writer.submit(new(number, conn_id=f"conn-{number}")) for number in "123"))
    await readers_wait(inbox.feed, 35)
    pages = await asyncio.gather(
        *(task for task, conn in zip(reading, conns, strict=True) if conn[5:] in "123")
    )
    assert len(pages) == 15
    assert all(len(page.deliveries) == 1 for page in pages)
    assert sum(task.done() for task in reading) == 15
    for task in reading:
        task.cancel()


async def test_readers_see_each_delivery_once(database: Database, new: NewOne) -> None:
    """Two processes store deliveries while readers page by long polls of any length."""
    inbox, other = Inbox(database.engine()), Inbox(database.engine())
    stored = [new() for _ in range(100)]
    done = asyncio.Event()

    async def write() -> None:
        for number, one in enumerate(stored):
            await (inbox, other)[number % 2].writer.submit(one)

    async def read(wait: float) -> list[str | None]:
        found: list[str | None] = []
        cursor = 0
        while True:
            all_is_stored = done.is_set()
            try:
                page = await inbox.feed.read(CONN, ALL, cursor, limit=20, wait=wait)
            except ContendedError:
                continue
            assert page.cursor >= cursor
            cursor = page.cursor
            found += job_ids_of(page)
            if all_is_stored and not page.deliveries:
                return found

    reading = [asyncio.create_task(read(wait)) for wait in (0.001, 0.02, 0.3)]
    await write()
    done.set()
    for found in await asyncio.gather(*reading):
        assert sorted(map(str, found)) == sorted(str(one.envelope.job_id) for one in stored)
    await inbox.close()
    await other.close()


async def test_no_polls_without_readers(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "POLL_INTERVAL", 0.01)
    engine = sqlite_database.engine()
    queries: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *call: queries.append(call[2]))
    store = DeliveryStore(engine)
    feed = Feed(store)
    await feed.read(CONN, ALL, wait=0.1)
    while_waiting = len(queries)
    await readers_wait(feed, 0)
    # A poll that had begun may end; of the fifty that would follow in this time there is none.
    await asyncio.sleep(0.5)
    assert len(queries) - while_waiting < while_waiting
    seen = len(queries)
    await asyncio.sleep(0.1)
    assert len(queries) == seen
    feed.close()


async def test_one_statement_polls_for_all_readers(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A delivery that another process stored is noticed after 50 ms in the median.
    assert feeds.POLL_INTERVAL <= 0.08
    monkeypatch.setattr(feeds, "POLL_INTERVAL", 0.01)
    engine = sqlite_database.engine()
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    feed = Feed(DeliveryStore(engine))
    conns = [f"conn-{number}" for number in range(20)]
    reading = [asyncio.create_task(feed.read(conn, ALL, "end", wait=LONG)) for conn in conns]
    await readers_wait(feed, len(conns))
    statements.clear()
    await until(lambda: len(statements) > 10)
    assert len(set(statements)) == 1
    for task in reading:
        task.cancel()
    feed.close()


async def test_the_number_of_waiting_readers_is_limited(
    sqlite_store: DeliveryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MAX_READERS", 3)
    feed = Feed(sqlite_store)
    reading = [asyncio.create_task(feed.read(CONN, ALL, wait=LONG)) for _ in range(3)]
    await readers_wait(feed, 3)
    with pytest.raises(TooManyReadersError):
        await feed.read(CONN, ALL, wait=LONG)
    assert await feed.read(CONN, ALL) == StoredPage([], 0, more=False)
    reading[0].cancel()
    await readers_wait(feed, 2)
    assert await feed.read(CONN, ALL, wait=0.01) == StoredPage([], 0, more=False)
    for task in reading:
        task.cancel()
    feed.close()


async def test_closing_releases_readers(inbox: Inbox, new: NewOne) -> None:
    await inbox.writer.submit(new())
    page = await inbox.feed.read(CONN, ALL)
    reading = [asyncio.create_task(inbox.feed.read(CONN, ALL, page.cursor, wait=LONG)) for _ in range(5)]
    await readers_wait(inbox.feed, 5)
    await inbox.close()
    assert await asyncio.gather(*reading) == [StoredPage([], page.cursor, more=False)] * 5


async def test_a_reader_waits_through_an_outage(
    stoppable_postgres: Postgres, postgres_database: Database, new: NewOne, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Inbox(postgres_database.engine())
    reading = asyncio.create_task(inbox.feed.read(CONN, ALL, wait=LONG))
    await readers_wait(inbox.feed)
    await asyncio.to_thread(stoppable_postgres.stop, crash=True)
    await logged(caplog, "Failed to publish deliveries; retrying: the database cannot be reached")
    with pytest.raises(StoreUnavailableError):
        await inbox.feed.read(CONN, ALL)
    assert not reading.done()
    await asyncio.to_thread(stoppable_postgres.start)
    await logged(caplog, "Publishing deliveries works again")
    assert caplog.text.count("Failed to publish deliveries; retrying") == 1
    await asyncio.to_thread(postgres_database.store().add, [new("after")])
    assert job_ids_of(await reading) == ["after"]
    await inbox.close()


async def logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    caplog.set_level("INFO", "airflow_provider_webdata")
    await until(lambda: words in caplog.text)


HANG = """
import asyncio, sys, threading
from airflow_provider_webdata.inbox_server.storage import feed, writer
from airflow_provider_webdata.inbox_server.storage.errors import StoreUnavailableError

class Hanging:
    def end(self):
        threading.Event().wait()

    def add(self, batch):
        threading.Event().wait()

class New:
    body = b"{}"

async def main():
    feed.READ_TIMEOUT = writer.STORE_TIMEOUT = 0.1
    for call in (feed.Feed(Hanging()).end(), writer.Writer(Hanging()).submit(New())):
        try:
            await call
        except StoreUnavailableError:
            print("gave up")

asyncio.run(main())
"""


def test_a_hanging_database_does_not_keep_the_process(warm: Warm, tmp_path: Path) -> None:
    done = warm.run(["-c", HANG], env=airflow_environ(tmp_path))
    assert done.stdout.count("gave up") == 2
    assert done.returncode == 0
