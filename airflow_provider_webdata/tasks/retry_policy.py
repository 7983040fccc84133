"""The retry policy of Airflow 3.3 and later."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import airflow.sdk

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.runs.reschedule import RATE_LIMIT_TIMEOUT_SECONDS, reschedule_delay

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryDecision, RetryPolicy

    _Base = RetryPolicy
else:
    _Base = getattr(airflow.sdk, "RetryPolicy", object)

POLICIES_RESCHEDULE = hasattr(getattr(airflow.sdk, "RetryDecision", None), "reschedule")
"""Whether a policy can reschedule the task: from Airflow 3.4 on."""


class WebDataRetryPolicy(_Base):
    """Retries what a retry can help, at the time that the service named.

    What can never succeed (bad input, an invalid API key, no credits, a missing entitlement) fails immediately; a 429,
    or a 503 that names a time, runs the task again at the time that the service names; all else follows the task's own
    `retries` and `retry_delay`. It is the default of this provider's operators, and fits any task that calls
    `WebDataHook`: `@task(retries=3, retry_policy=WebDataRetryPolicy())`.

    From Airflow 3.4 on, a task that waits for the service is rescheduled, which uses no retry, for up to 6 hours per
    attempt; then `retries` and `retry_delay` apply. On Airflow 3.3 each wait uses a retry. In a `ChainRetryPolicy`,
    put it before policies that decide about every exception.

    Needs Airflow 3.3. On 3.2 the class can be imported and has no effect.
    """

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002
        max_tries: int,  # noqa: ARG002
        context: Context | None = None,
    ) -> RetryDecision:
        """Decide whether a failed task runs again, and when.

        :param exception: what the task raised.
        """
        from airflow_provider_webdata.api.errors import RateLimitError, UnavailableError, WebDataError
        from airflow_provider_webdata.api.query import QueryError

        if isinstance(exception, (RateLimitError, UnavailableError)):
            return _wait(reschedule_delay(exception), str(exception), context)
        # A query or time filter is built while templates are rendered, a mapped task when it is unmapped: before any of
        # the operator's own code runs.
        hopeless = isinstance(exception, (ArgumentError, QueryError)) or (
            isinstance(exception, WebDataError) and exception.verdict == "never"
        )
        if hopeless:
            return airflow.sdk.RetryDecision.fail(reason=str(exception))
        return airflow.sdk.RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """Return the policy as JSON: it has no settings."""
        return {"__type": "airflow_provider_webdata.operators.retry.WebDataRetryPolicy"}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> WebDataRetryPolicy:  # noqa: ARG003
        """Return the policy that `serialize` described."""
        return cls()


def _wait(delay: timedelta, reason: str, context: Context | None) -> RetryDecision:
    """Reschedule within the limit of operators, where Airflow can; otherwise retry."""
    # Airflow compares the time of the failure with its limit; operators, the end of the wait.
    remaining = timedelta(seconds=RATE_LIMIT_TIMEOUT_SECONDS) - delay
    # An operator that raises the error has reached its own `rate_limit_timeout`.
    is_operator = hasattr((context or {}).get("task"), "rate_limit_timeout")
    if is_operator or remaining <= timedelta(0) or not POLICIES_RESCHEDULE:
        return airflow.sdk.RetryDecision.retry(delay=delay, reason=reason)
    decision: RetryDecision = airflow.sdk.RetryDecision.reschedule(  # type: ignore[attr-defined]  # new in Airflow 3.4
        delay=delay, reschedule_timeout=remaining, reason=reason
    )
    return decision
