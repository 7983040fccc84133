"""The inbox's ASGI application: mounted on the API server by the plugin, or served alone."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

import anyio

from airflow_provider_webdata.inbox.server.storage.errors import StoreUnavailableError
from airflow_provider_webdata.inbox.wire import is_key

from .answers import Answer, not_now
from .auth import headers_of
from .connections import Connections
from .deliveries import Deliveries
from .openapi import document
from .receive import ClientGoneError, Receiver

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Message, Receive, Scope, Send

    from airflow_provider_webdata.inbox.server.storage.inbox import Inbox

    from .auth import Gate

log = logging.getLogger(__name__)

DEFAULT_MOST_BYTES = 16 * 2**20

LINGER_SECONDS, LINGER_BYTES = 1.0, 2**20
"""How much is taken of a body that nobody wants."""

_MOUNT = "webdata"
_HEALTHY_SECONDS = 1.0
_HEADS = ("inbox", "deliveries", "inbox-health", "inbox-openapi.json")
_NOT_FOUND = Answer.error(404, "there is nothing here")
_GONE = Answer.error(400, "the sender broke off")


class InboxApplication:
    """Answers every request whose path holds `/webdata/inbox` or `/webdata/deliveries`, wherever it is mounted.

    :param inbox: stores and reads.
    :param gate: returns the gate of a connection; blocks.
    :param most_bytes: size of the largest delivery that is accepted.
    :param keep_days: for how many days deliveries are kept; 0 keeps all.
    """

    def __init__(
        self,
        inbox: Inbox,
        gate: Callable[[str], Gate],
        *,
        most_bytes: int = DEFAULT_MOST_BYTES,
        keep_days: float = 0.0,
    ) -> None:
        self.inbox = inbox
        self._keep_days = keep_days
        self._asking: asyncio.Future[Answer] | None = None
        connections = Connections(gate)
        self._receiver = Receiver(connections, inbox.writer, most_bytes)
        self._deliveries = Deliveries(connections, inbox.feed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            # Unanswered, it would be an internal error of the server.
            await send({"type": "websocket.close"})
        if scope["type"] != "http":
            return
        self.inbox.start_pruning(self._keep_days)
        body = _Body(receive)
        try:
            answer = await self._answer(scope, body)
        except ClientGoneError:
            # Nobody reads it, but an application that answers nothing is an error to what stands around it.
            answer = _GONE
        except Exception:
            log.exception("The inbox failed at %s", scope["method"])
            answer = not_now(503, "the inbox failed, see its log")
        unread = not body.is_whole and _has_body(scope)
        await answer.send(send, body.pass_over if unread else None)

    async def aclose(self) -> None:
        """Store what was submitted and send readers away."""
        await self.inbox.close()

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        parts = _parts(scope)
        if parts is None:
            return _NOT_FOUND
        match parts:
            case ["inbox", conn_id]:
                return await self._receive(scope, receive, conn_id, None)
            case ["inbox", conn_id, key]:
                return await self._receive(scope, receive, conn_id, key) if is_key(key) else _NOT_FOUND
            case ["deliveries", conn_id]:
                return _only(scope, "GET") or await self._deliveries.page(
                    conn_id, scope["query_string"], headers_of(scope), receive
                )
            case ["deliveries", conn_id, "search"]:
                return _only(scope, "POST") or await self._deliveries.search(
                    conn_id, headers_of(scope), receive
                )
            case ["deliveries", conn_id, delivery_id]:
                return _only(scope, "GET") or await self._deliveries.one(
                    conn_id, delivery_id, headers_of(scope)
                )
            case ["inbox-health"]:
                return _only(scope, "GET") or await self._health()
            case ["inbox-openapi.json"]:
                return _only(scope, "GET") or self._description
        return _NOT_FOUND

    async def _receive(self, scope: Scope, receive: Receive, conn_id: str, key: str | None) -> Answer:
        return _only(scope, "POST") or await self._receiver.take(conn_id, key, headers_of(scope), receive)

    async def _health(self) -> Answer:
        # Anybody may ask: many who ask at once are one question to the database.
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask_database())
            self._asking.add_done_callback(
                lambda _: asyncio.get_running_loop().call_later(_HEALTHY_SECONDS, self._ask_anew)
            )
        return await asyncio.shield(self._asking)

    def _ask_anew(self) -> None:
        self._asking = None

    async def _ask_database(self) -> Answer:
        try:
            await self.inbox.feed.end()
        except StoreUnavailableError:
            return not_now(503, "the database does not answer")
        return Answer.of(200, {"status": "ok"})

    @cached_property
    def _description(self) -> Answer:
        return Answer(200, json.dumps(document()).encode())


def _parts(scope: Scope) -> list[str] | None:
    """Return what follows the mount in the path, decoded part by part; None where that is no text.

    A connection's id may hold a slash, which only the raw path tells from one that parts.
    """
    raw = scope.get("raw_path") or scope["path"].encode()
    parts = raw.decode("latin-1").split("/")
    # The API server itself may be published under a path that holds the same word.
    starts = (
        here + 1 for here, part in enumerate(parts[:-1]) if part == _MOUNT and parts[here + 1] in _HEADS
    )
    start = next(starts, None)
    if start is None:
        return None
    found = parts[start:]
    try:
        return [unquote(part, errors="strict") for part in found]
    except UnicodeDecodeError:
        return None


class _Body:
    """Passes the request's body on, and knows whether all of it came."""

    __slots__ = ("_receive", "is_whole")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_whole = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.is_whole = True
        return message

    async def pass_over(self) -> None:
        """Take what still comes and throw it away, though not for as long as the sender likes."""
        left = LINGER_BYTES
        with anyio.move_on_after(LINGER_SECONDS):
            while left > 0 and not self.is_whole:
                message = await self()
                if message["type"] == "http.disconnect":
                    return
                left -= len(message.get("body", b""))


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


def _only(scope: Scope, method: str) -> Answer | None:
    if scope["method"] == method:
        return None
    return Answer.error(405, f"only {method} works here", {"allow": method})
