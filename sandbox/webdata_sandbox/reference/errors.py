# SPDX-License-Identifier: Apache-2.0
"""Error responses of the service, and of the sandbox for unsupported features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .wire import Json


class ServiceError(Exception):
    """An error response of the service.

    :param status: HTTP status.
    :param text: the body's ``error``.
    :param code: the body's ``code``; None: omitted.
    :param details: the body's ``details``; None: omitted.
    :param headers: additional response headers.
    :param extra: additional fields of the body.
    :param whole: the body, if it has another form.
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
        whole: Json | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.details = details
        self.headers = dict(headers or {})
        self.extra = extra or {}
        self.whole = whole

    def body(self) -> Json:
        """Return the response body."""
        if self.whole is not None:
            return dict(self.whole)
        body: Json = {"success": False}
        if self.code is not None:
            body["code"] = self.code
        body["error"] = self.text
        if self.details is not None:
            body["details"] = self.details
        return {**body, **self.extra}


class ServerEndError(Exception):
    """The process of the server ends, and the connection closes without a response."""


class UnsupportedHereError(ServiceError):
    """The service supports the request, but the sandbox does not and reports that instead of inventing a result."""

    def __init__(self, what: str) -> None:
        super().__init__(400, f"The sandbox cannot {what}", code="UNSUPPORTED_IN_SANDBOX")
