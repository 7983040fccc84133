"""How the sandbox treats every call of the service: faults, authentication, limits, parsing, and the answer's form.

Starlette was tried: its request saves no line here, and its gzip takes the length off an answer that is to be cut.
"""

from __future__ import annotations

import asyncio
import gzip
import hmac
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from .limits import WINDOW, too_many
from .uploads import Upload
from .uploads import receive as receive_form
from .wire import Call, Reply, ServiceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from .faults import Fault
    from .service import Sandbox

log = logging.getLogger(__name__)

MAX_BODY = 10 * 1024 * 1024
GZIP_FROM = 1000
CHUNK = 64 * 1024
PROXY_PAGE = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>Bad Gateway</body></html>\r\n"
GARBAGE = b"<<< this is not JSON >>>"
DEPRECATION = {
    "Deprecation": "true",
    "Link": '</v3>; rel="successor-version"',
    "Warning": '299 - "This endpoint is deprecated"',
}

Handler = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True)
class Endpoint:
    """One operation: method, path, what answers it, its rate class, whether it can do without a key, and whether
    it takes a form with a file instead of JSON.
    """

    method: str
    path: re.Pattern[str]
    handler: Handler
    rate_class: str
    keyless: bool = False
    upload: bool = False


class _DroppedError(Exception):
    """The connection is to be closed without an answer."""


