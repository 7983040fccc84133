# SPDX-License-Identifier: Apache-2.0
"""The decision after a failed attempt, by error."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import airflow.sdk
import pytest
from airflow.sdk import BaseOperator

from airflow_provider_webdata.api import errors
from airflow_provider_webdata.api.query import QueryError
from airflow_provider_webdata.api.retry import reschedule_delay
from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import RATE_LIMIT_TIMEOUT_SECONDS
from airflow_provider_webdata.policies import retry
from airflow_provider_webdata.policies.retry import POLICIES_RESCHEDULE, WebDataRetryPolicy


def api(cls, status, **more):
    return cls("search", status, "because", **more)


def limited(seconds):
    return api(errors.RateLimitError, 429, retry_after=seconds)


def unavailable(seconds):
    return api(errors.UnavailableError, 503, retry_after=seconds)


LATER = "reschedule" if POLICIES_RESCHEDULE else "retry"

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
    (limited(30), LATER),
    (limited(None), LATER),
    (unavailable(30.0), LATER),
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


class Decision(NamedTuple):
    """Airflow 3.4's decision, as far as the policy uses it, so that older versions test the policy's part."""

    action: str
    retry_delay: timedelta | None = None
    reason: str | None = None
    reschedule_timeout: timedelta | None = None

    @classmethod
    def retry(cls, delay, reason):
        return cls("retry", delay, reason)

    @classmethod
    def reschedule(cls, delay, *, reschedule_timeout, reason):
        return cls("reschedule", delay, reason, reschedule_timeout)


@pytest.fixture
def decide(monkeypatch):
    monkeypatch.setattr(airflow.sdk, "RetryDecision", Decision, raising=False)
    monkeypatch.setattr(retry, "POLICIES_RESCHEDULE", True)
    return lambda error, task=None: WebDataRetryPolicy().evaluate(error, 1, 1, {"task": task})


def task_of_its_own():
    """A task that calls the hook."""
    return BaseOperator(task_id="own")


@pytest.mark.rule("status-429")
@pytest.mark.parametrize("error", [limited(30), unavailable(30)], ids=["429", "503"])
def test_a_wait_costs_no_retry_where_airflow_can_reschedule(decide, error):
    """The wait ends within the limit of operators, which Airflow compares with its beginning."""
    decision = decide(error, task_of_its_own())
    assert decision.action == "reschedule"
    assert timedelta(seconds=30) <= decision.retry_delay <= timedelta(seconds=37.5)
    assert decision.reason == str(error)
    assert decision.retry_delay + decision.reschedule_timeout == timedelta(seconds=RATE_LIMIT_TIMEOUT_SECONDS)
    assert WebDataSearchOperator(task_id="t", query="q").rate_limit_timeout == RATE_LIMIT_TIMEOUT_SECONDS


def test_a_rescheduled_task_outlasts_its_worker(decide, monkeypatch):
    """Airflow fails a task that comes back before its first worker has reported its end."""
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "60")
    assert decide(limited(1), task_of_its_own()).retry_delay >= timedelta(seconds=62)


def test_a_wait_beyond_the_limit_is_a_retry(decide):
    decision = decide(limited(RATE_LIMIT_TIMEOUT_SECONDS + 1), task_of_its_own())
    assert decision.action == "retry"
    assert decision.retry_delay > timedelta(seconds=RATE_LIMIT_TIMEOUT_SECONDS)


def test_an_operator_that_has_waited_for_long_enough_is_retried(decide):
    """It reschedules itself within its own `rate_limit_timeout`, and raises the error after that."""
    task = WebDataSearchOperator(task_id="t", query="q", rate_limit_timeout=0)
    assert decide(limited(30), task).action == "retry"


@pytest.mark.skipif(not POLICIES_RESCHEDULE, reason="this Airflow has no chain of policies")
def test_in_a_chain():
    """Its wait stands, with its bounds; an error that it leaves to the task goes to the next policy."""
    from airflow.sdk import ChainRetryPolicy, ExceptionRetryPolicy, RetryAction, RetryRule

    others = ExceptionRetryPolicy(rules=[RetryRule(exception=Exception, action=RetryAction.FAIL)])
    chain = ChainRetryPolicy([WebDataRetryPolicy(), others])
    waits = chain.evaluate(limited(30), try_number=1, max_tries=0)
    assert waits.action is RetryAction.RESCHEDULE
    assert waits.retry_delay + waits.reschedule_timeout == timedelta(seconds=RATE_LIMIT_TIMEOUT_SECONDS)
    assert waits.reason == f"WebDataRetryPolicy: {limited(30)}"
    assert chain.evaluate(ValueError("its own"), 1, 0).action is RetryAction.FAIL
    assert chain.evaluate(ValueError("its own"), 1, 0).reason.endswith(
        "(after WebDataRetryPolicy: no decision)"
    )


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
    assert data == {"__type": "airflow_provider_webdata.policies.retry.WebDataRetryPolicy"}
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
