# SPDX-License-Identifier: Apache-2.0
"""The feed of published deliveries: readers page forward, and wait at its end.

A delivery is published once it has a position in the feed. While readers wait, one task publishes what this process
stored immediately, and polls for what other processes stored.
"""

from __future__ import annotations

import asyncio
import functools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

import anyio

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.logs import logger

from .errors import TooManyReadersError
from .records import StoredPage
from .threads import in_thread, in_thread_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from .records import DeliveryFilter, StoredDelivery
    from .store import DeliveryStore

log = logger(__name__)

POLL_INTERVAL = 0.06
"""Poll interval in seconds for deliveries of other processes: one statement for all readers."""
RETRY_INTERVAL = 0.5
"""Seconds until a failure is retried."""
IDLE_INTERVAL = 1.0
"""Seconds after which deliveries are published if no reader waits for them."""
MAX_READERS = 500
"""Maximum number of waiting readers in this process."""
READ_THREADS = 4
"""Maximum concurrent database reads in this process."""
READ_TIMEOUT = 8.0
"""Timeout of one read, in seconds."""

_T = TypeVar("_T")


@dataclass(eq=False)
class FeedReader:
    """A reader that waits for the next delivery of a connection.

    :param cursor: only deliveries of the connection beyond it wake the reader.
    """

    conn_id: str
    cursor: int
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    """Async reads of the store, for one event loop.

    Every method that reads raises `StoreUnavailableError` if the database is unavailable.

    :ivar readers: the waiting readers.
    """

    def __init__(self, store: DeliveryStore) -> None:
        self._store = store
        self._threads = anyio.CapacityLimiter(READ_THREADS)
        self._publishing: asyncio.Task[None] | None = None
        self._due, self._joined = asyncio.Event(), asyncio.Event()
        self._closed = False
        self.readers: set[FeedReader] = set()

    async def read(
        self,
        conn_id: str,
        wanted: DeliveryFilter,
        after: int | Literal["end"] | None = None,
        limit: int = 200,
        wait: float = 0.0,
    ) -> StoredPage:
        """Return published deliveries in the order of their positions; see `DeliveryStore.read`.

        :param after: cursor; None for the oldest stored delivery, "end" for new deliveries only.
        :param limit: maximum number of deliveries, 1 to 1000.
        :return: the deliveries, immediately if there are any; otherwise, after `wait`, an empty page with an advanced
            cursor.
        :raises CursorPastEndError: no delivery was ever published at or beyond the cursor.
        :raises TooManyReadersError: the read would wait, but the limit of waiting readers is reached.
        """
        deadline = time.monotonic() + wait
        if after == "end":
            page = StoredPage([], await self.end(), more=False)
        else:
            page = await self._read(conn_id, wanted, after or 0, limit)
        while not (page.deliveries or self._closed) and (left := deadline - time.monotonic()) > 0:
            reader = await self._wait_for_news(conn_id, page.cursor, left)
            if not reader.woken.is_set():
                return StoredPage([], reader.cursor, more=False)
            page = await self._read(conn_id, wanted, reader.cursor, limit)
        return page

    async def end(self) -> int:
        """Return the newest position; see `DeliveryStore.end`."""
        return await self._in_thread(self._store.end)

    async def get(self, conn_id: str, delivery_id: int) -> StoredDelivery | None:
        """Return one delivery of a connection with its body, or None; see `DeliveryStore.get`."""
        return await self._in_thread(functools.partial(self._store.get, conn_id, delivery_id))

    def publish_soon(self) -> None:
        """Publish recent commits in the background."""
        if self._publishing is None and not self._closed:
            self._publishing = asyncio.create_task(self._keep_published(), name="webdata-inbox-feed")
        self._due.set()

    def close(self) -> None:
        """Stop publishing and wake every reader; later reads do not wait."""
        self._closed = True
        if self._publishing is not None:
            self._publishing.cancel()
        for reader in self.readers:
            reader.woken.set()

    async def _wait_for_news(self, conn_id: str, cursor: int, seconds: float) -> FeedReader:
        if len(self.readers) >= MAX_READERS:
            raise TooManyReadersError("too many readers are waiting for deliveries")
        reader = FeedReader(conn_id, cursor)
        self.readers.add(reader)
        self._joined.set()
        self.publish_soon()
        try:
            with anyio.move_on_after(seconds):
                await reader.woken.wait()
        finally:
            self.readers.remove(reader)
        return reader

    async def _keep_published(self) -> None:
        failing = False
        while True:
            if self.readers:
                with anyio.move_on_after(POLL_INTERVAL):
                    await self._due.wait()
            else:
                await self._due.wait()
                # One transaction can publish many commits.
                with anyio.move_on_after(IDLE_INTERVAL):
                    await self._joined.wait()
            self._due.clear()
            self._joined.clear()
            failure = await self._publish_safely()
            if failure:
                if not failing:
                    log.warning("Failed to publish deliveries; retrying: %s", failure)
                await asyncio.sleep(RETRY_INTERVAL)
                self._due.set()
            elif failing:
                log.info("Publishing deliveries works again")
            failing = bool(failure)

    async def _publish_safely(self) -> str:
        """Publish and wake readers; return the error, or an empty string."""
        try:
            await self._publish()
        except StoreUnavailableError as error:
            return error.brief()
        except Exception as error:
            # The task must continue, because readers wait for it.
            log.debug("Failed to publish deliveries", exc_info=True)
            return type(error).__name__
        return ""

    async def _publish(self) -> None:
        if not self.readers:
            await in_thread(self._store.publish)
            return
        since = min(reader.cursor for reader in self.readers)
        conn_ids = {reader.conn_id for reader in self.readers}
        end, newest = await in_thread(functools.partial(self._store.changes, since, conn_ids))
        for reader in self.readers:
            if reader.cursor < since or reader.conn_id not in conn_ids:
                # It joined during the query, which does not cover it.
                self._due.set()
            elif newest.get(reader.conn_id, 0) > reader.cursor:
                reader.woken.set()
            else:
                reader.cursor = max(reader.cursor, end)

    async def _read(self, conn_id: str, wanted: DeliveryFilter, after: int, limit: int) -> StoredPage:
        return await self._in_thread(functools.partial(self._store.read, conn_id, wanted, after, limit))

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        try:
            return await in_thread_within(READ_TIMEOUT, self._threads, work)
        except TimeoutError:
            raise StoreUnavailableError(f"the database has not responded for {READ_TIMEOUT:g} s") from None