class Conduct:
    """The ASGI application of all calls under ``/v2``."""

    def __init__(self, sandbox: Sandbox, endpoints: list[Endpoint]) -> None:
        self._sandbox = sandbox
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        started = time.perf_counter()
        request = _Request(scope, receive)
        raw, body, readable = await self._read(request)
        try:
            await self._serve(request, raw, body, readable, started, receive, send)
        finally:
            if isinstance(body, Upload):
                await body.close()

    async def _read(self, request: _Request) -> tuple[bytes | None, Any, bool]:
        """Return the raw body, what it says, and whether it could be read."""
        for endpoint in self._endpoints:
            if (
                endpoint.upload
                and endpoint.method == request.method
                and endpoint.path.fullmatch(request.path)
            ):
                return b"", await receive_form(request.headers, request.chunks()), True
        raw = await request.read()
        return raw, *_parsed(raw)

    async def _serve(
        self,
        request: _Request,
        raw: bytes | None,
        body: Any,
        readable: bool,
        started: float,
        receive: Receive,
        send: Send,
    ) -> None:
        noted = body.noted() if isinstance(body, Upload) else body if raw else None
        record = self._sandbox.recorder.add(
            request.method, request.path, request.query, request.headers, noted
        )
        faults = self._sandbox.faults.take(request.method, request.path)
        try:
            reply = await self._reply(request, raw, body, readable, faults)
        except _DroppedError:
            self._note(request, record["status"], started)
            await _hang_up(receive)
            return
        record["status"] = reply.status
        self._dress(reply)
        # Before the answer goes out: whoever has it finds the line.
        self._note(request, reply.status, started)
        try:
            await self._send(reply, request, send, cut=any(fault.kind == "truncate" for fault in faults))
        except _DroppedError:
            await _hang_up(receive)

    @staticmethod
    def _note(request: _Request, status: int | None, started: float) -> None:
        # Neither the headers nor the body: they may hold secrets.
        spent = (time.perf_counter() - started) * 1000
        log.info("%s %s %s %.0f ms", request.method, request.path, status, spent)

    async def _reply(
        self, request: _Request, raw: bytes | None, body: Any, readable: bool, faults: list[Fault]
    ) -> Reply:
        broken = None
        for fault in faults:
            if fault.kind == "delay":
                await asyncio.sleep(fault.seconds)
            else:
                broken = fault
        if broken is not None:
            early = self._before_work(broken)
            if early is not None:
                return early
        early = self._odd_answer()
        if early is not None:
            return early
        try:
            reply = await self._work(request, raw, body, readable)
        except ServiceError as error:
            reply = error.reply()
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            reply = Reply(
                500, {"success": False, "code": "UNKNOWN_ERROR", "error": "An unexpected error occurred."}
            )
        if broken is not None and broken.kind == "drop_after_work":
            raise _DroppedError
        if broken is not None and broken.kind == "garbage":
            return Reply(200, raw=GARBAGE, content_type="application/json")
        return reply

    def _before_work(self, fault: Fault) -> Reply | None:
        if fault.kind == "drop":
            raise _DroppedError
        if fault.kind == "html":
            return Reply(502, raw=PROXY_PAGE, content_type="text/html")
        if fault.kind == "rate_limit":
            wait = fault.seconds or WINDOW
            return too_many(self._sandbox.quirks, 11, wait, self._sandbox.clock.now() + wait).reply()
        if fault.kind == "status":
            body = fault.body
            if body is None and fault.status >= 400:
                body = {"success": False, "error": f"Fault {fault.status}"}
            if isinstance(body, str):
                return Reply(
                    fault.status, headers=dict(fault.headers), raw=body.encode(), content_type="text/plain"
                )
            return Reply(fault.status, body, dict(fault.headers))
        return None

    def _odd_answer(self) -> Reply | None:
        if self._sandbox.quirks.take("gateway-html"):
            return Reply(502, raw=PROXY_PAGE, content_type="text/html")
        if self._sandbox.quirks.take("ok-but-failed"):
            text = "DNS resolution failed for hostname: nowhere.example"
            return Reply(200, {"success": False, "code": "SCRAPE_DNS_RESOLUTION_ERROR", "error": text})
        return None

    async def _work(self, request: _Request, raw: bytes | None, body: Any, readable: bool) -> Reply:
        endpoint, params = self._route(request)
        self._authenticate(request, endpoint)
        self._sandbox.limits.count(endpoint.rate_class)
        if raw is None:
            raise ServiceError(413, "Request body too large")
        if not readable:
            raise ServiceError(400, "Bad request, malformed JSON", code="BAD_REQUEST_INVALID_JSON")
        if self._sandbox.latency_ms and endpoint.path.pattern != "/v2/search":
            await asyncio.sleep(self._sandbox.latency_ms / 1000)  # a search counts it against its own timeout
        self._sandbox.media.origin = request.origin
        call = Call(
            request.method, request.path, params, request.query, body, request.origin, request.headers
        )
        return await endpoint.handler(call)

    def _route(self, request: _Request) -> tuple[Endpoint, dict[str, str]]:
        for endpoint in self._endpoints:
            match = endpoint.path.fullmatch(request.path)
            if match and endpoint.method == request.method:
                params = match.groupdict()
                if any(not _UUID.fullmatch(value) for value in params.values()):
                    raise ServiceError(400, "Invalid job ID format. Job ID must be a valid UUID.")
                return endpoint, params
        raise ServiceError(404, "Not Found")

    def _authenticate(self, request: _Request, endpoint: Endpoint) -> None:
        given = request.headers.get("authorization")
        if given is None and endpoint.keyless and self._sandbox.quirks.on("keyless-limit"):
            if not self._sandbox.quirks.take("keyless-limit"):
                extra = {"reason": "keyless_requests", "retry_after_seconds": 86_400}
                raise ServiceError(429, "The daily limit of calls without a key is reached.", extra=extra)
            return
        scheme, _, key = (given or "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise ServiceError(401, "Unauthorized: Token missing")
        if not hmac.compare_digest(key.strip().encode(), self._sandbox.config.api_key.encode()):
            raise ServiceError(401, "Unauthorized: Invalid token")

    def _dress(self, reply: Reply) -> None:
        """Apply the quirks that concern every answer."""
        quirks, body = self._sandbox.quirks, reply.body
        if body is None:
            return
        failed = reply.status >= 400
        if failed and quirks.on("unknown-code"):
            body["code"] = "A_CODE_FROM_THE_FUTURE"
        if quirks.on("error-without-success" if failed else "no-success"):
            body.pop("success", None)
        if quirks.on("unknown-fields"):
            reply.body = _with_strangers(body)
        if quirks.on("deprecation") and not failed:
            reply.headers.update(DEPRECATION)
            body["warnings"] = ["This endpoint is deprecated."]
            body["replacement"] = "/v3"

    async def _send(self, reply: Reply, request: _Request, send: Send, *, cut: bool) -> None:
        content = _written(reply.body) if reply.raw is None else reply.raw
        headers = {"content-type": reply.content_type, **{k.lower(): v for k, v in reply.headers.items()}}
        if self._sandbox.compress and len(content) >= GZIP_FROM and request.accepts_gzip:
            content = await asyncio.to_thread(gzip.compress, content, 1)
            headers["content-encoding"] = "gzip"
            headers["vary"] = "Accept-Encoding"
        chunked = self._sandbox.quirks.on("chunked")
        if not chunked:
            headers["content-length"] = str(len(content))
        lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": lines})
        if cut:
            await send(
                {"type": "http.response.body", "body": content[: len(content) // 2], "more_body": True}
            )
            raise _DroppedError
        if chunked:
            for start in range(0, len(content), CHUNK):
                await send(
                    {"type": "http.response.body", "body": content[start : start + CHUNK], "more_body": True}
                )
            content = b""
        await send({"type": "http.response.body", "body": content})


_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


class _Request:
    """The parts of an HTTP request that matter here."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        self.origin = f"{scope['scheme']}://{self.headers.get('host', 'localhost')}"
        self.accepts_gzip = "gzip" in self.headers.get("accept-encoding", "")

    async def read(self) -> bytes | None:
        """Return the body; None when it is larger than the service takes."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size <= MAX_BODY:
                parts.append(chunk)
        return b"".join(parts) if size <= MAX_BODY else None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                break
            yield message.get("body", b"")
            more = message.get("more_body", False)


def _parsed(raw: bytes | None) -> tuple[Any, bool]:
    """Return the body as JSON (an absent one as an empty object), and whether it could be read."""
    if not raw:
        return {}, True
    try:
        return json.loads(raw, parse_constant=_no_constant), True
    except (ValueError, RecursionError):
        return None, False


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _written(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, echoed: JSON can only hold it escaped
        return json.dumps(body).encode()


def _with_strangers(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            **{name: _with_strangers(item) for name, item in value.items()},
            "fieldFromTheFuture": {"x": [1]},
        }
    if isinstance(value, list):
        return [_with_strangers(item) for item in value]
    return value


async def _hang_up(receive: Receive) -> None:
    """Close the connection under the answer, as a crashed server would.

    ASGI has no such message; uvicorn's ``receive`` belongs to the object that holds the transport.
    """
    cycle: Any = getattr(receive, "__self__", None)
    cycle.transport.close()  # what was sent so far still goes out
    while (await receive())["type"] != "http.disconnect":
        pass
