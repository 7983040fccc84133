# SPDX-License-Identifier: Apache-2.0
"""Next steps that no error has, and arguments that may make a failed task succeed, as lines to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.servers import HOSTED
from airflow_provider_webdata.ui.tasks import is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.states.shortfalls import ShortfallKind
    from airflow_provider_webdata.ui.tasks import Failure

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
_HIGHEST = {"max_error_ratio": 0.5, "credit_limit": 1e9, "max_credits_per_month": 1e9}
"""Highest value of each argument that a line suggests. If more than half fails, the results are not worth having."""
_MAX_CREDITS = 10**5
_MIN_TIMEOUT = 1000


def argument_line(failure: Failure, arguments: Mapping[str, Any]) -> str:
    """Return the argument that may make the task succeed, such as `max_error_ratio=0.13`; empty if none is known.

    :param arguments: rendered arguments of the operator.
    """
    if (line := _LINES.get(failure.code)) is not None:
        return line(arguments)
    # Any task may push an XCom of that name.
    return ", ".join(
        f"{name}={value:.12g}"
        for name, highest in _HIGHEST.items()
        if is_number(value := failure.accepted_with.get(name)) and 0 < value <= highest
    )


def _max_credits(arguments: Mapping[str, Any]) -> str:
    given = arguments.get("max_credits")
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not 0 < given < _MAX_CREDITS:
        return ""
    return f"max_credits={2 * given:g}"


def _timeout(arguments: Mapping[str, Any]) -> str:
    # Without the argument, the operation decides. Lower numbers are seconds, of code in a browser.
    given = arguments.get("timeout")
    if type(given) is not int or not _MIN_TIMEOUT <= given < HOSTED.longest_scrape_ms:
        return ""
    return f"timeout={min(2 * given, HOSTED.longest_scrape_ms)}"


_LINES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "WD-068": _max_credits,
    "WD-408": _timeout,
}
