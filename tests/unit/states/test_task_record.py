# SPDX-License-Identifier: Apache-2.0
"""The record's rounds, in all short histories of attempts, clears, and edits of `retries`; and its stored form."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import pytest

from airflow_provider_webdata.states.credits import Credits, Entry
from airflow_provider_webdata.states.task_record import (
    Started,
    TaskRecord,
    begun,
    read_stored,
    stored_form,
)

Event = Literal["succeed", "fail", "die", "clear", 0, 1, 2]
EVENTS: tuple[Event, ...] = ("succeed", "fail", "die", "clear", 0, 1, 2)
"""What ends an attempt, a clear, and new values of `retries`."""


def wrong_rounds(events: tuple[Event, ...]) -> tuple[int, bool]:
    """Return the number of attempts that take another round's record for theirs, or the reverse.

    Also return whether `retries` was lowered after an attempt that did not end for good, or changed after a clear.
    """
    retries = number = 1
    max_tries, cleared, round_before, wrong, lowered, may_lower = 1, 0, 0, 0, False, False
    stored: TaskRecord | None = None
    runs, pending = True, False
    for event in events:
        if isinstance(event, int):
            lowered |= (may_lower and event < retries) or pending
            retries = event
        elif event == "clear":
            if runs:
                return 0, False
            # As Airflow does.
            max_tries, number, cleared, runs = number + retries, number + 1, cleared + 1, True
            pending = True
        elif not runs:
            return 0, False
        else:
            record = begun(stored, max_tries, retries, number)
            is_new = stored is not None and record.round != stored.round
            wrong += stored is not None and is_new != (cleared != round_before)
            stored = TaskRecord(
                max_tries=max_tries, attempt=number, round=record.round, is_final=event == "succeed"
            )
            round_before, may_lower, pending = cleared, event != "succeed", False
            runs = event != "succeed" and number <= max_tries
            number += runs
    return wrong, lowered


def test_all_short_histories_of_rounds() -> None:
    """Of `max_tries` and `retries`, no attempt can tell whether `retries` was edited after a kill, or after a clear."""
    known = 0
    for length in range(1, 7):
        for events in product(EVENTS, repeat=length):
            wrong, lowered = wrong_rounds(events)
            assert not wrong or lowered, events
            known += bool(wrong)
    assert known, "the limit that `is_same_round` documents"


def test_a_new_round_keeps_the_credits_alone() -> None:
    stored = TaskRecord(
        max_tries=1, attempt=1, credits=Credits(settled={"a": Entry(round="0")}), wait_until=5.0
    )
    assert begun(stored, 3, 1, 2) == TaskRecord(max_tries=3, attempt=2, round=1, credits=stored.credits)


STARTED = Started(kind="crawl", key="k", id="job", invalid_urls=("x",))


@pytest.mark.parametrize(
    "record",
    [
        TaskRecord(max_tries=1),
        TaskRecord(max_tries=1, phase="known", started=STARTED, wait_until=1.5),
        TaskRecord(max_tries=1, phase="published", started=STARTED, is_final=True),
    ],
)
def test_a_record_is_read_as_it_was_stored(record: TaskRecord) -> None:
    assert read_stored(stored_form(record)) == record


@pytest.mark.parametrize(
    "stored",
    [
        {"max_tries": 1, "phase": "known"},
        {"max_tries": 1, "phase": "requested"},
        {"max_tries": 1, "phase": "known", "started": {"kind": "crawl", "key": "k"}},
        {"max_tries": 1, "started": {"kind": "crawl", "key": "k"}},
        {"phase": "planned"},
    ],
)
def test_a_record_that_lost_a_part_is_damaged(stored: Any) -> None:
    with pytest.raises(ValueError, match=r"contradicts the phase|missing required field"):
        read_stored(stored)
