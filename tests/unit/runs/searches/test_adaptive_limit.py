"""How many calls may be in flight: falls at 429s, recovers, and never leaves its bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.runs.searches.adaptive_limit import AdaptiveLimit


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_many_429s_at_once_are_one_fall():
    """Twenty calls say one thing: too many."""
    limit = AdaptiveLimit(20, Clock())
    tickets = [limit.ticket for _ in range(20)]
    for ticket in tickets:
        limit.slow_down(ticket, 1.0)
    assert limit.limit == 10
    limit.slow_down(limit.ticket, 1.0)
    assert limit.limit == 5


def test_it_grows_by_one_for_each_round_that_went_well():
    limit = AdaptiveLimit(8, Clock())
    limit.slow_down(limit.ticket, 0.0)
    seen = []
    for _ in range(40):
        limit.succeeded(limit.ticket)
        seen.append(limit.limit)
    assert seen[:9] == [4, 4, 4, 5, 5, 5, 5, 5, 6]
    assert seen[-1] == 8


def test_calls_from_before_a_fall_do_not_lift_it():
    limit = AdaptiveLimit(8, Clock())
    early = limit.ticket
    limit.slow_down(early, 0.0)
    for _ in range(100):
        limit.succeeded(early)
    assert limit.limit == 4


def test_the_named_wait_is_kept():
    """The longest of those that were named, for all."""
    clock = Clock()
    limit = AdaptiveLimit(8, clock)
    limit.slow_down(limit.ticket, 10.0)
    limit.slow_down(0, 4.0)
    assert limit.pause == 10.0
    clock.now = 9.0
    assert limit.pause == 1.0
    clock.now = 11.0
    assert limit.pause == 0.0


def test_without_a_named_wait_pauses_grow_and_end():
    clock = Clock()
    limit = AdaptiveLimit(64, clock)
    pauses = []
    for _ in range(12):
        limit.slow_down(limit.ticket, None)
        pauses.append(limit.pause)
        clock.now += limit.pause
    for number, pause in enumerate(pauses):
        ceiling = min(2.0**number, 30.0)
        assert ceiling / 2 <= pause <= ceiling
    assert limit.paused == sum(pauses)


def test_success_ends_the_count_of_pauses():
    limit = AdaptiveLimit(4, Clock())
    limit.slow_down(limit.ticket, 25.0)
    assert limit.paused == 25.0
    limit.succeeded(limit.ticket)
    assert limit.paused == 0.0


STEPS = st.lists(
    st.tuples(
        st.booleans(), st.integers(0, 3), st.one_of(st.none(), st.integers(0, 100)), st.integers(0, 50)
    ),
    max_size=200,
)


@given(st.integers(1, 100), STEPS)
def test_bounds_hold_whatever_happens(most, steps):
    """From 1 to the most; a pause is never negative; more calls never get in because of a 429."""
    clock = Clock()
    limit = AdaptiveLimit(most, clock)
    for well, age, wait, passed in steps:
        before = limit.limit
        ticket = max(limit.ticket - age, 0)
        if well:
            limit.succeeded(ticket)
            assert limit.limit in (before, before + 1)
        else:
            limit.slow_down(ticket, wait)
            assert limit.limit <= before
            if wait is not None:
                assert limit.pause >= wait
        assert 1 <= limit.limit <= most
        assert limit.pause >= 0
        assert limit.paused >= 0
        clock.now += passed
