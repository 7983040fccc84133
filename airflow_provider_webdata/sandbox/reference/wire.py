"""Calls and answers as the sandbox passes them around, and the service's error bodies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
LONGEST_NUMBER = 18
"""Digits of a number that still fits the store's 64 bits."""


@dataclass
class Call:
    """One request to the service, its body already parsed.

    ``params`` are the parts of the path, ``origin`` the scheme and host the caller used, ``headers`` have names in
    lower case.
    """

    method: str
    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    origin: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Reply:
    """One answer: ``body`` is sent as JSON, unless ``raw`` holds the bytes to send."""

    status: int
    body: Json | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    content_type: str = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Issue:
    """One thing that is wrong with a request: where, and the rule it breaks."""

    path: tuple[str | int, ...]
    message: str
    code: str = "custom"

    def to_wire(self) -> Json:
        """Return the issue as an item of ``details``."""
        return {"code": self.code, "path": list(self.path), "message": self.message}


class ServiceError(Exception):
    """A request ends with an error of the service.

    :param status: HTTP status.
    :param text: the body's ``error``.
    :param code: the body's ``code``; left out when absent.
    :param details: the body's ``details``; left out when absent.
    :param headers: more response headers.
    :param extra: more fields of the body.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        code: str | None = None,
        details: Any = None,
        headers: Mapping[str, str] | None = None,
        extra: Json | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.details = details
        self.headers = dict(headers or {})
        self.extra = extra or {}

    def reply(self) -> Reply:
        """Return the answer that says so (supplement 17.1)."""
        body: Json = {"success": False}
        if self.code is not None:
            body["code"] = self.code
        body["error"] = self.text
        if self.details is not None:
            body["details"] = self.details
        body.update(self.extra)
        return Reply(self.status, body, self.headers)


def whole_number(text: str) -> int | None:
    """Return the number a text states in plain digits; None when it states none, or one too large for the store."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


class UnsupportedHereError(ServiceError):
    """The service could do this, the sandbox cannot, and says so instead of making something up."""

    def __init__(self, what: str) -> None:
        super().__init__(400, f"The sandbox cannot do this: {what}", code="UNSUPPORTED_IN_SANDBOX")
