# SPDX-License-Identifier: Apache-2.0
"""Optional reads: one attempt, a short timeout, and none at all while the server is known not to answer them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_webdata.api.errors import RateLimitError, UnsupportedError, WebDataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.api.config import ClientConfig
    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT

TIMEOUT_SECONDS = 4.0
"""Limit of connecting, and of reading a response unless the service itself takes longer."""

REMEMBERED_SECONDS = 300.0
"""How long this process does not repeat a read that failed."""

_failed: dict[tuple[str, str], tuple[float, WebDataError]] = {}


def optional(config: ClientConfig) -> ClientConfig:
    """Return the configuration of a client for optional reads."""
    return replace(config, timeout=min(config.timeout, TIMEOUT_SECONDS), retry_budget=0.0)


def read(config: ClientConfig, endpoint: Endpoint[ResponseT], send: Callable[[], ResponseT]) -> ResponseT:
    """Send an optional read.

    :raises WebDataError: it failed now or within the last five minutes, or the server lacks the operation.
    """
    if lack := config.server.lacks.get(endpoint.name):
        raise UnsupportedError(endpoint.label, 501, "not sent", lack=lack)
    key = (config.account, endpoint.label)
    if key in _failed and time.monotonic() - _failed[key][0] < REMEMBERED_SECONDS:
        raise _failed[key][1].with_traceback(None)
    try:
        return send()
    except RateLimitError:
        # It may succeed soon.
        raise
    except WebDataError as error:
        _failed[key] = (time.monotonic(), error)
        raise
