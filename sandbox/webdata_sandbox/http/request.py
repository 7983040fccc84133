# SPDX-License-Identifier: Apache-2.0
"""HTTP requests, reduced to the parts that the service uses."""

from __future__ import annotations

import json
from copy import copy
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope

MAX_BODY = 10 * 1024 * 1024


class Request:
    """A request with an unread body."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.raw_path: str = scope["raw_path"].decode("latin-1")
        self.query_lists = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        self.query = {name: values[-1] for name, values in self.query_lists.items()}
        self.origin = f"{scope['scheme']}://{self.headers.get('host', 'localhost')}"
        self.accepts_gzip = "gzip" in self.headers.get("accept-encoding", "")

    def relayed(self, origin: str) -> Request:
        """Return the request as a gateway sends it to a service: without headers, and a GET without its query."""
        relayed = copy(self)
        relayed.origin, relayed.headers = origin, {}
        if self.method == "GET":
            relayed.query, relayed.query_lists = {}, {}
        return relayed

    async def read(self) -> bytes | None:
        """Return the body, or None if it is larger than 10 MB."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size <= MAX_BODY:
                parts.append(chunk)
        return b"".join(parts) if size <= MAX_BODY else None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of the body as they arrive."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                break
            yield message.get("body", b"")
            more = message.get("more_body", False)

    async def hang_up(self) -> None:
        """Close the connection before the response ends, like a crashing server.

        ASGI has no message for this. uvicorn's ``receive`` is a method of the object that holds the transport.
        """
        cycle: Any = getattr(self._receive, "__self__", None)
        cycle.transport.close()  # sends the buffered data first
        await self.wait_for_disconnect()

    async def wait_for_disconnect(self) -> None:
        """Wait until the connection is closed."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def parse_body(raw: bytes | None) -> tuple[Any, bool]:
    """Return the parsed JSON body (an empty object if absent), and whether it is valid."""
    if not raw:
        return {}, True
    try:
        body = json.loads(raw, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None, False
    # A text or a number is no body.
    return body, isinstance(body, (dict, list))


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
