# SPDX-License-Identifier: Apache-2.0
"""Waits for the service's read replica: recent writes may be missing or stale for a moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.options import REPLICA_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

_T = TypeVar("_T")

log = logger(__name__)

_FIRST_PAUSE_SECONDS = 0.25
_TOLD_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 4.0


def until_found(
    lookup: Callable[[], _T | None], replica_wait: float | timedelta = REPLICA_WAIT_SECONDS
) -> _T | None:
    """Repeat a lookup until it returns a result or the time is over.

    :param lookup: returns the result, or None.
    :param replica_wait: maximum seconds to spend, or a timedelta. 0: look up once.
    """
    deadline = time.monotonic() + seconds("replica_wait", replica_wait, least=0)
    pause = _FIRST_PAUSE_SECONDS
    while True:
        if found := lookup():
            return found
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        if pause == _TOLD_PAUSE_SECONDS:
            log.info("The service does not show a recent write yet; retrying for up to %.0f s", left)
        time.sleep(min(pause, left))
        pause = min(pause * 2, _MAX_PAUSE_SECONDS)


def until_visible(call: Callable[[], _T], replica_wait: float | timedelta = REPLICA_WAIT_SECONDS) -> _T:
    """Repeat a call until the service finds its object; return the response.

    :param replica_wait: maximum seconds to spend, or a timedelta. 0: call once.
    :raises NotFoundError: the object stays missing.
    """
    missing: list[NotFoundError] = []

    def attempt() -> tuple[_T] | None:
        try:
            return (call(),)
        except NotFoundError as error:
            missing.append(error)
            return None

    if (answer := until_found(attempt, replica_wait)) is None:
        raise missing[-1]
    return answer[0]
