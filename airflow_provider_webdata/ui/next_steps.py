# SPDX-License-Identifier: Apache-2.0
"""Next steps that no error has, and arguments that may make a failed task succeed, as lines to copy."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.servers import HOSTED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.states.shortfalls import ShortfallKind

LATE_STEP = (
    "Check that a triggerer runs, then clear the task. A new attempt may start, and bill, another job."
)
"""The next step for a wait whose deadline has passed."""
_OVER_LIMIT = "Raise or omit credit_limit."
_FAILED_PAGES = "The task's tab says which failed and why."
SHORTFALL_STEPS: Mapping[ShortfallKind, str] = {
    "over_credit_limit": _OVER_LIMIT,
    "searches_not_started": _OVER_LIMIT,
    "pages_failed": _FAILED_PAGES,
    "searches_failed": _FAILED_PAGES,
    "calls_failed": _FAILED_PAGES,
    "urls_invalid": "Correct or omit the URLs.",
    "rows_refused": "Correct the key of the table, or the rows that have none.",
}
"""The next step for results that lack something, if its text does not name it."""
_FAILED = re.compile(r"(\d+) of (\d+) \w+ failed, more than max_error_ratio")
_MAY_COST = re.compile(r"it may cost up to ([\d.]+) credits")
_BEFORE = re.compile(r"after ([\d.]+) credits that were or may have been spent")
_MOST_FAILURES = 0.5
"""Highest error ratio that a line accepts. If more fails, the results are not worth having."""
_MAX_CREDITS = 10**5
_MIN_TIMEOUT = 1000


def argument_line(code: str, message: str, arguments: Mapping[str, Any]) -> str:
    """Return the argument that accepts what failed, such as `max_error_ratio=0.13`; empty if none is known.

    :param code: code of the error.
    :param message: its message.
    :param arguments: rendered arguments of the operator.
    """
    line = _LINES.get(code)
    return line(message, arguments) if line else ""


def _error_ratio(message: str, _: Mapping[str, Any]) -> str:
    if (found := _FAILED.search(message)) is None:
        return ""
    failed, of = (int(part[:12]) for part in found.groups())
    ratio = math.ceil(100 * failed / of) / 100 if of else 1
    return f"max_error_ratio={ratio:g}" if ratio <= _MOST_FAILURES else ""


def _credit_limit(message: str, _: Mapping[str, Any]) -> str:
    if (price := _MAY_COST.search(message)) is None:
        return ""
    before = _BEFORE.search(message)
    return f"credit_limit={_number(price[1]) + (_number(before[1]) if before else 0):.12g}"


def _number(text: str) -> float:
    text = text.rstrip(".")
    return float(text) if text.count(".") <= 1 else 0


def _max_credits(_: str, arguments: Mapping[str, Any]) -> str:
    given = arguments.get("max_credits")
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not 0 < given < _MAX_CREDITS:
        return ""
    return f"max_credits={2 * given:g}"


def _timeout(_: str, arguments: Mapping[str, Any]) -> str:
    # Without the argument, the operation decides. Lower numbers are seconds, of code in a browser.
    given = arguments.get("timeout")
    if type(given) is not int or not _MIN_TIMEOUT <= given < HOSTED.longest_scrape_ms:
        return ""
    return f"timeout={min(2 * given, HOSTED.longest_scrape_ms)}"


_LINES: Mapping[str, Callable[[str, Mapping[str, Any]], str]] = {
    "WD-033": _error_ratio,
    "WD-034": _credit_limit,
    "WD-068": _max_credits,
    "WD-408": _timeout,
}
