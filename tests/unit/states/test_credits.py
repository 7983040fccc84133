# SPDX-License-Identifier: Apache-2.0
"""The ledger in all short histories of a task, and rules of it that are broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from airflow_provider_webdata.hooks.task_memory import TaskMemory
from airflow_provider_webdata.states import credits
from airflow_provider_webdata.states.credits import Credits, Entry
from tests.support.ledger_player import BrokenPromiseError, Call, Player

PLAIN, ONCE, JOB = Call("plain", "a"), Call("once", "a"), Call("job", "a")
# A limit that one call reaches makes the fewest states, so its histories are longer.
LIMITS = {None: 0, 3: 1, 5: 0}
PAIRS = [
    # Two threads send the same call.
    (ONCE, ONCE),
    (PLAIN, Call("once", "b")),
    (Call("plain", "b"), JOB),
    # Each with its own limit.
    (Call("plain", "a", "hook"), Call("plain", "a", "toolset")),
    (Call("once", "a", "hook"), JOB),
]


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("call", [PLAIN, ONCE, JOB], ids=lambda call: call.kind)
def test_all_histories_of_a_call(call: Call, limit: float | None) -> None:
    assert Player(call, limit=limit).walk(6 + LIMITS[limit]) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("calls", PAIRS, ids=lambda calls: "-".join(call.kind for call in calls))
def test_all_histories_of_two_calls(calls: tuple[Call, Call], limit: float | None) -> None:
    assert Player(*calls, limit=limit).walk(4 + LIMITS[limit]) > 1000


def _forgets_what_was_lost(credits: Credits) -> Credits:
    return replace(credits, open={})


def _reserves_beyond_the_limit(reserve: Any) -> Any:
    return lambda credits, name, entry, most: reserve(
        credits, name, entry, None if most is None else most + 1
    )


def _ignores_calls_in_flight(spent: Any) -> Any:
    return lambda credits, *of: spent(replace(credits, open={}), *of)


def _counts_other_rounds(_: Any) -> Any:
    return lambda credits, round, limit: sum(
        one.used + one.reserved
        for entries in (credits.open, credits.lost, credits.settled)
        for one in entries.values()
        if one.limit == limit
    )


def _counts_other_limits(_: Any) -> Any:
    return lambda credits, round, limit: sum(
        one.used + one.reserved
        for entries in (credits.open, credits.lost, credits.settled)
        for one in entries.values()
        if one.round == round
    )


def _settles_without_an_id(settle: Any) -> Any:
    return lambda credits, name, entry, call=None: settle(credits, name, entry)


def _keeps_the_reservation(settle: Any) -> Any:
    def settled(credits: Credits, name: str, entry: Entry, call: str | None = None) -> Credits:
        after: Credits = settle(credits, name, entry, call)
        return replace(after, open=credits.open)

    return settled


def _forgets_a_price(settle: Any) -> Any:
    def settled(credits: Credits, name: str, entry: Entry, call: str | None = None) -> Credits:
        without = {key: replace(held, reserved=0) for key, held in credits.open.items()}
        after: Credits = settle(replace(credits, open=without), name, entry, call)
        return after

    return settled


def _releases_what_was_lost(_: Any) -> Any:
    def released(credits: Credits, name: str, limit: str) -> Credits:
        key = f"{limit}/{name}"
        open, lost = (
            {one: entry for one, entry in held.items() if one != key} for held in (credits.open, credits.lost)
        )
        return replace(credits, open=open, lost=lost)

    return released


def _repeats_in_another_round(repeat: Any) -> Any:
    def repeated(credits: Credits, name: str, entry: Entry, call: str) -> Any:
        held = credits.lost.get(f"{entry.limit}/{name}")
        return repeat(credits, name, entry, call) or (None if held is None else credits)

    return repeated


def _keeps_a_repeated_call_open(repeat: Any) -> Any:
    def repeated(credits: Credits, name: str, entry: Entry, call: str) -> Any:
        return repeat(credits, name, entry, call) and credits

    return repeated


def _forgets_a_lost_response(_: Any) -> Any:
    return credits.release


def _takes_the_last_cost(_: Any) -> Any:
    return lambda before, entry: replace(entry, round=before.round, limit=before.limit)


def _replaces_a_lost_call(reserve: Any) -> Any:
    def reserved(credits: Credits, name: str, entry: Entry, most: float | None) -> Any:
        after = reserve(credits, name, entry, most)
        return after and replace(after, settled=credits.settled)

    return reserved


BROKEN: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a killed process leaves nothing": ("restarted", lambda _: _forgets_what_was_lost),
    "a credit more than the limit": ("reserve", _reserves_beyond_the_limit),
    "a lost call is replaced": ("reserve", _replaces_a_lost_call),
    "calls in flight do not count": ("spent", _ignores_calls_in_flight),
    "a limit counts all rounds": ("spent", _counts_other_rounds),
    "a limit counts the calls of another": ("spent", _counts_other_limits),
    "a call with an id counts twice": ("settle", _settles_without_an_id),
    "a settled call stays reserved": ("settle", _keeps_the_reservation),
    "an unknown cost is nothing": ("settle", _forgets_a_price),
    "the last cost counts": ("_latest", _takes_the_last_cost),
    "a lost response cost nothing": ("lose", _forgets_a_lost_response),
    "a free repetition frees its call": ("release", _releases_what_was_lost),
    "a call of another round is repeated for nothing": ("repeat", _repeats_in_another_round),
    "a failure frees a call that is in flight twice": ("repeat", _keeps_a_repeated_call_open),
}


def test_the_player_finds_a_call_that_is_sent_before_its_reservation_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TaskMemory, "write", TaskMemory.stage)
    with pytest.raises(BrokenPromiseError):
        Player(PLAIN, limit=3).walk(2)


def play_all() -> None:
    for length in (2, 3):
        for calls in (*PAIRS, (PLAIN,), (ONCE,), (JOB,)):
            Player(*calls, limit=3).walk(length)


@pytest.mark.parametrize("name", BROKEN)
def test_the_player_finds_a_broken_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, broken = BROKEN[name]
    monkeypatch.setattr(credits, rule, broken(getattr(credits, rule)))
    with pytest.raises(BrokenPromiseError):
        play_all()
