# SPDX-License-Identifier: Apache-2.0
"""Shared JSON responses; errors are `{"error": ...}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

RETRY_AFTER_SECONDS = 5


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return an error response."""
    return JSONResponse({"error": message}, status, headers)


def retry_later(status: int, message: str, seconds: float = RETRY_AFTER_SECONDS) -> JSONResponse:
    """Return an error response, 429 or 503, with `Retry-After`."""
    return error_response(status, message, {"retry-after": str(max(1, round(seconds)))})
