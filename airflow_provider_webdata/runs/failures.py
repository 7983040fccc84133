"""Errors of tasks whose calls all succeeded: codes WD-030 and up in docs/errors.md."""

from __future__ import annotations

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSensorTimeout,
)

from airflow_provider_webdata.common.coded_errors import CodedError


class WaitTimeoutError(CodedError, AirflowSensorTimeout):
    """The wait timed out."""

    help_code = "WD-030"


class JobFailedError(CodedError, AirflowException):
    """The service reports that a job failed or was cancelled."""

    help_code = "WD-031"


class CheckFailedError(CodedError, AirflowFailException):
    """A monitor check ended with a status that fails the task."""

    help_code = "WD-032"


class TooManyFailuresError(CodedError, AirflowException):
    """More pages or searches failed than `max_error_ratio` allows."""

    help_code = "WD-033"


class CreditLimitError(CodedError, AirflowFailException):
    """Too few credits are left, or a call would exceed the task's credit limit."""

    help_code = "WD-034"


class UndeliveredAnswerError(CodedError, AirflowFailException):
    """A billed response could neither be delivered nor stored for a retry."""

    help_code = "WD-035"


class UncertainStartError(CodedError, AirflowFailException):
    """An earlier attempt may have started a job that cannot be found."""

    help_code = "WD-036"


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
    """Results do not match the schema, and `Schema.on_invalid` is `fail`."""

    help_code = "WD-061"


class RejectedResultsError(CodedError, AirflowFailException):
    """Results fail the task's `Checks`, and `on_fail` is `fail`."""

    help_code = "WD-064"


def too_many(failed: int, total: int, what: str, most: float) -> str | None:
    """Return a message if the error ratio exceeds the maximum, or None.

    :param what: plural noun for the items.
    :param most: maximum error ratio, 0 to 1.
    """
    if not failed or failed / total <= most:
        return None
    return f"{failed} of {total} {what} failed, more than max_error_ratio={most:g} allows"
