# SPDX-License-Identifier: Apache-2.0
"""A cache of connections' secrets. Unauthenticated callers choose the connection's id in the URL."""

from __future__ import annotations

import asyncio
import functools
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

import anyio

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.inbox_server.storage.threads import in_thread_within

from .auth import Gate
from .limits import BusyError, TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

log = logger(__name__)

CACHE_SECONDS = 30.0
"""Cache lifetime of a gate, after which a changed secret takes effect."""

MAX_KNOWN = MAX_UNKNOWN = 1000
"""Maximum number of cached ids, each for existing and for missing connections."""

LOOKUPS_PER_SECOND, LOOKUPS_AT_ONCE = 20.0, 40.0
"""Rate limit and burst of lookups of unknown ids without deliveries."""

LOG_LINES_PER_SECOND, LOG_LINES_AT_ONCE = 1 / 60, 5.0

LOOKUP_TIMEOUT = 5.0
"""Timeout of one lookup in seconds."""

MAX_ID = 250
"""Maximum characters of a connection id in Airflow."""

_T = TypeVar("_T")


class Connections:
    """Caches the gate of each connection.

    :param read: returns the gate of a connection; blocking. Raises `StoreUnavailableError` if the lookup fails.
    :param with_deliveries: returns ids of connections with deliveries; blocking. Raises `StoreUnavailableError`.
    :param clock: returns monotonic seconds.
    """

    def __init__(
        self,
        read: Callable[[str], Gate],
        with_deliveries: Callable[[], Iterable[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._read_ids, self._clock = read, with_deliveries, clock
        self._known: OrderedDict[str, tuple[Gate, float]] = OrderedDict()
        self._unknown: OrderedDict[str, tuple[Gate, float]] = OrderedDict()
        self._lookups: dict[str, asyncio.Task[Gate]] = {}
        self._bucket = TokenBucket(LOOKUPS_PER_SECOND, LOOKUPS_AT_ONCE, clock)
        self._log_lines = TokenBucket(LOG_LINES_PER_SECOND, LOG_LINES_AT_ONCE, clock)
        # Lookups of made-up ids must not delay those of existing connections.
        self._threads, self._strangers_threads = anyio.CapacityLimiter(2), anyio.CapacityLimiter(2)
        self._ids: frozenset[str] = frozenset()
        self._ids_until = float("-inf")
        self._ids_lookup: asyncio.Task[None] | None = None

    async def gate(self, conn_id: str) -> Gate:
        """Return the gate of a connection; a closed gate if the connection is missing.

        If a known connection becomes unreadable, its previous gate remains in use.

        :raises BusyError: too many unknown ids are being looked up.
        :raises StoreUnavailableError: the lookup failed.
        """
        found = self._known.get(conn_id) or self._unknown.get(conn_id)
        if found is not None and found[1] > self._clock():
            return found[0]
        if not conn_id or len(conn_id) > MAX_ID or not conn_id.isprintable():
            return Gate.closed(conn_id)
        in_use = conn_id in self._known or await self._has_deliveries(conn_id)
        lookup = self._lookups.get(conn_id)
        if lookup is None:
            if not in_use and not self._bucket.consume():
                raise BusyError
            threads = self._threads if in_use else self._strangers_threads
            lookup = asyncio.get_running_loop().create_task(self._look_up(conn_id, threads))
            self._lookups[conn_id] = lookup
            lookup.add_done_callback(lambda _: self._lookups.pop(conn_id, None))
        # A caller that disconnects must not cancel a lookup that others wait for.
        return await asyncio.shield(lookup)

    async def _has_deliveries(self, conn_id: str) -> bool:
        if self._ids_until <= self._clock():
            if self._ids_lookup is None:
                self._ids_lookup = asyncio.get_running_loop().create_task(self._look_up_ids())
            await asyncio.shield(self._ids_lookup)
        return conn_id in self._ids

    async def _look_up_ids(self) -> None:
        try:
            self._ids = frozenset(await self._in_thread(self._read_ids, self._threads))
            self._ids_until = self._clock() + CACHE_SECONDS
        except StoreUnavailableError as error:
            log.debug("Failed to look up the connections with deliveries: %s", error.brief())
            self._ids_until = self._clock() + LOOKUP_TIMEOUT
        finally:
            self._ids_lookup = None

    async def _look_up(self, conn_id: str, threads: anyio.CapacityLimiter) -> Gate:
        try:
            gate = await self._in_thread(functools.partial(self._read, conn_id), threads)
        except StoreUnavailableError as error:
            if conn_id not in self._known:
                raise
            gate = self._known[conn_id][0]
            if self._log_lines.consume():
                log.warning(
                    "Connection %r is unreadable; its deliveries are checked with its previous secrets: %s",
                    conn_id,
                    error,
                )
        self._remember(conn_id, gate)
        return gate

    def _remember(self, conn_id: str, gate: Gate) -> None:
        here, there = (self._known, self._unknown) if gate.open else (self._unknown, self._known)
        there.pop(conn_id, None)
        here[conn_id] = gate, self._clock() + CACHE_SECONDS
        here.move_to_end(conn_id)
        if len(self._unknown) > MAX_UNKNOWN:
            self._unknown.popitem(last=False)
        if len(self._known) > MAX_KNOWN:
            # With case-insensitive ids, one connection has many spellings: those with deliveries stay cached.
            del self._known[
                next((known for known in self._known if known not in self._ids), next(iter(self._known)))
            ]

    async def _in_thread(self, work: Callable[[], _T], threads: anyio.CapacityLimiter) -> _T:
        try:
            return await in_thread_within(LOOKUP_TIMEOUT, threads, work)
        except TimeoutError:
            raise StoreUnavailableError(
                f"the connection lookup timed out after {LOOKUP_TIMEOUT:g} s"
            ) from None
