"""Reading deliveries: for triggers and sensors, which show by a token that they know the connection's secret."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

from airflow_provider_webdata.inbox.envelope import NotJSONError, parse
from airflow_provider_webdata.inbox.server.storage.errors import CursorPastEndError, StoreUnavailableError
from airflow_provider_webdata.inbox.server.storage.records import DeliveryFilter

from .answers import Answer, not_now
from .limits import BusyError
from .receive import ClientGoneError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Receive

    from airflow_provider_webdata.inbox.server.storage.feed import Feed
    from airflow_provider_webdata.inbox.server.storage.records import StoredDelivery, StoredPage

    from .auth import Headers
    from .connections import Connections

LONGEST_WAIT = 30.0
"""Seconds that a long poll may last."""

DEFAULT_LIMIT, LARGEST_LIMIT = 200, 1000
MOST_VALUES = 1000
"""Most keys, ids and events in one request."""

LARGEST_SEARCH = 2**20
"""Bytes of the body of a search."""

TEXT_PATTERN = "[^\\u0000-\\u001f\\u007f]{1,255}"
"""Of keys, ids and events, as far as readers may ask for them."""

_TEXT = re.compile(TEXT_PATTERN)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DIGITS = 18
_LIMIT_RULE = f"limit: must be a whole number from 1 to {LARGEST_LIMIT}"
_QUERY_LISTS = {"key": "keys", "job_id": "job_ids", "monitor_id": "monitor_ids", "event": "events"}
_LISTS = (*_QUERY_LISTS.values(),)
_DENIED = Answer.error(
    401,
    "a token of this connection's webhook secret is missing, wrong or over",
    {"www-authenticate": "Bearer"},
)
_NOT_FOUND = Answer.error(404, "there is no such delivery")

Cursor = int | Literal["end"] | None


class _BadRequestError(Exception):
    """A parameter that cannot be used; the message names it and the rule."""


_EXPECTED = (_BadRequestError, CursorPastEndError, BusyError, StoreUnavailableError)


class Deliveries:
    """Answers readers.

    :param connections: the gates.
    :param feed: the stored deliveries.
    """

    def __init__(self, connections: Connections, feed: Feed) -> None:
        self._connections, self._feed = connections, feed

    async def page(self, conn_id: str, query: bytes, headers: Headers, receive: Receive) -> Answer:
        """Answer `GET /deliveries/{conn_id}`: what comes after a cursor, waiting for it if need be."""
        try:
            if not await self._allowed(conn_id, headers):
                return _DENIED
            wanted, after, limit, wait = _of_query(query)
            if wait <= 0:
                return _of_page(await self._feed.read(conn_id, wanted, after, limit))
            return _of_page(await self._poll(conn_id, wanted, after, limit, wait, receive))
        except _EXPECTED as error:
            return _failed(error)

    async def search(self, conn_id: str, headers: Headers, receive: Receive) -> Answer:
        """Answer `POST /deliveries/{conn_id}/search`: what is there already, by many keys and ids at once."""
        try:
            if not await self._allowed(conn_id, headers):
                return _DENIED
            wanted, after, limit = _of_body(await _small_body(receive))
            return _of_page(await self._feed.read(conn_id, wanted, after, limit))
        except _EXPECTED as error:
            return _failed(error)

    async def one(self, conn_id: str, delivery_id: str, headers: Headers) -> Answer:
        """Answer `GET /deliveries/{conn_id}/{id}`: one delivery with its body, however large."""
        try:
            if not await self._allowed(conn_id, headers):
                return _DENIED
            if not (delivery_id.isascii() and delivery_id.isdigit() and len(delivery_id) <= _DIGITS):
                return _NOT_FOUND
            found = await self._feed.get(conn_id, int(delivery_id))
            return _NOT_FOUND if found is None else Answer(200, _record(found))
        except _EXPECTED as error:
            return _failed(error)

    async def _allowed(self, conn_id: str, headers: Headers) -> bool:
        return (await self._connections.gate(conn_id)).passes_token(headers)

    async def _poll(
        self,
        conn_id: str,
        wanted: DeliveryFilter,
        after: Cursor,
        limit: int,
        wait: float,
        receive: Receive,
    ) -> StoredPage:
        reading = asyncio.ensure_future(self._feed.read(conn_id, wanted, after, limit, wait))
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({reading, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                raise ClientGoneError
            return reading.result()
        finally:
            for task in (reading, gone):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task


def _failed(error: Exception) -> Answer:
    if isinstance(error, _BadRequestError):
        return Answer.error(400, str(error))
    if isinstance(error, CursorPastEndError):
        return Answer.of(410, {"error": str(error), "cursor": str(error.end)})
    if isinstance(error, BusyError):
        return not_now(503, "too much at once", error.seconds)
    return not_now(503, "the deliveries cannot be read now")


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
        if len(body) > LARGEST_SEARCH:
            raise _BadRequestError(f"the body must be at most {LARGEST_SEARCH} bytes")
        if not message.get("more_body", False):
            return bytes(body)


def _of_query(query: bytes) -> tuple[DeliveryFilter, Cursor, int, float]:
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_VALUES
        )
    except ValueError:
        raise _BadRequestError(f"the query must be at most {MOST_VALUES} fields, URL-encoded UTF-8") from None
    lists: dict[str, list[str]] = {name: [] for name in _LISTS}
    single: dict[str, str] = {}
    for name, value in pairs:
        if name in _QUERY_LISTS:
            lists[_QUERY_LISTS[name]].append(value)
        elif name not in {"after", "wait", "limit", "received_after"}:
            raise _BadRequestError(f"unknown parameter {name[:50]!r}")
        elif name in single:
            raise _BadRequestError(f"{name}: must be given once")
        else:
            single[name] = value
    after: Cursor = "end" if single.get("after") == "end" else _cursor(single.get("after"))
    return (
        _filter(lists, single.get("received_after")),
        after,
        _limit(single.get("limit")),
        _wait(single.get("wait")),
    )


def _of_body(body: bytes) -> tuple[DeliveryFilter, Cursor, int]:
    try:
        given = parse(body)
    except NotJSONError:
        raise _BadRequestError("the body must be JSON") from None
    if not isinstance(given, dict):
        raise _BadRequestError("the body must be a JSON object")
    if unknown := given.keys() - {*_LISTS, "after", "limit", "received_after"}:
        raise _BadRequestError(f"unknown field {min(unknown)[:50]!r}")
    lists = {name: [] if given.get(name) is None else given[name] for name in _LISTS}
    for name, values in lists.items():
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise _BadRequestError(f"{name}: must be an array of texts")
    return (
        _filter(lists, given.get("received_after")),
        _cursor(given.get("after")),
        _limit(_whole(given.get("limit"))),
    )


def _whole(given: object) -> int | None:
    """Return a number of a JSON body, where 5.0 is as whole as 5."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    if isinstance(given, float) and given.is_integer():
        return int(given)
    raise _BadRequestError(_LIMIT_RULE)


