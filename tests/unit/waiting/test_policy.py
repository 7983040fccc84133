"""The policy of polling: accepted, refused, and stored values."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_webdata.api.servers import HOSTED, SELF_HOSTED
from airflow_provider_webdata.options import Wait
from airflow_provider_webdata.waiting.policy import PollingPolicy


def test_what_is_stored_is_all_of_it() -> None:
    policy = Wait(poll_interval=timedelta(minutes=2)).policy(30, 300)
    stored = {"wait_by": "auto", "poll_interval": 120.0, "safety_poll": 300}
    assert policy.serialize() == stored
    assert PollingPolicy.deserialize(stored) == policy


@pytest.mark.rule("delivery-once")
@pytest.mark.parametrize(
    ("wait", "default", "hosted", "self_hosted"),
    [(Wait(), 300, 300, 60), (Wait(), 30, 30, 30), (Wait(safety_poll=300), 300, 300, 300)],
    ids=["default", "shorter default", "given"],
)
def test_a_server_that_repeats_no_delivery_is_polled_more_often(
    wait: Wait, default: float, hosted: float, self_hosted: float
) -> None:
    policy = PollingPolicy.deserialize(wait.policy(30, default).serialize())
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
