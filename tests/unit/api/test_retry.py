# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from airflow_provider_webdata.api import errors
from airflow_provider_webdata.api.retry import (
    FIRST_PAUSE_SECONDS,
    MAX_PAUSE_SECONDS,
    Attempts,
    may_repeat,
    named_wait,
    pause_between,
)

DAY = 24 * 3600.0
TEXT = (
    "Rate limit exceeded. Consumed (req/min): 11, Remaining (req/min): 0. please retry after 37s, resets at X"
)


@pytest.mark.rule("rate-limit-text", "retry-after")
@pytest.mark.parametrize(
    ("headers", "message", "body", "seconds"),
    [
        ({}, "", {}, None),
        ({"retry-after": "0"}, "", {}, 0.0),
        ({"retry-after": " 2.5 "}, "", {}, 2.5),
        ({"retry-after": "5"}, TEXT, {"retry_after_seconds": 9}, 5.0),
        ({"retry-after": "soon"}, TEXT, {}, 37.0),
        ({"retry-after": "-3"}, TEXT, {}, 37.0),
        ({"retry-after": "nan"}, "", {}, None),
        ({"retry-after": "1_0"}, "", {}, None),
        ({"retry-after": "9" * 400}, "", {}, DAY),
        ({"retry-after": "9" * 5000}, TEXT, {}, DAY),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, "", {}, DAY),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, "", {}, DAY),
        ({"retry-after": "Mon, 01 Jan 0001 00:00:00 +2359"}, "", {}, 0.0),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, "", {}, None),
        ({}, f"retry after {'9' * 400}s", {}, DAY),
        ({}, "", {"retry_after_seconds": 10**400}, DAY),
        ({}, "", {"retry_after_seconds": float("inf")}, DAY),
        ({}, "", {"retry_after_seconds": float("nan")}, None),
        ({}, "", {"retry_after_seconds": "Fri, 31 Dec 9999 23:59:59 GMT"}, None),
        ({}, TEXT, {}, 37.0),
        ({}, TEXT, {"retry_after_seconds": 9}, 9.0),
        ({}, TEXT, {"details": {"retryAfterSeconds": 600}}, 600.0),
        ({}, "Retry in 12 seconds", {}, 12.0),
        ({}, "no hint", {"details": ["x"], "retry_after_seconds": True}, None),
    ],
)
def test_named_wait(
    headers: dict[str, str], message: str, body: dict[str, Any], seconds: float | None
) -> None:
    assert named_wait(headers, message, body) == seconds


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize(
    ("offset", "zone", "low", "high"),
    [
        (3600, timezone.utc, 3000, 3600),
        # Without a zone it is written as -0000, and means UTC.
        (3600, None, 3000, 3600),
        (3600, timezone(timedelta(hours=9)), 3000, 3600),
        (-3600, timezone.utc, 0, 0),
    ],
    ids=["UTC", "no zone", "Japan", "past"],
)
def test_named_wait_as_a_date(offset: int, low: float, high: float, zone: timezone | None) -> None:
    when = datetime.now(timezone.utc) + timedelta(seconds=offset)
    date = format_datetime(when.replace(tzinfo=None) if zone is None else when.astimezone(zone))
    wait = named_wait({"retry-after": date}, "", {})
    assert wait is not None
    assert low <= wait <= high


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize(
    ("error", "failed", "low", "high"),
    [
        (errors.RateLimitError("x", 429, "", retry_after=0.0), 1, 0.0, 0.05),
        (errors.RateLimitError("x", 429, "", retry_after=5.0), 3, 5.0, 5.55),
        (errors.RateLimitError("x", 429, "", retry_after=100.0), 1, 100.0, 101.0),
        (errors.TransportError("x", "", sent=False), 1, FIRST_PAUSE_SECONDS / 2, FIRST_PAUSE_SECONDS),
        (errors.TransportError("x", "", sent=False), 2, FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS),
        (errors.TransportError("x", "", sent=False), 50, MAX_PAUSE_SECONDS / 2, MAX_PAUSE_SECONDS),
    ],
)
def test_pauses(error: errors.WebDataError, failed: int, low: float, high: float) -> None:
    """A thousand pauses lie in the range, some of them near each end."""
    pauses = [pause_between(error, failed) for _ in range(1000)]
    edge = (high - low) / 10
    assert low <= min(pauses) < low + edge
    assert high - edge < max(pauses) <= high


