# SPDX-License-Identifier: Apache-2.0
"""Sending of responses: general quirks, compression, and ASGI messages."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import Send

    from webdata_sandbox.operations.call import Reply
    from webdata_sandbox.state.quirks import Quirks

MIN_GZIP_BYTES = 1000
CHUNK = 64 * 1024
DEPRECATION = {
    "Deprecation": "true",
    "Link": '</v3>; rel="successor-version"',
    "Warning": '299 - "This endpoint is deprecated"',
}


def apply_quirks(reply: Reply, quirks: Quirks) -> None:
    """Apply the quirks that affect every response."""
    body = reply.body
    if body is None:
        return
    failed = reply.status >= 400
    if failed and quirks.on("unknown-code"):
        body["code"] = "A_CODE_FROM_THE_FUTURE"
    if quirks.on("error-without-success" if failed else "no-success"):
        body.pop("success", None)
    if quirks.on("unknown-fields"):
        reply.body = _with_unknown_fields(body)
    if quirks.on("deprecation") and not failed:
        reply.headers.update(DEPRECATION)
        body["warnings"] = ["This endpoint is deprecated."]
        body["replacement"] = "/v3"


async def send_reply(reply: Reply, send: Send, *, compress: bool, chunked: bool, truncated: bool) -> None:
    """Send a response.

    :param compress: gzip a body of 1000 bytes or more.
    :param chunked: omit the Content-Length.
    :param truncated: send only half of the body.
    """
    content = _to_json(reply.body) if reply.raw is None else reply.raw
    headers = {"content-type": reply.content_type, **{k.lower(): v for k, v in reply.headers.items()}}
    if compress and len(content) >= MIN_GZIP_BYTES:
        content = await asyncio.to_thread(gzip.compress, content, 1)
        headers["content-encoding"] = "gzip"
        headers["vary"] = "Accept-Encoding"
    if not chunked:
        headers["content-length"] = str(len(content))
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": lines})
    if truncated:
        await _send_part(send, content[: len(content) // 2], more=True)
        return
    if chunked:
        for start in range(0, len(content), CHUNK):
            await _send_part(send, content[start : start + CHUNK], more=True)
        content = b""
    await _send_part(send, content, more=False)


async def _send_part(send: Send, content: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": content, "more_body": more})


def _to_json(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # an echoed lone surrogate, which JSON must escape
        return json.dumps(body).encode()


def _with_unknown_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            **{name: _with_unknown_fields(item) for name, item in value.items()},
            "fieldFromTheFuture": {"x": [1]},
        }
    if isinstance(value, list):
        return [_with_unknown_fields(item) for item in value]
    return value
