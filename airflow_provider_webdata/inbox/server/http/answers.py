"""What the routes answer, and how it is sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import Receive, Scope, Send

RETRY_AFTER_SECONDS = 5


@dataclass(frozen=True)
class Answer:
    """One response, with a JSON body.

    :param status: of HTTP.
    :param body: encoded.
    :param headers: beside content type and length.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, status: int, value: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """Return an answer that carries a value.

        :param status: of HTTP.
        :param value: becomes the JSON body.
        :param headers: beside content type and length.
        """
        return cls(status, json.dumps(value).encode(), headers or {})

    @classmethod
    def error(cls, status: int, message: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Return an answer that says what is wrong.

        :param status: of HTTP.
        :param message: for the sender.
        :param headers: beside content type and length.
        """
        return cls.of(status, {"error": message}, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer any request, as an ASGI application."""
        if scope["type"] == "http":
            await self.send(send)

    async def send(self, send: Send, pass_over: Callable[[], Awaitable[None]] | None = None) -> None:
        """Send it.

        :param send: of the ASGI call.
        :param pass_over: takes what still comes of a body that nobody wants; then the connection is closed. Closed
            on somebody who is still sending, it would be reset, and take the answer along.
        """
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(self.body))]
        headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self.headers.items()]
        if pass_over is not None:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": pass_over is not None})
        if pass_over is not None:
            await pass_over()
            await send({"type": "http.response.body", "body": b""})


def not_now(status: int, message: str, seconds: float = RETRY_AFTER_SECONDS) -> Answer:
    """Return an answer that asks to come again.

    :param status: 429 or 503.
    :param message: for the sender.
    :param seconds: after how many.
    """
    return Answer.error(status, message, {"retry-after": str(max(1, round(seconds)))})
