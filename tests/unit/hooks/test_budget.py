"""Credits that are reserved before calls and settled after them."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.hooks.budget import Budget
from tests.support.direct import StateStore, TaskInstance, context_of


def budget(store: StateStore | None, limit: float | None = 10, *, max_tries: int = 3, **more: Any) -> Budget:
    context: Any = context_of(TaskInstance(max_tries=max_tries), store)
    return Budget(limit, context, **more)


def test_what_is_reserved_is_not_left() -> None:
    made = budget(None)
    assert made.reserve("a", 6)
    assert not made.reserve("b", 5)
    assert (made.spent, made.left) == (0, 4)
    made.settle("a", 1)
    assert made.reserve("b", 9)
    made.settle("b", None)
    made.settle("never reserved", 9)
    assert (made.spent, made.left) == (10, 0)


def test_without_a_limit_nothing_is_recorded() -> None:
    store = StateStore()
    made = budget(store, None)
    assert made.reserve("a", 1e9)
    made.settle("a", 1e9)
    assert store.values == {}


def test_what_an_attempt_left_counts_until_it_is_settled() -> None:
    store = StateStore()
    assert budget(store).reserve("a", 4)
    assert budget(store).spent == 4
    assert budget(store, max_tries=4).spent == 0
    assert budget(store, name="other").spent == 0

    learned = budget(store)
    assert learned.is_unsettled("a")
    learned.settle("a", 1)
    assert budget(store).spent == 1

    assert budget(store).reserve("b", 4)
    again = budget(store)
    assert again.reserve("b", 4)
    again.settle("b", 0)
    assert budget(store).spent == 5


def test_credits_that_are_counted_elsewhere() -> None:
    assert not budget(None, counted=lambda: 8).reserve("a", 3)


def test_a_call_that_cannot_be_recorded_is_not_reserved() -> None:
    class Broken(StateStore):
        def set(self, key: str, value: Any) -> None:
            raise OSError("no database")

    made = budget(Broken())
    with pytest.raises(OSError, match="no database"):
        made.reserve("a", 9)
    assert made.left == 10


def test_of_many_calls_the_most_at_a_time_is_recorded() -> None:
    """Their own records say what was settled."""
    store = StateStore()

    def many() -> Budget:
        return budget(store, keeps_peak=True)

    killed = many()
    for name in "abcd":
        killed.reserve(name, 2)
        killed.amend(name, 1)
        if name != "a":
            killed.settle(name, 1)
    # Of a and each of the others, one after the other.
    assert (killed.spent, many().spent) == (3, 3)

    ended = many()
    ended.reserve("e", 2)
    ended.settle("e", 2)
    ended.close()
    assert (ended.spent, many().spent) == (5, 3)
