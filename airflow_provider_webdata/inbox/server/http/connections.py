"""The secrets of connections, cached: any caller chooses the connection's id in the URL."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from airflow_provider_webdata.inbox.server.storage.errors import StoreUnavailableError

from .auth import Gate
from .limits import BusyError, TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable

CACHE_SECONDS = 30.0
"""How long a gate is cached; a changed secret counts after that."""

MOST_UNKNOWN = 1000
"""Ids without a connection that are cached."""

LOOKUPS_PER_SECOND, LOOKUPS_AT_ONCE = 20.0, 40.0
"""Lookups of ids that are not known. Connections that are known are read again regardless."""

LOOKUP_TIMEOUT = 5.0
"""Seconds for one lookup."""

LONGEST_ID = 250
"""Characters; Airflow has no longer ids of connections."""


class Connections:
    """Caches the gate of each connection.

    :param read: returns the gate of a connection; blocks. Raises `StoreUnavailableError` if it cannot be known.
    :param clock: seconds of any monotonic clock.
    """

    def __init__(self, read: Callable[[str], Gate], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._known: dict[str, tuple[Gate, float]] = {}
        self._unknown: OrderedDict[str, tuple[Gate, float]] = OrderedDict()
        self._lookups: dict[str, asyncio.Task[Gate]] = {}
        self._bucket = TokenBucket(LOOKUPS_PER_SECOND, LOOKUPS_AT_ONCE, clock)
        self._threads: anyio.CapacityLimiter | None = None

    async def gate(self, conn_id: str) -> Gate:
        """Return the gate of a connection, a closed one if there is none.

        :param conn_id: from the URL.
        :raises BusyError: too many unknown ids are being looked up.
        :raises StoreUnavailableError: the connection cannot be read now.
        """
        found = self._known.get(conn_id) or self._unknown.get(conn_id)
        if found is not None and found[1] > self._clock():
            return found[0]
        if not conn_id or len(conn_id) > LONGEST_ID or not conn_id.isprintable():
            return Gate.closed(conn_id)
        lookup = self._lookups.get(conn_id)
        if lookup is None:
            if conn_id not in self._known and not self._bucket.take():
                raise BusyError
            lookup = asyncio.get_running_loop().create_task(self._look_up(conn_id))
            self._lookups[conn_id] = lookup
            lookup.add_done_callback(lambda _: self._lookups.pop(conn_id, None))
        # A caller that goes away must not cancel the lookup that others wait for.
        return await asyncio.shield(lookup)

    async def _look_up(self, conn_id: str) -> Gate:
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(2)
        try:
            with anyio.fail_after(LOOKUP_TIMEOUT):
                gate = await anyio.to_thread.run_sync(
                    self._read, conn_id, abandon_on_cancel=True, limiter=self._threads
                )
        except TimeoutError:
            raise StoreUnavailableError(f"connections could not be read for {LOOKUP_TIMEOUT:g} s") from None
        found = (gate, self._clock() + CACHE_SECONDS)
        if gate.open:
            self._unknown.pop(conn_id, None)
            self._known[conn_id] = found
        else:
            self._known.pop(conn_id, None)
            self._unknown[conn_id] = found
            self._unknown.move_to_end(conn_id)
            if len(self._unknown) > MOST_UNKNOWN:
                self._unknown.popitem(last=False)
        return gate
