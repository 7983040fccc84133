"""Pooled connections for many concurrent requests, without blocking.

Measured with 50 requests in flight: a single httpx pool uses up to twice the processor time of these. With aiohttp
(httpx-aiohttp 0.2) a request uses a fifth less than here, but a connection that is lost while waiting for the answer is
reported as one that was never established, so a billed search would be sent again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.http_library import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_MOST_CONNECTIONS = 100
_KEEPALIVE_SECONDS = 5.0


class AsyncPools:
    """Pools of one connection each, as many as there are requests in flight at once.

    At the begin and end of each request, httpcore's pool looks at each of its connections, and for each idle one at
    all of them again: with 50 connections that costs more than all else a request does.

    :param most: most requests in flight at once; None: 100, as with httpx.
    """

    def __init__(self, options: dict[str, Any], most: int | None) -> None:
        self._turns = asyncio.Semaphore(most or _MOST_CONNECTIONS)
        limits = httpx.Limits(max_connections=1, keepalive_expiry=_KEEPALIVE_SECONDS)
        verify = options["verify"]
        # Made once: it takes longer than all the rest of a client.
        context = httpx.create_ssl_context(verify) if isinstance(verify, bool) else verify
        self._options = {**options, "limits": limits, "verify": context}
        self._clients: set[httpx.AsyncClient] = set()
        self._idle: deque[tuple[float, httpx.AsyncClient]] = deque()
        self.is_closed = False
        """Whether all connections are closed."""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Lend a client for one request, as soon as there may be one more.

        :raises RuntimeError: the pools are closed.
        """
        async with self._turns:
            if self.is_closed:
                raise RuntimeError("the client is closed")
            # The last one that was used: those that are not needed any more go unused.
            client = self._idle.pop()[1] if self._idle else httpx.AsyncClient(**self._options)
            self._clients.add(client)
            try:
                yield client
            finally:
                now = time.monotonic()
                self._idle.append((now, client))
                # While one is closed, other calls may use those that are left.
                while self._idle and self._idle[0][0] < now - _KEEPALIVE_SECONDS:
                    _, unused = self._idle.popleft()
                    self._clients.discard(unused)
                    await unused.aclose()

    async def aclose(self) -> None:
        """Close all connections, those in use as well."""
        self.is_closed = True
        self._idle.clear()
        while self._clients:
            await self._clients.pop().aclose()
