"""The delay of a task when the service asks it to wait."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_webdata.api.errors import WebDataError

RATE_LIMIT_TIMEOUT_SECONDS = 6 * 3600.0
"""Maximum time for which an attempt is rescheduled, unless the task sets `rate_limit_timeout`."""

RATE_WINDOW_SECONDS = 60.0
"""The window of the service's rate limits; the delay after a 429 without `Retry-After`."""


def reschedule_delay(error: WebDataError) -> timedelta:
    """Return the delay after a 429, a 503 with a retry time, or an unavailable inbox.

    A random jitter of up to a quarter of the retry time prevents tasks that were rate limited together from calling
    together again.
    """
    asked: float | None = getattr(error, "retry_after", None)
    named = RATE_WINDOW_SECONDS if asked is None else max(asked, 1.0)
    return timedelta(seconds=named + random.uniform(0, max(2.0, named / 4)))  # noqa: S311
