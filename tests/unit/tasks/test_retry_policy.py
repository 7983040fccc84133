"""The decision after a failed attempt, by error."""

from __future__ import annotations

from datetime import timedelta

import pytest
from airflow.sdk import BaseOperator

from airflow_provider_webdata.api import errors
from airflow_provider_webdata.api.query import QueryError
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.runs.reschedule import reschedule_delay
from airflow_provider_webdata.tasks.retry_policy import WebDataRetryPolicy
from airflow_provider_webdata.tasks.service_task import HAS_RETRY_POLICIES


def api(cls, status, **more):
    return cls("search", status, "because", **more)


def limited(seconds):
    return api(errors.RateLimitError, 429, retry_after=seconds)


FAILURES = [
    (errors.InvalidRequestError("search", ["limit: too high"]), "fail"),
    (errors.ConfigurationError("no host"), "fail"),
    (errors.ResponseTooLargeError("search", "too large", status=200), "fail"),
    (api(errors.BadRequestError, 400), "fail"),
    (api(errors.AuthenticationError, 401), "fail"),
    (api(errors.PaymentRequiredError, 402), "fail"),
    (api(errors.EntitlementError, 403), "fail"),
    (api(errors.CacheMissError, 404), "fail"),
    (api(errors.ClientError, 413), "fail"),
    (limited(30), "retry"),
    (limited(None), "retry"),
    (api(errors.UnavailableError, 503, retry_after=30.0), "retry"),
    (api(errors.NotFoundError, 404), "default"),
    (api(errors.RequestTimeoutError, 408), "default"),
    (api(errors.ConflictError, 409), "default"),
    (api(errors.ServerError, 500), "default"),
    (api(errors.UnsuccessfulError, 200), "default"),
    (errors.TransportError("search", "gone", sent=True), "default"),
    (errors.InvalidResponseError("search", "garbage", status=200), "default"),
    (QueryError("the query is too long"), "fail"),
    (ArgumentError("job_id must name a job"), "fail"),
    (ValueError("the task's own"), "default"),
]


@pytest.mark.rule("status-400", "status-401", "status-402", "status-403", "status-429")
@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="this Airflow asks no policy")
@pytest.mark.parametrize(
    ("error", "action"), FAILURES, ids=lambda value: getattr(value, "__class__", value).__name__
)
def test_decision(error, action):
    """What can never succeed fails, a 429 waits, all else is left to the task."""
    decision = WebDataRetryPolicy().evaluate(error, try_number=1, max_tries=3)
    assert decision.action.value == action
    if action == "default":
        assert decision.reason is None
    else:
        assert "because" in decision.reason or decision.reason == str(error)


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize(("named", "least", "most"), [(30, 30, 37.5), (0, 1, 3), (None, 60, 75)])
def test_wait(named, least, most):
    """At least what the service named, and up to a quarter more, differently each time."""
    waits = [reschedule_delay(limited(named)) for _ in range(50)]
    assert timedelta(seconds=least) <= min(waits)
    assert max(waits) <= timedelta(seconds=most)
    assert len(set(waits)) > 1


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="this Airflow asks no policy")
def test_serialized():
    data = WebDataRetryPolicy().serialize()
    assert data == {"__type": "airflow_provider_webdata.operators.retry.WebDataRetryPolicy"}
    assert isinstance(WebDataRetryPolicy.deserialize(data), WebDataRetryPolicy)


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="this Airflow asks no policy")
def test_default_of_the_operators():
    """Unless one is given, to the task or as a default."""
    from airflow.sdk import ExceptionRetryPolicy

    own = ExceptionRetryPolicy(rules=[])
    assert isinstance(WebDataSearchOperator(task_id="t", query="q").retry_policy, WebDataRetryPolicy)
    assert WebDataSearchOperator(task_id="t", query="q", retry_policy=own).retry_policy is own
    defaults = {"retry_policy": own}
    assert WebDataSearchOperator(task_id="t", query="q", default_args=defaults).retry_policy is own


def test_importable_everywhere():
    """On an Airflow without policies the class is there, and the operators pass none on."""
    assert WebDataRetryPolicy.__mro__[1].__name__ == ("RetryPolicy" if HAS_RETRY_POLICIES else "object")
    if not HAS_RETRY_POLICIES:
        assert not hasattr(BaseOperator(task_id="t"), "retry_policy")
        assert WebDataSearchOperator(task_id="t", query="q").task_id == "t"
