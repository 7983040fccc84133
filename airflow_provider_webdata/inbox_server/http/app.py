# SPDX-License-Identifier: Apache-2.0
"""The inbox's ASGI application: mounted on the API server by the plugin, or served standalone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import unquote

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.common.coded_errors import brief, traceback_of
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.inbox.wire import is_key
from airflow_provider_webdata.inbox_server.storage.errors import CursorPastEndError

from .connections import Connections
from .deliveries import Deliveries, DeniedError
from .limits import BusyError
from .parameters import ParameterError
from .receive import ClientGoneError, Receiver
from .responses import error_response, retry_later

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import Message, Receive, Scope, Send

    from airflow_provider_webdata.inbox_server.storage.inbox import Inbox

    from .auth import Gate

log = logger(__name__)

DEFAULT_MOST_BYTES = 16 * 2**20

DRAIN_SECONDS, DRAIN_BYTES = 1.0, 2**20
"""Maximum seconds and bytes for draining a request body after the response is decided."""

_MOUNT = "webdata"
_HEALTH_SECONDS = 1.0
_FIRST_PARTS = ("inbox", "deliveries", "inbox-health")
_NOT_FOUND = error_response(404, "not found")
_CLIENT_GONE = error_response(400, "the sender disconnected")
_DENIED = error_response(
    401,
    "the token of this connection's signing secret (or webhook secret) is missing, invalid, or expired",
    {"www-authenticate": "Bearer"},
)


class InboxApplication:
    """Serves every request whose path contains `/webdata/inbox` or `/webdata/deliveries`, under any mount path.

    :param gate: returns the gate of a connection; blocking.
    :param most_bytes: maximum size of a delivery.
    """

    def __init__(
        self,
        inbox: Inbox,
        gate: Callable[[str], Gate],
        *,
        most_bytes: int = DEFAULT_MOST_BYTES,
    ) -> None:
        self.inbox = inbox
        self._health_check: asyncio.Future[Response] | None = None
        connections = Connections(gate, inbox.store.conn_ids)
        self._receiver = Receiver(connections, inbox.writer, most_bytes, inbox.refusals)
        self._deliveries = Deliveries(connections, inbox.feed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            # Without a reply, the server would report an internal error.
            await send({"type": "websocket.close"})
        if scope["type"] != "http":
            return
        headers, body = Headers(scope=scope), _RequestBody(receive)
        try:
            response = await self._respond(scope, headers, body)
        except ClientGoneError:
            # The client is gone, but the server treats a missing response as an error.
            response = _CLIENT_GONE
        except DeniedError:
            response = _DENIED
        except ParameterError as error:
            response = error_response(400, str(error))
        except CursorPastEndError as error:
            response = JSONResponse({"error": str(error), "cursor": str(error.end)}, 410)
        except BusyError:
            response = retry_later(503, "too many concurrent requests", 1.0)
        except TablesMissingError as error:
            response = retry_later(503, brief(error))
        except StoreUnavailableError:
            response = retry_later(503, "the deliveries are temporarily unavailable")
        except Exception as error:  # noqa: BLE001 - the server continues
            log.error("The inbox failed at %s%s", scope["method"], traceback_of(error))
            response = retry_later(503, "internal error, see the inbox's log")
        await _send(response, send, None if body.is_whole or not _has_body(headers) else body)

    # Routed manually: Starlette's router decodes a path before splitting it, and so would treat a slash in a
    # connection's id as a separator.
    async def _respond(self, scope: Scope, headers: Headers, receive: Receive) -> Response:
        match _path_parts(scope):
            case ["inbox", conn_id]:
                return await self._receive(scope, headers, receive, conn_id, None)
            case ["inbox", conn_id, key] if is_key(key):
                return await self._receive(scope, headers, receive, conn_id, key)
            case ["deliveries", conn_id]:
                return _wrong_method(scope, "GET") or await self._deliveries.page(
                    conn_id, scope["query_string"], headers, receive
                )
            case ["deliveries", conn_id, "search"]:
                return _wrong_method(scope, "POST") or await self._deliveries.search(
                    conn_id, headers, receive
                )
            case ["deliveries", conn_id, delivery_id]:
                return _wrong_method(scope, "GET") or await self._deliveries.one(
                    conn_id, delivery_id, headers
                )
            case ["inbox-health"]:
                return _wrong_method(scope, "GET") or await self._health()
        return _NOT_FOUND

    async def _receive(
        self, scope: Scope, headers: Headers, receive: Receive, conn_id: str, key: str | None
    ) -> Response:
        return _wrong_method(scope, "POST") or await self._receiver.receive(
            conn_id, key, headers, receive, (scope.get("client") or ("an unknown address",))[0]
        )

    async def _health(self) -> Response:
        # Unauthenticated: concurrent requests share one database query.
        if self._health_check is None:
            self._health_check = asyncio.ensure_future(self._check_database())
            self._health_check.add_done_callback(
                lambda _: asyncio.get_running_loop().call_later(_HEALTH_SECONDS, self._forget_health)
            )
        return await asyncio.shield(self._health_check)

    def _forget_health(self) -> None:
        self._health_check = None

    async def _check_database(self) -> Response:
        try:
            await self.inbox.feed.end()
        except TablesMissingError as error:
            return retry_later(503, brief(error))
        except StoreUnavailableError:
            return retry_later(503, "the database does not respond")
        return JSONResponse({"status": "ok"})


def _path_parts(scope: Scope) -> list[str] | None:
    """Return the decoded path segments after the mount path; None if they are not UTF-8.

    A connection's id may contain a slash, which only the raw path distinguishes from a separator.
    """
    raw = scope.get("raw_path") or scope["path"].encode()
    parts = raw.decode("latin-1").split("/")
    # The base path of the API server may contain the same word.
    starts = (
        index + 1
        for index, part in enumerate(parts[:-1])
        if part == _MOUNT and parts[index + 1] in _FIRST_PARTS
    )
    start = next(starts, None)
    if start is None:
        return None
    try:
        return [unquote(part, errors="strict") for part in parts[start:]]
    except UnicodeDecodeError:
        return None


class _RequestBody:
    """Forwards the request body and tracks whether it is complete."""

    __slots__ = ("_receive", "is_whole")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_whole = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.is_whole = True
        return message

    async def drain(self) -> None:
        """Read and discard the rest, within a time limit."""
        left = DRAIN_BYTES
        with anyio.move_on_after(DRAIN_SECONDS):
            while left > 0 and not self.is_whole:
                message = await self()
                if message["type"] == "http.disconnect":
                    return
                left -= len(message.get("body", b""))


async def _send(response: Response, send: Send, unread: _RequestBody | None) -> None:
    """Send a response; if the body is incomplete, drain it and close the connection.

    Closing immediately would reset the connection, and the sender would lose the response.
    """
    # A copy, because responses are reused: Airflow's middleware appends its headers to the list.
    headers = [*response.raw_headers]
    if unread is not None:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": unread is not None})
    if unread is not None:
        await unread.drain()
        await send({"type": "http.response.body", "body": b""})


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _wrong_method(scope: Scope, method: str) -> Response | None:
    if scope["method"] == method:
        return None
    return error_response(405, f"method not allowed, use {method}", {"allow": method})
