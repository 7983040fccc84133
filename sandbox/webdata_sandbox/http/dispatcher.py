# SPDX-License-Identifier: Apache-2.0
"""The request pipeline: faults, authentication, rate limits, parsing, the operation, and the response.

It does not use Starlette's ``Request`` and ``GZipMiddleware``: they save no code, and the middleware removes the
Content-Length from a response to truncate.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from webdata_sandbox.operations.call import Call, Reply, Upload
from webdata_sandbox.operations.validation import valid
from webdata_sandbox.reference.errors import ServerEndError, ServiceError
from webdata_sandbox.reference.profiles import NO_OBJECT, UNREADABLE

from .rate_limits import WINDOW, rate_limit_error
from .request import Request, parse_body
from .response import apply_quirks, send_reply
from .uploads import receive_raw, receive_upload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Receive, Scope, Send

    from webdata_sandbox.engine.media import Media
    from webdata_sandbox.operations.activity import Activity
    from webdata_sandbox.operations.endpoint import Endpoint
    from webdata_sandbox.reference.profiles import Failure, Profile
    from webdata_sandbox.state.core import Core
    from webdata_sandbox.state.faults import Fault

    from .rate_limits import RateLimits
    from .recorder import Recorder

log = logging.getLogger(__name__)

PROXY_PAGE = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>Bad Gateway</body></html>\r\n"
UPSTREAM = "https://upstream.invalid"
"""Origin of links in responses that a gateway passes on."""
GARBAGE = b"<<< this is not JSON >>>"
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


class _DroppedError(Exception):
    """Close the connection without a response."""


class Dispatcher:
    """The ASGI application of the service, under ``/v2``.

    :param api_key: the only accepted API key.
    :param endpoints: the first match handles a request.
    """

    def __init__(
        self,
        core: Core,
        endpoints: Sequence[Endpoint],
        *,
        api_key: str,
        rate_limits: RateLimits,
        recorder: Recorder,
        activity: Activity,
        media: Media,
    ) -> None:
        self._core, self._endpoints, self._api_key = core, endpoints, api_key
        self._rate_limits, self._recorder = rate_limits, recorder
        self._activity, self._media = activity, media

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        started = time.perf_counter()
        request = Request(scope, receive)
        raw, body, readable = await self._read(request)
        try:
            await self._serve(request, raw, body, readable, started, send)
        finally:
            if isinstance(body, Upload):
                body.close()

    async def _read(self, request: Request) -> tuple[bytes | None, Any, bool]:
        """Return the raw body, the parsed body, and whether parsing succeeded."""
        endpoint, _ = self._match(request)
        is_json = request.headers.get("content-type", "").startswith("application/json")
        if endpoint is not None and endpoint.raw:
            return b"", await receive_raw(request.headers, request.chunks()), True
        if endpoint is not None and endpoint.upload and not is_json:
            return b"", await receive_upload(request.headers, request.chunks()), True
        raw = await request.read()
        # The service ignores a body of another type.
        ignored = "content-type" in request.headers and not is_json
        return raw, *parse_body(b"" if ignored and raw is not None else raw)

    async def _serve(
        self,
        request: Request,
        raw: bytes | None,
        body: Any,
        readable: bool,
        started: float,
        send: Send,
    ) -> None:
        recorded = body.to_record() if isinstance(body, Upload) else body if raw else None
        record = self._recorder.add(request.method, request.path, request.query, request.headers, recorded)
        if self._core.ended:
            await request.hang_up()
            return
        faults = self._core.faults.consume(request.method, request.path)
        try:
            reply = await self._reply(request, raw, body, readable, faults)
        except _DroppedError:
            _log(request, record["status"], started)
            await request.hang_up()
            return
        record["status"] = reply.status
        apply_quirks(reply, self._core.quirks)
        if self._profile.relays:
            reply.headers.clear()
        # Log first: the line must exist when the client receives the response.
        _log(request, reply.status, started)
        compress = self._core.settings.compress and request.accepts_gzip
        truncated = any(fault.kind == "truncate" for fault in faults)
        await send_reply(
            reply, send, compress=compress, chunked=self._core.quirks.on("chunked"), truncated=truncated
        )
        if truncated:
            await request.hang_up()

    async def _reply(
        self, request: Request, raw: bytes | None, body: Any, readable: bool, faults: list[Fault]
    ) -> Reply:
        broken = None
        for fault in faults:
            if fault.kind == "delay":
                await asyncio.sleep(fault.seconds)
            else:
                broken = fault
        if broken is not None:
            if broken.kind == "hang":
                await request.wait_for_disconnect()
                raise _DroppedError
            early = self._fault_reply(broken)
            if early is not None:
                return early
        early = self._quirk_reply()
        if early is not None:
            return early
        try:
            reply = await self._handle(request, raw, body, readable)
        except ServiceError as error:
            reply = Reply(error.status, error.body(), error.headers)
        except ServerEndError:
            self._core.end()
            raise _DroppedError from None
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            reply = Reply(
                500, {"success": False, "code": "UNKNOWN_ERROR", "error": "An unexpected error occurred."}
            )
        if reply.body is not None:
            reply.body.update(self._profile.notes(request.path))
        if broken is not None and broken.kind == "drop_after_work":
            raise _DroppedError
        if broken is not None and broken.kind == "garbage":
            return Reply(200, raw=GARBAGE, content_type="application/json")
        return reply

    def _fault_reply(self, fault: Fault) -> Reply | None:
        if fault.kind == "drop":
            raise _DroppedError
        if fault.kind == "html":
            return Reply(502, raw=PROXY_PAGE, content_type="text/html")
        if fault.kind == "rate_limit":
            wait = fault.seconds or WINDOW
            error = rate_limit_error(self._core.quirks, 11, wait, self._core.clock.now() + wait)
            return Reply(error.status, error.body(), error.headers)
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

    def _quirk_reply(self) -> Reply | None:
        if self._core.quirks.consume("gateway-html"):
            return Reply(502, raw=PROXY_PAGE, content_type="text/html")
        if self._core.quirks.consume("ok-but-failed"):
            text = "DNS resolution failed for hostname: nowhere.example"
            return Reply(200, {"success": False, "code": "SCRAPE_DNS_RESOLUTION_ERROR", "error": text})
        return None

    async def _handle(self, request: Request, raw: bytes | None, body: Any, readable: bool) -> Reply:
        self._media.origin = request.origin
        endpoint, params = self._match(request)
        lack = self._profile.lack(request.method, request.path)
        if self._profile.relays:
            if lack is not None:
                return _failed(lack.failure, request)
            if not isinstance(body, dict):
                return _failed(NO_OBJECT if readable else UNREADABLE, request)
            request = request.relayed(UPSTREAM)
        if endpoint is None:
            unknown = lack.failure if lack else self._profile.unknown_path
            if unknown is None:
                raise ServiceError(404, "Not Found")
            return _failed(unknown, request)
        checks_ids = not endpoint.free_ids and not self._profile.relays
        if checks_ids and any(not _UUID.fullmatch(value) for value in params.values()):
            raise ServiceError(400, "Invalid job ID format. Job ID must be a valid UUID.")
        if not self._profile.relays:
            self._authenticate(request, endpoint)
        if self._profile.guarded:
            self._rate_limits.count(endpoint.rate_class)
        if raw is None:
            if self._profile.guarded:
                raise ServiceError(413, "Request body too large")
            raise ServiceError(500, "An unexpected error occurred.", code="UNKNOWN_ERROR")
        if not readable:
            raise ServiceError(400, "Bad request, malformed JSON", code="BAD_REQUEST_INVALID_JSON")
        if lack is not None:
            if lack.operation is not None:
                valid(lack.operation, body, self._profile)
            return _failed(lack.failure, request)
        if not endpoint.own_latency:
            await asyncio.sleep(self._core.settings.latency_ms / 1000)
        call = Call(
            request.method,
            request.path,
            params,
            request.query,
            body,
            request.origin,
            request.headers,
            request.query_lists,
        )
        reply = await endpoint.handler(call)
        self._activity.record(endpoint, call, reply)
        if self._core.settings.settle:
            await self._core.agenda.settle()
        return reply

    @property
    def _profile(self) -> Profile:
        return self._core.settings.profile

    def _match(self, request: Request) -> tuple[Endpoint | None, dict[str, str]]:
        """Return the endpoint of a request, or None, and its path parameters."""
        for endpoint in self._endpoints:
            # The raw path: an id may contain an encoded slash.
            match = endpoint.pattern.fullmatch(request.raw_path)
            if match and endpoint.method == request.method:
                return endpoint, {name: unquote(value) for name, value in match.groupdict().items()}
        return None, {}

    def _authenticate(self, request: Request, endpoint: Endpoint) -> None:
        if endpoint.raw or not self._profile.guarded:
            return
        header = request.headers.get("authorization")
        if header is None and endpoint.keyless and self._core.quirks.on("keyless-limit"):
            if not self._core.quirks.consume("keyless-limit"):
                extra = {"reason": "keyless_requests", "retry_after_seconds": 86_400}
                raise ServiceError(429, "The daily limit of calls without a key is reached.", extra=extra)
            return
        scheme, _, key = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise ServiceError(401, "Unauthorized: Token missing")
        if not hmac.compare_digest(key.strip().encode(), self._api_key.encode()):
            raise ServiceError(401, "Unauthorized: Invalid token")


def _failed(failure: Failure, request: Request) -> Reply:
    if not failure.html:
        return Reply(failure.status, dict(failure.body))
    page = f"<!DOCTYPE html>\n<html><body><pre>Cannot {request.method} {escape(request.path)}</pre></body></html>\n"
    return Reply(failure.status, raw=page.encode(), content_type="text/html; charset=utf-8")


def _log(request: Request, status: int | None, started: float) -> None:
    # Do not log headers or the body: they may contain secrets.
    spent = (time.perf_counter() - started) * 1000
    log.info("%s %s %s %.0f ms", request.method, request.path, status, spent)