def _filter(lists: Mapping[str, Sequence[str]], received_after: object) -> DeliveryFilter:
    if sum(map(len, lists.values())) > MOST_VALUES:
        raise _BadRequestError(f"at most {MOST_VALUES} keys, ids and events in all")
    for name, values in lists.items():
        if not all(map(_TEXT.fullmatch, values)):
            raise _BadRequestError(
                f"{name}: each must be 1 to 255 characters, none of them a control character"
            )
    return DeliveryFilter(
        **{name: tuple(values) for name, values in lists.items()}, received_after=_moment(received_after)
    )


def _moment(text: object) -> datetime | None:
    if text is None:
        return None
    try:
        if not isinstance(text, str):
            raise ValueError
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    except (ValueError, OverflowError):
        raise _BadRequestError(
            "received_after: must be an ISO 8601 date-time, for example 2026-01-31T08:00:00+00:00"
        ) from None


def _cursor(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) <= _DIGITS:
        return int(given)
    raise _BadRequestError(
        'after: must be a cursor from an earlier answer (or "end", where waiting is possible)'
    )


def _limit(given: str | int | None) -> int:
    if given is None:
        return DEFAULT_LIMIT
    text = str(given)
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
    if not 1 <= number <= LARGEST_LIMIT:
        raise _BadRequestError(_LIMIT_RULE)
    return number


def _wait(given: str | None) -> float:
    seconds = float(given) if given is not None and _NUMBER.fullmatch(given) else -1.0
    if given is None:
        return 0.0
    if not 0 <= seconds <= LONGEST_WAIT:
        raise _BadRequestError(f"wait: must be 0 to {LONGEST_WAIT:g} seconds")
    return seconds


def _of_page(page: StoredPage) -> Answer:
    records = b",".join(map(_record, page.deliveries))
    rest: dict[str, Any] = {"cursor": str(page.cursor), "more": page.more}
    return Answer(200, b'{"deliveries":[' + records + b"]," + json.dumps(rest).encode()[1:])


def _record(stored: StoredDelivery) -> bytes:
    """Return one delivery as JSON; its body goes in as it came, which is JSON already."""
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
    return record if stored.body is None else record[:-1] + b',"body":' + stored.body + b"}"