@pytest.mark.rule("repeat-safe", "repeat-unsafe", "repeat-rate-limit")
@pytest.mark.parametrize(
    ("error", "starts_something", "reads"),
    [
        (errors.RateLimitError("x", 429, ""), True, True),
        (errors.TransportError("x", "", sent=False), True, True),
        (errors.TransportError("x", "", sent=True), False, True),
        (errors.ServerError("x", 500, ""), False, True),
        (errors.UndeclaredServerError("x", 500, ""), False, False),
        (errors.UnsupportedError("x", 501, ""), False, False),
        (errors.RequestTimeoutError("x", 408, ""), False, True),
        (errors.ProcessingContinuesError("x", 408, ""), True, True),
        (errors.PageError("x", 500, ""), False, False),
        (errors.PageRefusedError("x", 403, ""), False, False),
        (errors.IdempotencyKeyUsedError("x", 409, ""), False, False),
        (errors.CacheMissError("x", 404, ""), False, False),
        (errors.ConflictError("x", 409, ""), False, False),
        (errors.UnsuccessfulError("x", 200, ""), False, False),
        (errors.InvalidResponseError("x", "", status=200), False, False),
        (errors.InvalidRequestError("x", ["y"]), False, False),
        (KeyError("x"), False, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_may_repeat(error: Exception, starts_something: bool, reads: bool) -> None:
    assert may_repeat(error, repeatable=False) is starts_something
    assert may_repeat(error, repeatable=True) is reads


def working(retry_after: float) -> errors.WebDataError:
    return errors.ProcessingContinuesError("x", 408, "", retry_after=retry_after)


def failing(retry_after: float) -> errors.WebDataError:
    return errors.RateLimitError("x", 429, "", retry_after=retry_after)


@pytest.mark.rule("large-documents-again")
@pytest.mark.parametrize(
    ("error", "budget", "elapsed", "ends"),
    [
        (working(60), 3600.0, 1100, False),
        (working(101), 3600.0, 1100, True),
        (failing(101), 3600.0, 1100, False),
        (failing(11), 3600.0, 3590, True),
        (failing(0), 0.0, 0, True),
        (failing(9), 10.0, 0, False),
        (failing(10), 10.0, 0, True),
    ],
)
def test_pauses_end_within_the_budget(
    error: errors.WebDataError, budget: float, elapsed: float, ends: bool
) -> None:
    """A large document gets twenty minutes, whatever the budget."""
    now = iter([1000.0, 1000.0 + elapsed])
    attempts = Attempts(budget, lambda: True, is_repeatable=False, clock=lambda: next(now))
    pause = attempts.pause_after(error)
    if ends:
        assert pause is None
    else:
        assert error.retry_after <= pause <= error.retry_after + 1


def test_six_attempts_ever_further_apart() -> None:
    attempts = Attempts(3600.0, lambda: True, is_repeatable=True, clock=lambda: 0.0)
    pauses = [attempts.pause_after(errors.ServerError("x", 500, "")) for _ in range(6)]
    assert pauses.pop() is None
    for pause, most in zip(pauses, [0.5, 1, 2, 4, 8], strict=True):
        assert most / 2 <= pause <= most


def test_a_body_that_was_read_is_not_sent_again() -> None:
    attempts = Attempts(3600.0, lambda: False, is_repeatable=True)
    assert attempts.pause_after(errors.ServerError("x", 500, "")) is None


@pytest.mark.parametrize(
    ("wait", "logged"), [(0.5, 0), (5.0, 1), (60.0, 0)], ids=["short", "long", "not waited"]
)
def test_long_pauses_are_logged(caplog: pytest.LogCaptureFixture, wait: float, logged: int) -> None:
    """With length and reason. A wait that exceeds the budget is not begun."""
    error = errors.RateLimitError("search", 429, "busy", retry_after=wait)
    pause = Attempts(30.0, lambda: True, is_repeatable=False).pause_after(error)
    assert [record.getMessage() for record in caplog.records] == [
        f"search: HTTP 429: busy; retry after {wait:g} s (WD-429). Waiting {pause or 0:.1f} s before attempt 2"
    ] * logged
