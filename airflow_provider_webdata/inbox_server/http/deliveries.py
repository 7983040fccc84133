# SPDX-License-Identifier: Apache-2.0
"""Routes that serve deliveries to triggers and sensors, which authenticate with a token."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from airflow_provider_webdata.common.surrogates import escape_halves

from .limits import BusyError
from .parameters import ParameterError, delivery_id_of, query_of, search_of
from .receive import ClientGoneError
from .responses import error_response

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.datastructures import Headers
    from starlette.types import Receive

    from airflow_provider_webdata.inbox_server.storage.feed import Feed
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery, StoredPage

    from .connections import Connections
    from .parameters import DeliveryQuery

MAX_SEARCH = 2**20
"""Maximum bytes of a search's body."""

LONG_POLLS_AT_ONCE = 100
"""Maximum waiting readers per connection: each triggerer has one, and all connections share 500."""

_JSON = "application/json"
_NO_DELIVERY = error_response(404, "the delivery does not exist")


class DeniedError(Exception):
    """The reader does not know the connection's secret."""


class Deliveries:
    """Serves readers. `app` translates the exceptions of every method to error responses."""

    def __init__(self, connections: Connections, feed: Feed) -> None:
        self._connections, self._feed = connections, feed
        self._long_polls: Counter[str] = Counter()

    async def page(self, conn_id: str, query: bytes, headers: Headers, receive: Receive) -> Response:
        """Serve `GET /deliveries/{conn_id}`: the deliveries after a cursor, waiting for one if necessary."""
        await self._authenticate(conn_id, headers)
        asked = query_of(query)
        if asked.wait <= 0:
            return _page_response(await self._read(conn_id, asked))
        if self._long_polls[conn_id] >= LONG_POLLS_AT_ONCE:
            raise BusyError
        self._long_polls[conn_id] += 1
        try:
            return _page_response(await _unless_gone(self._read(conn_id, asked), receive))
        finally:
            self._long_polls[conn_id] -= 1

    async def search(self, conn_id: str, headers: Headers, receive: Receive) -> Response:
        """Serve `POST /deliveries/{conn_id}/search`: the stored deliveries for many keys and ids."""
        await self._authenticate(conn_id, headers)
        return _page_response(await self._read(conn_id, search_of(await _small_body(receive))))

    async def one(self, conn_id: str, delivery_id: str, headers: Headers) -> Response:
        """Serve `GET /deliveries/{conn_id}/{id}`: one delivery with its body of any size."""
        await self._authenticate(conn_id, headers)
        number = delivery_id_of(delivery_id)
        found = None if number is None else await self._feed.get(conn_id, number)
        return _NO_DELIVERY if found is None else Response(_record(found), media_type=_JSON)

    async def _authenticate(self, conn_id: str, headers: Headers) -> None:
        if not (await self._connections.gate(conn_id)).passes_token(headers):
            raise DeniedError

    async def _read(self, conn_id: str, asked: DeliveryQuery) -> StoredPage:
        return await self._feed.read(conn_id, asked.wanted, asked.after, asked.limit, asked.wait)


async def _unless_gone(reading: Coroutine[Any, Any, StoredPage], receive: Receive) -> StoredPage:
    """Wait for a page until the reader disconnects.

    :raises ClientGoneError: the reader disconnected.
    """
    page = asyncio.ensure_future(reading)
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({page, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not page.done():
            raise ClientGoneError
        return page.result()
    finally:
        for task in (page, gone):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _small_body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        if len(body) > MAX_SEARCH:
            raise ParameterError(f"the body must have at most {MAX_SEARCH} bytes")
        if not message.get("more_body", False):
            return bytes(body)


def _page_response(page: StoredPage) -> Response:
    records = b",".join(map(_record, page.deliveries))
    rest: dict[str, Any] = {"cursor": str(page.cursor), "more": page.more}
    content = b'{"deliveries":[' + records + b"]," + json.dumps(rest).encode()[1:]
    return Response(content, media_type=_JSON)


def _record(stored: StoredDelivery) -> bytes:
    """Return one delivery as JSON. Its body, which is already JSON, is verbatim except for lone surrogates."""
    fields = {
        "id": stored.id,
        "position": stored.position,
        "key": stored.key,
        "event": stored.event,
        "job_id": stored.job_id,
        "monitor_id": stored.monitor_id,
        "success": stored.success,
        "received_at": stored.received_at.isoformat(),
        "size": stored.size,
        "replay_of": stored.replay_of,
    }
    record = json.dumps(fields).encode()
    return record if stored.body is None else record[:-1] + b',"body":' + escape_halves(stored.body) + b"}"
