"""The feed of published deliveries: readers page forward, and wait at its end."""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING, Literal, TypeVar

import anyio.to_thread

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError

from .publisher import Waiter
from .records import StoredPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from .publisher import Publisher
    from .records import DeliveryFilter, StoredDelivery
    from .store import DeliveryStore

READ_THREADS = 4
"""Maximum concurrent database reads in this process."""
READ_TIMEOUT = 8.0
"""Timeout of one read, in seconds."""

_T = TypeVar("_T")


class Feed:
    """Async reads of the store.

    Every method raises `StoreUnavailableError` if the database is unavailable.
    """

    def __init__(self, store: DeliveryStore, publisher: Publisher) -> None:
        self._store = store
        self.publisher = publisher
        self._threads = anyio.CapacityLimiter(READ_THREADS)

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
        while not (page.deliveries or self.publisher.closed) and (left := deadline - time.monotonic()) > 0:
            page = await self._next_page(conn_id, wanted, page, limit, left)
        return page

    async def end(self) -> int:
        """Return the newest position; see `DeliveryStore.end`."""
        return await self._in_thread(self._store.end)

    async def get(self, conn_id: str, delivery_id: int) -> StoredDelivery | None:
        """Return one delivery of a connection with its body, or None; see `DeliveryStore.get`."""
        return await self._in_thread(functools.partial(self._store.get, conn_id, delivery_id))

    async def _next_page(
        self, conn_id: str, wanted: DeliveryFilter, empty: StoredPage, limit: int, left: float
    ) -> StoredPage:
        waiter = Waiter(conn_id, empty.cursor)
        self.publisher.add(waiter)
        try:
            await asyncio.wait_for(waiter.woken.wait(), left)
        except asyncio.TimeoutError:
            return StoredPage([], waiter.cursor, more=False)
        finally:
            self.publisher.remove(waiter)
        return await self._read(conn_id, wanted, waiter.cursor, limit)

    async def _read(self, conn_id: str, wanted: DeliveryFilter, after: int, limit: int) -> StoredPage:
        return await self._in_thread(functools.partial(self._store.read, conn_id, wanted, after, limit))

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        try:
            with anyio.fail_after(READ_TIMEOUT):
                # A hanging read is abandoned and no longer counts toward the limit.
                return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)
        except TimeoutError:
            raise StoreUnavailableError(f"the database has not responded for {READ_TIMEOUT:g} s") from None
