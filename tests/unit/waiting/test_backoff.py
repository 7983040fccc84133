# SPDX-License-Identifier: Apache-2.0
"""The pauses while a server does not answer."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.waiting.backoff import MAX_NAMED_PAUSE, MAX_PAUSE, Backoff


class NamedError(Exception):
    """An error of a server that says when to come back."""

    def __init__(self, seconds: float) -> None:
        super().__init__("busy")
        self.retry_after = seconds


@pytest.mark.parametrize(
    ("named", "least"),
    [(3.0, 3.0), (MAX_NAMED_PAUSE * 2, MAX_NAMED_PAUSE)],
    ids=["named", "too long"],
)
def test_nobody_comes_back_before_the_named_time(named: float, least: float) -> None:
    pauses = [Backoff("the service", lambda _: None).failed(NamedError(named)) for _ in range(50)]
    assert all(least <= pause <= least + 1 for pause in pauses)
    assert len(set(pauses)) > 1, "nor all at once"


def test_pauses_double_up_to_the_longest() -> None:
    backoffs = [Backoff("the service", lambda _: None) for _ in range(50)]
    for longest in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, MAX_PAUSE, MAX_PAUSE):
        pauses = [backoff.failed(Exception("busy")) for backoff in backoffs]
        assert all(longest / 2 <= pause <= longest for pause in pauses)
