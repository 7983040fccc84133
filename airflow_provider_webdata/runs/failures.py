"""Errors of a task whose calls all succeeded: the codes from WD-030 on in docs/errors.md."""

from __future__ import annotations

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSensorTimeout,
)

from airflow_provider_webdata.common.coded_errors import CodedError


class WaitTimeoutError(CodedError, AirflowSensorTimeout):
    """What was waited for did not happen in time."""

    help_code = "WD-030"


class JobFailedError(CodedError, AirflowException):
    """The service reports that a job failed or was cancelled."""

    help_code = "WD-031"


class CheckFailedError(CodedError, AirflowFailException):
    """A check of a monitor ended as one that was to make the task fail."""

    help_code = "WD-032"


class TooManyFailuresError(CodedError, AirflowException):
    """More of the pages or searches failed than `max_error_ratio` allows."""

    help_code = "WD-033"


class CreditLimitError(CodedError, AirflowFailException):
    """Fewer credits are left, or more would be spent, than the task allows."""

    help_code = "WD-034"


class UndeliveredAnswerError(CodedError, AirflowFailException):
    """An answer was billed, and could neither be delivered nor kept for a retry."""

    help_code = "WD-035"


class UncertainStartError(CodedError, AirflowFailException):
    """The fate of the job that an earlier attempt may have started is unknown."""

    help_code = "WD-036"


class MonitorMissingError(CodedError, AirflowNotFoundException):
    """There is no such monitor."""

    help_code = "WD-037"


class MonitorConflictError(CodedError, AirflowFailException):
    """The monitor is not in a state that allows what the task is to do."""

    help_code = "WD-038"


class StepFailedError(CodedError, AirflowException):
    """A step of a browser session failed."""

    help_code = "WD-039"


class InvalidResultsError(CodedError, AirflowFailException):
    """Results do not match the schema, and `Schema.on_invalid` is `fail`."""

    help_code = "WD-061"


class RejectedResultsError(CodedError, AirflowFailException):
    """Results do not pass the task's `Checks`, and `on_fail` is `fail`."""

    help_code = "WD-064"


def too_many(failed: int, total: int, what: str, most: float) -> str | None:
    """Return a message if a larger part failed than may, or None.

    :param what: names the parts, in the plural.
    :param most: the largest part that may fail, 0 to 1.
    """
    if not failed or failed / total <= most:
        return None
    return f"{failed} of {total} {what} failed, more than max_error_ratio={most:g} allows"
