"""The retry policy of Airflow 3.3 and later, and how long a task waits when the service asks for it."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import airflow.sdk

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryDecision, RetryPolicy

    from airflow_provider_webdata.api.errors import WebDataError

    _Base = RetryPolicy
else:
    _Base = getattr(airflow.sdk, "RetryPolicy", object)

HAS_RETRY_POLICIES = _Base is not object
"""Whether this Airflow asks a policy; 3.2 does not."""

RATE_WINDOW_SECONDS = 60.0
"""The window of the service's rate limits, waited for when a 429 names no time."""


def reschedule_delay(error: WebDataError) -> timedelta:
    """Return how long to wait after a 429, a 503 that names a time, or for an inbox that cannot answer now.

    Up to a quarter more than the named time, drawn anew each time, so that tasks that were rate limited together do
    not call together again.
    """
    asked: float | None = getattr(error, "retry_after", None)
    named = RATE_WINDOW_SECONDS if asked is None else max(asked, 1.0)
    return timedelta(seconds=named + random.uniform(0, max(2.0, named / 4)))  # noqa: S311


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
        from airflow_provider_webdata.coded_errors import ArgumentError

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
