"""The delay of a task that the service asks to wait."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_webdata.api.errors import WebDataError

RATE_LIMIT_TIMEOUT_SECONDS = 6 * 3600.0
"""For how long an attempt may be rescheduled for such errors, unless the task has its own `rate_limit_timeout`."""

RATE_WINDOW_SECONDS = 60.0
"""The window of the service's rate limits, waited for when a 429 names no time."""


def reschedule_delay(error: WebDataError) -> timedelta:
    """Return how long to wait after a 429, a 503 that names a time, or for an inbox that cannot answer now.

    Up to a quarter more than the named time, drawn anew each time, so that tasks that were rate limited together do
    not call together again.
    """
    asked: float | None = getattr(error, "retry_after", None)
    named = RATE_WINDOW_SECONDS if asked is None else max(asked, 1.0)
    return timedelta(seconds=named + random.uniform(0, max(2.0, named / 4)))  # noqa: S311
