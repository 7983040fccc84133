"""The retry policy of Airflow 3.3 and later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import airflow.sdk

from airflow_provider_webdata.runs.reschedule import reschedule_delay

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryDecision, RetryPolicy

    _Base = RetryPolicy
else:
    _Base = getattr(airflow.sdk, "RetryPolicy", object)


class WebDataRetryPolicy(_Base):
    """Retries what a retry can help, at the time that the service named.

    What can never succeed (bad input, an invalid API key, no credits, a missing entitlement) fails at once; a 429,
    or a 503 that names a time, is retried at the time that the service names; all else follows the task's own
    `retries` and `retry_delay`. It is the default of this provider's operators, and fits any task that calls
    `WebDataHook`: `@task(retries=3, retry_policy=WebDataRetryPolicy())`.

    Needs Airflow 3.3. On 3.2 the class can be imported and has no effect.
    """

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002
        max_tries: int,  # noqa: ARG002
        context: Context | None = None,  # noqa: ARG002
    ) -> RetryDecision:
        """Decide whether a failed task is retried, and when.

        :param exception: what the task raised.
        """
        from airflow.sdk import RetryDecision

        from airflow_provider_webdata.api.errors import RateLimitError, UnavailableError, WebDataError
        from airflow_provider_webdata.api.query import QueryError
        from airflow_provider_webdata.common.coded_errors import ArgumentError

        if isinstance(exception, (RateLimitError, UnavailableError)):
            return RetryDecision.retry(delay=reschedule_delay(exception), reason=str(exception))
        # A query or time filter is built while templates are rendered, a mapped task when it is unmapped: before any of
        # the operator's own code runs.
        hopeless = isinstance(exception, (ArgumentError, QueryError)) or (
            isinstance(exception, WebDataError) and exception.verdict == "never"
        )
        if hopeless:
            return RetryDecision.fail(reason=str(exception))
        return RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """Return the policy as JSON: it has no settings."""
        return {"__type": "airflow_provider_webdata.operators.retry.WebDataRetryPolicy"}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> WebDataRetryPolicy:  # noqa: ARG003
        """Return the policy that `serialize` described."""
        return cls()
