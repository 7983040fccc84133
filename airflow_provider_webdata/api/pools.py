# SPDX-License-Identifier: Apache-2.0
"""Connection pools for many concurrent asynchronous requests.

With 50 concurrent requests, a single httpx pool uses up to twice the CPU time. With aiohttp (httpx-aiohttp 0.2), a
request uses a fifth less CPU time, but a connection that is lost while waiting for the response is reported as never
established, so a billed search would be sent again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.http_clients import async_http_client
from airflow_provider_webdata.common.http_library import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_MAX_CONNECTIONS = 100
_KEEPALIVE_SECONDS = 5.0


class AsyncPools:
    """Single-connection pools, one for each concurrent request.

    At the start and end of each request, httpcore's pool checks all its connections, and for each idle connection all
    of them again. With 50 connections, this takes more time than the rest of a request.

    :param options: of each client; `verify` is a context, because creating one takes longer than the rest of a client.
    :param most: maximum number of concurrent requests; None: 100, the default of httpx.
    """

    def __init__(self, options: dict[str, Any], most: int | None) -> None:
        self._turns = asyncio.Semaphore(most or _MAX_CONNECTIONS)
        limits = httpx.Limits(max_connections=1, keepalive_expiry=_KEEPALIVE_SECONDS)
        self._options = {**options, "limits": limits}
        self._clients: set[httpx.AsyncClient] = set()
        self._idle: deque[tuple[float, httpx.AsyncClient]] = deque()
        self.is_closed = False
        """Whether all connections are closed."""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Yield a client for one request; wait while the maximum is reached.

        :raises RuntimeError: the pools are closed.
        """
        async with self._turns:
            if self.is_closed:
                raise RuntimeError("the client is closed")
            # Reuse the most recently used client, so that surplus clients become idle.
            client = self._idle.pop()[1] if self._idle else async_http_client(**self._options)
            self._clients.add(client)
            try:
                yield client
            finally:
                now = time.monotonic()
                self._idle.append((now, client))
                # While a client is closing, other calls may use the remaining ones.
                while self._idle and self._idle[0][0] < now - _KEEPALIVE_SECONDS:
                    _, unused = self._idle.popleft()
                    self._clients.discard(unused)
                    await unused.aclose()

    async def aclose(self) -> None:
        """Close all connections, including those in use."""
        self.is_closed = True
        self._idle.clear()
        while self._clients:
            await self._clients.pop().aclose()
