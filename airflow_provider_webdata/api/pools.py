"""Pooled connections for many requests at once, without blocking.

One pool of httpx's was tried: with 50 requests in flight each takes twice the processor time that it takes here.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_POOL_SIZE = 8


class AsyncPools:
    """One httpx client, or several small ones where many requests may be in flight.

    At the begin and end of each request, httpcore's pool looks at each of its connections, and for each idle one at
    all of them again: with 50 connections that costs more than all else a request does.

    :param options: arguments of `httpx.AsyncClient`.
    :param most: most requests in flight at once; None: httpx's own limits.
    """

    def __init__(self, options: dict[str, Any], most: int | None) -> None:
        self._options = options
        self._turns: asyncio.Semaphore | None = None
        if most is not None and most > _POOL_SIZE:
            self._turns = asyncio.Semaphore(most)
            limits = httpx.Limits(max_connections=_POOL_SIZE, max_keepalive_connections=_POOL_SIZE)
            verify = options["verify"]
            # Made once: it takes longer than all the rest of a client.
            context = httpx.create_ssl_context(verify) if isinstance(verify, bool) else verify
            self._options = {**options, "limits": limits, "verify": context}
        self._clients = [httpx.AsyncClient(**self._options)]
        self._in_use = [0]

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Lend a client for one request, as soon as there may be one more."""
        if self._turns is None:
            yield self._clients[0]
            return
        async with self._turns:
            number = self._free()
            self._in_use[number] += 1
            try:
                yield self._clients[number]
            finally:
                self._in_use[number] -= 1

    def _free(self) -> int:
        for number, in_use in enumerate(self._in_use):
            if in_use < _POOL_SIZE:
                return number
        self._clients.append(httpx.AsyncClient(**self._options))
        self._in_use.append(0)
        return len(self._clients) - 1

    @property
    def is_closed(self) -> bool:
        """Whether all connections are closed."""
        return all(client.is_closed for client in self._clients)

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.aclose()
