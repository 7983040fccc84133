# SPDX-License-Identifier: Apache-2.0
"""The retry policy of Airflow 3.3 and later."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import airflow.sdk

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.worker_exit import seconds_until_resumable
from airflow_provider_webdata.options import RATE_LIMIT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryDecision, RetryPolicy

    _Base = RetryPolicy
else:
    _Base = getattr(airflow.sdk, "RetryPolicy", object)

POLICIES_RESCHEDULE = hasattr(getattr(airflow.sdk, "RetryDecision", None), "reschedule")
"""Whether a policy can reschedule the task (Airflow 3.4 and later)."""


class WebDataRetryPolicy(_Base):
    """Retries errors that a retry can fix, at the time that the service requests.

    Permanent errors (invalid input, an invalid API key, no credits, a missing entitlement, a page that fails in each
    attempt) fail immediately. After a 429, or a 503 with `Retry-After`, the task runs again at the time that the
    service requests. All other errors follow the task's own `retries` and `retry_delay`. This policy is the default of
    the provider's operators, and works for any task that calls `WebDataHook`:
    `@task(retries=3, retry_policy=WebDataRetryPolicy())`.

    On Airflow 3.4 and later, a task that waits for the service is rescheduled without using up a retry, for up to 6
    hours per attempt; then `retries` and `retry_delay` apply. On Airflow 3.3, each wait uses a retry. In a
    `ChainRetryPolicy`, place it before policies that handle every exception.

    Requires Airflow 3.3. On 3.2, the class can be imported and has no effect.
    """

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002
        max_tries: int,  # noqa: ARG002
        context: Context | None = None,
    ) -> RetryDecision:
        """Decide whether and when to retry a failed task.

        :param exception: the exception raised by the task.
        """
        from airflow_provider_webdata.api.errors import RateLimitError, UnavailableError, WebDataError
        from airflow_provider_webdata.api.query import QueryError
        from airflow_provider_webdata.api.retry import reschedule_delay

        if isinstance(exception, (RateLimitError, UnavailableError)):
            return _wait(reschedule_delay(exception), str(exception), context)
        # These errors may be raised before the operator's own code runs: queries and time filters are built while
        # templates are rendered, mapped tasks when they are unmapped.
        hopeless = isinstance(exception, (ArgumentError, QueryError)) or (
            isinstance(exception, WebDataError) and exception.verdict == "never"
        )
        if hopeless:
            return airflow.sdk.RetryDecision.fail(reason=str(exception))
        return airflow.sdk.RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """Return the policy as JSON, without settings."""
        return {"__type": "airflow_provider_webdata.policies.retry.WebDataRetryPolicy"}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> WebDataRetryPolicy:  # noqa: ARG003
        """Return the policy."""
        return cls()


def _wait(delay: timedelta, reason: str, context: Context | None) -> RetryDecision:
    """Reschedule within the operators' time limit if this Airflow supports it; otherwise retry."""
    delay = max(delay, timedelta(seconds=seconds_until_resumable()))
    # Airflow compares its limit with the time of the failure; operators compare theirs with the end of the delay.
    remaining = timedelta(seconds=RATE_LIMIT_TIMEOUT_SECONDS) - delay
    # An operator raises the error only after its own `rate_limit_timeout`.
    is_operator = hasattr((context or {}).get("task"), "rate_limit_timeout")
    if is_operator or remaining <= timedelta(0) or not POLICIES_RESCHEDULE:
        return airflow.sdk.RetryDecision.retry(delay=delay, reason=reason)
    decision: RetryDecision = airflow.sdk.RetryDecision.reschedule(  # type: ignore[attr-defined]  # new in Airflow 3.4
        delay=delay, reschedule_timeout=remaining, reason=reason
    )
    return decision
