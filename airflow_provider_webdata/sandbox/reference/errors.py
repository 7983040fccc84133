"""Error answers of the service, and of the sandbox if it cannot emulate the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .wire import Json


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

    def body(self) -> Json:
        """Return the body of the answer."""
        body: Json = {"success": False}
        if self.code is not None:
            body["code"] = self.code
        body["error"] = self.text
        if self.details is not None:
            body["details"] = self.details
        return {**body, **self.extra}


class UnsupportedHereError(ServiceError):
    """The service supports this and the sandbox does not. It reports that instead of inventing a result."""

    def __init__(self, what: str) -> None:
        super().__init__(400, f"The sandbox cannot do this: {what}", code="UNSUPPORTED_IN_SANDBOX")
