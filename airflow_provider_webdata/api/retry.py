# SPDX-License-Identifier: Apache-2.0
"""In-process retries of a failed call: the errors to retry, the pauses, and the limits.

Retries are deliberately short, because a waiting caller occupies a worker slot. If a wait exceeds the budget, the
error is raised to the caller, which can release the slot.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from airflow_provider_webdata.api.errors import (
    APIError,
    ProcessingContinuesError,
    RateLimitError,
    RequestInFlightError,
    RequestTimeoutError,
    ServerError,
    TransportError,
    UndeclaredServerError,
    WebDataError,
)
from airflow_provider_webdata.common.logs import logger

log = logger(__name__)

MAX_ATTEMPTS = 6
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 10.0

SILENT_PAUSE_SECONDS = 2.0
"""Longer pauses are logged."""

MAX_PROCESSING_SECONDS = 20 * 60.0
"""Time limit for requesting a large document, also above the budget. See sandbox/docs/service.md#large-documents."""

MAX_NAMED_WAIT_SECONDS = 24 * 3600.0
"""Cap on a wait that the service specifies; a request after it gets the same response. See docs/errors.md."""

_RATE_WINDOW_SECONDS = 60.0
"""The window of the service's rate limits; the delay after a 429 without `Retry-After`."""

_FIRST_OUTAGE_PAUSE_SECONDS = 30.0
_MAX_OUTAGE_PAUSE_SECONDS = 600.0

_NUMBER = re.compile(r"\s*\d+(\.\d*)?\s*")
_WAIT_IN_TEXT = re.compile(r"retry\s+(?:after|in)\s+(\d+(?:\.\d+)?)\s*s", re.IGNORECASE)


def named_wait(headers: Mapping[str, str], message: str, body: Mapping[str, Any]) -> float | None:
    """Return the wait that the service specifies, in seconds, at most `MAX_NAMED_WAIT_SECONDS`, or None.

    The header `Retry-After` takes precedence, in seconds or as an HTTP date, then the fields of the body, then the text
    of the message: the service sometimes states the wait of a 429 only there.

    :param headers: response headers, looked up by lower-case name.
    """
    wait = _header_seconds(headers.get("retry-after", ""))
    details = body.get("details")
    if wait is None and isinstance(details, Mapping):
        wait = _seconds(details.get("retryAfterSeconds"))
    if wait is None:
        wait = _seconds(body.get("retry_after_seconds"))
    if wait is None and (found := _WAIT_IN_TEXT.search(message)):
        wait = _seconds(found[1])
    return wait


def _header_seconds(text: str) -> float | None:
    if (wait := _seconds(text)) is not None:
        return wait
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    left = (when - datetime.now(timezone.utc)).total_seconds()
    return min(max(left, 0.0), MAX_NAMED_WAIT_SECONDS)


def _seconds(value: object) -> float | None:
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        wait = float(value)
    except OverflowError:
        # An integer with hundreds of digits; the same number as text gives infinity.
        wait = float("inf")
    return min(wait, MAX_NAMED_WAIT_SECONDS) if wait >= 0 else None


def may_repeat(error: BaseException, *, repeatable: bool) -> bool:
    """Return whether the client may retry the call that failed with `error`.

    A 429, a request that was not sent, a document in processing, and a running request with the same id are safe to
    retry for every call. After other errors, only calls that are safe to repeat are retried.
    """
    if isinstance(error, (RateLimitError, ProcessingContinuesError, RequestInFlightError)):
        return True
    if isinstance(error, TransportError):
        return error.verdict != "never" and (repeatable or not error.sent)
    if isinstance(error, (ServerError, RequestTimeoutError)):
        return repeatable and not isinstance(error, UndeclaredServerError)
    return False


class Attempts:
    """The attempts of one call, and the pauses between them.

    This has no overhead if the first attempt succeeds; tenacity takes as long as parsing a response.

    :param budget: seconds for all attempts and pauses together; a pause that would exceed it ends the retries.
    :param can_be_sent: returns whether the body can be sent again.
    :param is_repeatable: whether the call can be retried safely after a lost response.
    :param clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        budget: float,
        can_be_sent: Callable[[], bool],
        *,
        is_repeatable: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_repeatable = is_repeatable
        self._budget = budget
        self._can_be_sent = can_be_sent
        self._clock = clock
        self._start = clock()
        self._failed = 0

    def pause_after(self, error: WebDataError) -> float | None:
        """Return the seconds to wait before the next attempt, or None to stop."""
        self._failed += 1
        if self._failed >= MAX_ATTEMPTS or not may_repeat(error, repeatable=self._is_repeatable):
            return None
        pause = pause_between(error, self._failed)
        end = self._clock() - self._start + pause
        processes_too_long = isinstance(error, ProcessingContinuesError) and end > MAX_PROCESSING_SECONDS
        if end >= self._budget or processes_too_long or not self._can_be_sent():
            return None
        if pause > SILENT_PAUSE_SECONDS:
            log.warning("%s. Waiting %.1f s before attempt %d", error.brief(), pause, self._failed + 1)
        return pause


def pause_between(error: WebDataError, failed: int) -> float:
    """Return the wait that the service specifies, or an exponential backoff, in seconds, both with jitter."""
    named = error.retry_after if isinstance(error, APIError) else None
    if named is not None:
        # Wait slightly longer, with jitter, so that callers do not all retry at the same time.
        return named + random.uniform(0, min(1.0, 0.1 * named + 0.05))  # noqa: S311
    return backoff(failed)


def backoff(failed: int) -> float:
    """Return an exponential backoff in seconds, with jitter.

    :param failed: number of failures in a row, from 1.
    """
    ceiling = min(FIRST_PAUSE_SECONDS * 2.0 ** (failed - 1), MAX_PAUSE_SECONDS)
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311


def is_unreachable(error: BaseException) -> bool:
    """Return whether the service could not be reached, nothing was sent, and it may be reachable later."""
    return isinstance(error, TransportError) and not error.sent and error.verdict != "never"


def reschedule_delay(error: WebDataError, waited: float = 0.0) -> timedelta:
    """Return the delay of a task after an error that passes.

    These are a 429, a 503 with a retry time, an unavailable inbox, a document in process, or an unreachable service.

    A random jitter of up to a quarter of the retry time, or up to 2 seconds if that is more, prevents tasks that were
    rate limited together from calling together again. For a document, it is up to a tenth, or 1 second.

    :param waited: seconds for which the task has been waiting; the pauses for an unreachable service grow with them.
    """
    if is_unreachable(error):
        seconds = min(max(waited, _FIRST_OUTAGE_PAUSE_SECONDS), _MAX_OUTAGE_PAUSE_SECONDS)
        return timedelta(seconds=seconds + random.uniform(0, seconds / 4))  # noqa: S311
    named: float | None = getattr(error, "retry_after", None)
    seconds = _RATE_WINDOW_SECONDS if named is None else max(named, 1.0)
    least, part = (1.0, 10) if isinstance(error, ProcessingContinuesError) else (2.0, 4)
    return timedelta(seconds=seconds + random.uniform(0, max(least, seconds / part)))  # noqa: S311
