"""Retries of a failed call within the process: which errors, how long to wait, and when to stop.

Short and bounded on purpose: a waiting caller holds a worker slot. A wait longer than the budget is raised to the
caller, which can release the slot.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import (
    APIError,
    ProcessingContinuesError,
    RateLimitError,
    RequestInFlightError,
    RequestTimeoutError,
    ServerError,
    TransportError,
    WebDataError,
)

if TYPE_CHECKING:
    from airflow_provider_webdata.api.endpoints import Endpoint

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 6
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 10.0

SILENT_PAUSE_SECONDS = 2.0
"""A longer pause is logged."""

LONGEST_PROCESSING_SECONDS = 20 * 60.0
"""How long a large document is requested again, regardless of the budget. See docs/service.md#large-documents."""

LONGEST_NAMED_WAIT_SECONDS = 24 * 3600.0
"""A longer wait that the service names is cut to this; a later request is answered the same way. See docs/errors.md."""

_NUMBER = re.compile(r"\s*\d+(\.\d*)?\s*")
_WAIT_IN_TEXT = re.compile(r"retry\s+(?:after|in)\s+(\d+(?:\.\d+)?)\s*s", re.IGNORECASE)


def named_wait(headers: Mapping[str, str], message: str, body: Mapping[str, Any]) -> float | None:
    """Return the seconds that the service asks to wait, at most `LONGEST_NAMED_WAIT_SECONDS`, or None.

    The header `Retry-After` comes first, in seconds or as an HTTP date; then the body's fields; then the text
    of the message, since the service is known to write the wait of a 429 only there.

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
    return min(max(left, 0.0), LONGEST_NAMED_WAIT_SECONDS)


def _seconds(value: object) -> float | None:
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        wait = float(value)
    except OverflowError:
        # A whole number of hundreds of digits; as text, it is infinity.
        wait = float("inf")
    return min(wait, LONGEST_NAMED_WAIT_SECONDS) if wait >= 0 else None


def may_repeat(error: BaseException, *, repeatable: bool) -> bool:
    """Return whether the call that failed with `error` may be repeated immediately.

    A 429, a request that never left, and a document that the service still works on are safe for
    every call. All else is repeated only where a repetition can neither start nor bill anything.
    """
    if isinstance(error, (RateLimitError, ProcessingContinuesError, RequestInFlightError)):
        return True
    if isinstance(error, TransportError):
        return repeatable or not error.sent
    if isinstance(error, (ServerError, RequestTimeoutError)):
        return repeatable and error.status != 501
    return False


class Attempts:
    """The attempts of one call: says of each that failed when to make the next.

    A loop around this takes no time where the first attempt succeeds; tenacity takes as long as to parse an answer.

    :param budget: seconds that attempts and pauses may take together; a pause that would end later is not
        begun.
    :param can_be_sent: whether there still is a body to send.
    :param clock: returns seconds that only grow.
    :ivar made: how many attempts were begun.
    :ivar status: HTTP status of the last one, once its answer comes.
    :ivar answer: the answer, once there is one.
    """

    def __init__(
        self,
        endpoint: Endpoint[Any],
        budget: float,
        can_be_sent: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._repeatable = endpoint.repeatable
        self._budget = budget
        self._can_be_sent = can_be_sent
        self._clock = clock
        self._start = clock()
        self._failed = 0
        self.made = 0
        self.status: int | None = None
        self.answer: Any = None

    def begin(self) -> None:
        """Note that an attempt is made."""
        self.made += 1
        self.status = None

    def pause_after(self, error: WebDataError) -> float | None:
        """Return the seconds to wait before the next attempt; None: there is none."""
        self._failed += 1
        if self._failed >= MAX_ATTEMPTS or not may_repeat(error, repeatable=self._repeatable):
            return None
        pause = pause_between(error, self._failed)
        end = self._clock() - self._start + pause
        processes_too_long = isinstance(error, ProcessingContinuesError) and end > LONGEST_PROCESSING_SECONDS
        if end >= self._budget or processes_too_long or not self._can_be_sent():
            return None
        if pause > SILENT_PAUSE_SECONDS:
            log.warning("%s. Waiting %.1f s before attempt %d", error, pause, self._failed + 1)
        return pause


def pause_between(error: WebDataError, failed: int) -> float:
    """Return the service's word, or a random pause that grows with each failed attempt."""
    named = error.retry_after if isinstance(error, APIError) else None
    if named is not None:
        # A little more than asked, differently for each caller, so that not all come back in the same instant.
        return named + random.uniform(0, min(1.0, 0.1 * named + 0.05))  # noqa: S311
    ceiling = min(FIRST_PAUSE_SECONDS * 2.0 ** (failed - 1), LONGEST_PAUSE_SECONDS)
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311
