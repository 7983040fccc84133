# SPDX-License-Identifier: Apache-2.0
"""Errors of tasks whose calls all succeeded: codes WD-030 and up in docs/errors.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSensorTimeout,
)

from airflow_provider_webdata.api.errors import (
    InvalidResponseError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.coded_errors import CodedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.api.errors import WebDataError

_MAX_GROUPS = 10


class WaitTimeoutError(CodedError, AirflowSensorTimeout):
    """The wait timed out."""

    help_code = "WD-030"


class JobFailedError(CodedError, AirflowException):
    """The service reports that a job failed or was canceled."""

    help_code = "WD-031"


class AgentLimitError(JobFailedError):
    """An agent run stopped at its `max_credits`."""

    help_code = "WD-068"


class CheckFailedError(CodedError, AirflowFailException):
    """A monitor check ended with a status that fails the task."""

    help_code = "WD-032"


class TooManyFailuresError(CodedError, AirflowException):
    """More pages, searches, or calls failed than `max_error_ratio` allows, or all pages of a job.

    :param reasons: the first failures, for XCom `failure`.
    :param ratio: error ratio that accepts them, if any does.
    """

    help_code = "WD-033"

    def __init__(
        self, text: str, reasons: Sequence[Mapping[str, Any]] = (), *, ratio: float | None = None
    ) -> None:
        super().__init__(text)
        self.reasons = reasons
        self.accepted_with = {} if ratio is None else {"max_error_ratio": ratio}


class CreditLimitError(CodedError, AirflowFailException):
    """A call may exceed the task's credit limit, or its cost is unknown.

    :param accepted_with: the limit that accepts the cost, if it is known.
    """

    help_code = "WD-034"

    def __init__(self, text: str, accepted_with: Mapping[str, float] | None = None) -> None:
        super().__init__(text)
        self.accepted_with = accepted_with or {}


class FewCreditsError(CreditLimitError):
    """Fewer credits are left than the task requires."""

    help_code = "WD-066"


class MonitorCostError(CreditLimitError):
    """A monitor's estimated cost exceeds `max_credits_per_month`."""

    help_code = "WD-067"


class UnpublishedResponseError(CodedError, AirflowFailException):
    """A billed response could neither be published nor stored for a retry."""

    help_code = "WD-035"


class UncertainStartError(CodedError, AirflowFailException):
    """An earlier attempt may have started a job that cannot be found."""

    help_code = "WD-036"


class UnnamedJobError(CodedError, AirflowException):
    """No delivery names the job yet that an earlier request may have started."""

    help_code = "WD-071"


class MonitorMissingError(CodedError, AirflowNotFoundException):
    """The monitor does not exist."""

    help_code = "WD-037"


class MonitorConflictError(CodedError, AirflowFailException):
    """The monitor's state does not allow the operation."""

    help_code = "WD-038"


class StepFailedError(CodedError, AirflowException):
    """A step of a browser session failed."""

    help_code = "WD-039"


class InvalidResultsError(CodedError, AirflowFailException):
    """Results do not match the schema, and `on_invalid_result` is `fail`."""

    help_code = "WD-061"


class RejectedResultsError(CodedError, AirflowFailException):
    """Results fail the task's `Quality`, and `on_fail` is `fail`."""

    help_code = "WD-064"


def may_have_acted(error: WebDataError) -> bool:
    """Return whether the service may have executed a failed call despite the error."""
    if isinstance(error, TransportError):
        return error.sent
    return isinstance(error, (InvalidResponseError, RequestTimeoutError, ServerError))


class FailureGroups:
    """The failed pages or searches of a task, grouped by their reason, for one line of the log per group."""

    def __init__(self) -> None:
        self._groups: dict[str, list[Any]] = {}

    def add(self, name: str, reason: str) -> None:
        """Add a failed page or search; above `_MAX_GROUPS` reasons, the rest is one group.

        :param name: URL of the page, or text of the search.
        """
        reason = trimmed(reason)
        if reason not in self._groups and len(self._groups) >= _MAX_GROUPS:
            reason = "other reasons"
        group = self._groups.setdefault(reason, [0, name])
        group[0] += 1

    def lines(self, what: str) -> list[str]:
        """Return one line per group, the largest first.

        :param what: noun for the items, in the singular.
        """
        largest = sorted(self._groups.items(), key=lambda group: -group[1][0])
        return [
            f"1 {what} failed: {reason} ({example})"
            if number == 1
            else f"{number} {what}{'es' if what.endswith('ch') else 's'} failed: {reason} (the first is {example})"
            for reason, (number, example) in largest
        ]


class Excess(NamedTuple):
    """An error ratio above the maximum.

    :param text: the message.
    :param ratio: the ratio in hundredths, rounded up; None: no item succeeded, which is the only limit.
    """

    text: str
    ratio: float | None = None


def too_many(
    failed: int, succeeded: int, known: int, most: float | None, what: str = "pages"
) -> Excess | None:
    """Return the excess if the error ratio exceeds the maximum, or None.

    :param known: number of items that were not requested, because an earlier run read them.
    :param most: maximum error ratio, 0 to 1. None: only if no item succeeded or is known.
    :param what: plural noun for the items.
    """
    read = succeeded + known
    if most is None:
        return Excess(f"No results: {failed} of {failed} {what} failed") if failed and not read else None
    of = failed + read
    if not failed or failed / of <= most:
        return None
    text = f"{failed} of {of} {what} failed, more than max_error_ratio={most:g} allows"
    return Excess(text, math.ceil(100 * failed / of) / 100)
