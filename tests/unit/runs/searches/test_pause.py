# SPDX-License-Identifier: Apache-2.0
"""The pause of a batch's new searches."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.api.errors import RateLimitError, TransportError
from airflow_provider_webdata.runs.searches.runner import Pause


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def refused(seconds):
    return RateLimitError("search", 429, "Rate limit exceeded", retry_after=seconds)


def test_the_longest_named_wait_is_kept():
    clock = Clock()
    pause = Pause(clock)
    for seconds in (4.0, 10.0, 4.0):
        pause.extend(refused(seconds))
    assert 10 <= pause.left <= 11
    assert pause.total == pause.left
    pause.succeeded()
    clock.now = 9.5
    assert pause.left > 0
    clock.now = 11.5
    assert pause.left == 0


def test_without_a_named_wait_pauses_grow_until_a_search_succeeds():
    clock = Clock()
    pause = Pause(clock)
    total = 0.0
    for ceiling in (0.5, 1, 2, 4, 8, 10, 10):
        for error in (refused(None), TransportError("search", "refused", sent=False)):
            pause.extend(error)
        assert ceiling / 2 <= pause.left <= ceiling
        total += pause.left
        clock.now += 11
    assert pause.total == pytest.approx(total)
    pause.succeeded()
    assert pause.total == 0
    pause.extend(refused(None))
    assert pause.left <= 0.5


def test_a_named_wait_of_nothing_does_not_end_the_growth_of_pauses():
    """Otherwise, all searches start again at once, for as long as the service refuses them."""
    clock = Clock()
    pause = Pause(clock)
    for ceiling in (0.5, 1, 2, 4, 8, 10):
        pause.extend(refused(0.0))
        assert ceiling / 2 <= pause.left <= ceiling
        clock.now += 11
