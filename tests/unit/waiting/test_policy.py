"""The policy of polling: accepted, refused, and stored values."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_webdata.api.servers import HOSTED, SELF_HOSTED
from airflow_provider_webdata.waiting.policy import JOB_SAFETY_POLL, PollingPolicy, job_policy


def test_what_is_stored_is_all_of_it() -> None:
    policy = job_policy(timedelta(minutes=2))
    stored = {"wait_by": "auto", "poll_interval": 120.0, "safety_poll": 300}
    assert policy.serialize() == stored
    assert PollingPolicy.deserialize(stored) == policy


@pytest.mark.rule("delivery-once")
@pytest.mark.parametrize(
    ("policy", "hosted", "self_hosted"),
    [
        (job_policy(), JOB_SAFETY_POLL, 60),
        (PollingPolicy("auto", 30.0, 30.0), 30, 30),
        (PollingPolicy("auto", 30.0, 300.0, True), 300, 300),
    ],
    ids=["default", "shorter", "given to an event trigger"],
)
def test_a_server_that_repeats_no_delivery_is_polled_more_often(
    policy: PollingPolicy, hosted: float, self_hosted: float
) -> None:
    policy = PollingPolicy.deserialize(policy.serialize())
    assert (policy.safety_poll_of(HOSTED), policy.safety_poll_of(SELF_HOSTED)) == (hosted, self_hosted)


GOOD: dict[str, Any] = {"wait_by": "webhook", "poll_interval": 60.0, "safety_poll": 300.0}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"wait_by": "mail"}, "wait_by must be one of auto, webhook, polling"),
        ({"poll_interval": 0.5}, "poll_interval must be a number of seconds, at least 1"),
        ({"poll_interval": True}, "poll_interval must be"),
        ({"poll_interval": float("inf")}, "poll_interval must be"),
        ({"safety_poll": float("nan")}, "safety_poll must be"),
        ({"safety_poll": "1 h"}, "safety_poll must be"),
        ({"jitter": 5}, "does not support jitter of PollingPolicy"),
    ],
)
def test_what_cannot_work_is_refused(bad: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PollingPolicy.deserialize({**GOOD, **bad})
