# SPDX-License-Identifier: Apache-2.0
"""How often a wait polls."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_webdata.api.servers import HOSTED, SELF_HOSTED
from airflow_provider_webdata.waiting.policy import JOB_SAFETY_POLL, poll_seconds, safety_poll


@pytest.mark.parametrize(("given", "expected"), [(None, 30.0), (timedelta(minutes=2), 120.0), (1, 1.0)])
def test_the_interval_without_a_delivery(given: Any, expected: float) -> None:
    assert poll_seconds(given, 30.0) == expected


@pytest.mark.parametrize("given", [0.5, "60", True, float("nan"), timedelta(0)])
def test_invalid_intervals_are_named(given: Any) -> None:
    with pytest.raises(ValueError, match="poll_interval must be"):
        poll_seconds(given, 30.0)


@pytest.mark.rule("delivery-once")
@pytest.mark.parametrize(("interval", "hosted", "self_hosted"), [(30.0, 300.0, 60.0), (600.0, 600.0, 600.0)])
def test_the_interval_while_a_delivery_is_expected(
    interval: float, hosted: float, self_hosted: float
) -> None:
    """It is never shorter than without one."""
    found = [safety_poll(interval, JOB_SAFETY_POLL, server) for server in (HOSTED, SELF_HOSTED)]
    assert found == [hosted, self_hosted]
