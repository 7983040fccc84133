"""The start of a job, row by row: how each event changes the record, and which state follows."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.runs.intent import Intent
from airflow_provider_webdata.runs.jobs.start_table import (
    RULES,
    Event,
    Finding,
    FoundJob,
    StartRecord,
    State,
    TaskJob,
    after_search,
)
from tests.support.direct import StateStore

SENT = StartRecord(
    generation=1, past=("old",), known=("old", "another"), requested_at="2026-03-01T12:00:00+00:00"
)
STARTED = replace(SENT, job_id="j", reports=True, invalid_urls=("x",), deadline=5.0)
FOUND = [FoundJob(None, "a"), FoundJob(None, "j")]
KNOWN = [FoundJob(1, "j")]
NEXT = {"requested_at": None, "job_id": None, "deadline": None}
NEW_JOB = TaskJob("j", True, ["x"])

NOTHING: dict[str, Any] = {}
ROWS: list[tuple[State, Event, StartRecord, dict[str, Any], dict[str, Any], State]] = [
    # state, event, stored before, what else was found, what changes of it, next state
    (State.NEW, Event.ANSWERED, SENT, {"job": NEW_JOB},
     {"job_id": "j", "reports": True, "invalid_urls": ("x",)}, State.OWNED),
    (State.NEW, Event.REJECTED, SENT, {}, {"requested_at": None}, State.RETRY),
    (State.NEW, Event.ANSWER_LOST, SENT, {}, NOTHING, State.UNANSWERED),
    (State.NEW, Event.KEY_REFUSED, SENT, {}, NOTHING, State.KEY_USED),
    (State.SENT, Event.FOUND, SENT, {"jobs": FOUND}, NOTHING, State.STARTED),
    (State.SENT, Event.ABSENT, SENT, {}, {"requested_at": None}, State.NEW),
    (State.SENT, Event.REPEATABLE, SENT, {}, NOTHING, State.NEW),
    (State.SENT, Event.TOO_EARLY, SENT, {}, NOTHING, State.LATER),
    (State.SENT, Event.UNCERTAIN, SENT, {}, NOTHING, State.FAILED),
    (State.UNANSWERED, Event.FOUND, SENT, {"jobs": FOUND}, NOTHING, State.LISTED),
    (State.UNANSWERED, Event.TOO_EARLY, SENT, {}, NOTHING, State.RETRY),
    (State.UNANSWERED, Event.UNCERTAIN, SENT, {}, NOTHING, State.FAILED),
    (State.KEY_USED, Event.FOUND, SENT, {"jobs": KNOWN}, NOTHING, State.STARTED),
    (State.KEY_USED, Event.UNCERTAIN, SENT, {}, NOTHING, State.FAILED),
    # The id is recorded already, with how the job reports.
    (State.STARTED, Event.ALIVE, STARTED, {"jobs": KNOWN, "job": TaskJob("j")}, NOTHING, State.OWNED),
    # The inbox knows the generation; the activity does not.
    (State.STARTED, Event.ALIVE, SENT, {"jobs": [FoundJob(3, "j")], "job": NEW_JOB},
     {"generation": 3, "job_id": "j", "reports": True, "invalid_urls": ("x",)}, State.OWNED),
    (State.STARTED, Event.ALIVE, SENT, {"jobs": [FoundJob(None, "j")], "job": TaskJob("j")},
     {"job_id": "j"}, State.OWNED),
    (State.STARTED, Event.OVER, STARTED, {"jobs": KNOWN},
     {**NEXT, "generation": 2, "past": ("old", "j")}, State.NEW),
    (State.STARTED, Event.OVER, SENT, {"jobs": [FoundJob(0, "old"), FoundJob(4, "j")]},
     {**NEXT, "generation": 5, "past": ("old", "j")}, State.NEW),
    (State.STARTED, Event.OVER, SENT, {"jobs": FOUND},
     {**NEXT, "generation": 3, "past": ("old", "a", "j")}, State.NEW),
    (State.STARTED, Event.OVER, StartRecord(), {"jobs": FOUND},
     {"generation": 2, "past": ("a", "j")}, State.NEW),
    (State.STARTED, Event.MISSING, STARTED, {}, NOTHING, State.FAILED),
    (State.LISTED, Event.ALIVE, SENT, {"jobs": [FoundJob(1, "j")], "job": NEW_JOB},
     {"job_id": "j", "reports": True, "invalid_urls": ("x",)}, State.OWNED),
    (State.LISTED, Event.OVER, SENT, {"jobs": [FoundJob(None, "j")]},
     {**NEXT, "generation": 2, "past": ("old", "j")}, State.RETRY),
    (State.LISTED, Event.MISSING, SENT, {}, NOTHING, State.FAILED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "event", "stored", "found", "changes", "then"),
    ROWS,
    ids=[f"{state.name} {event.name}" for state, event, *_ in ROWS],
)
def test_row(
    state: State,
    event: Event,
    stored: StartRecord,
    found: dict[str, Any],
    changes: dict[str, Any],
    then: State,
) -> None:
    rule = RULES[state, event]
    assert rule.change(stored, Finding(event, **found)) == replace(stored, **changes)
    assert rule.then is then


def test_every_row_is_tested() -> None:
    assert {(state, event) for state, event, *_ in ROWS} == set(RULES)
    assert {event for _, event in RULES} == set(Event)


ENDS = {State.OWNED, State.RETRY, State.LATER, State.FAILED}


def test_every_state_is_an_end_or_leads_to_one() -> None:
    assert {state for state, _ in RULES} == set(State) - ENDS
    leading = set(ENDS)
    for _ in State:
        leading |= {state for (state, _), rule in RULES.items() if rule.then in leading}
    assert leading == set(State)


SEARCHES = [
    # found, certain, listed by now, repeatable
    (True, False, False, False, Event.FOUND),
    (True, True, True, True, Event.FOUND),
    (False, False, True, False, Event.UNCERTAIN),
    (False, False, False, False, Event.UNCERTAIN),
    (False, True, False, False, Event.TOO_EARLY),
    (False, True, True, False, Event.ABSENT),
    (False, True, False, True, Event.TOO_EARLY),
    (False, False, False, True, Event.TOO_EARLY),
    (False, True, True, True, Event.REPEATABLE),
    (False, False, True, True, Event.REPEATABLE),
]  # fmt: skip


@pytest.mark.parametrize(("found", "certain", "listed", "repeatable", "event"), SEARCHES)
def test_search(found: bool, certain: bool, listed: bool, repeatable: bool, event: Event) -> None:
    assert after_search(found=found, certain=certain, listed_by_now=listed, repeatable=repeatable) is event


FIRST = [
    (StartRecord(), False, State.NEW),
    (StartRecord(), True, State.SENT),
    (StartRecord(deadline=5.0), False, State.NEW),
    (replace(SENT, requested_at=None), False, State.NEW),
    (SENT, False, State.SENT),
    (STARTED, False, State.STARTED),
]


@pytest.mark.parametrize(("record", "unrecorded", "state"), FIRST)
def test_first_state(record: StartRecord, unrecorded: bool, state: State) -> None:
    assert record.first_state(unrecorded=unrecorded) is state


@pytest.mark.parametrize("record", [StartRecord(), SENT, STARTED])
def test_a_record_is_read_as_it_was_stored(record: StartRecord) -> None:
    context: Any = {"ti": SimpleNamespace(max_tries=1), "task_state_store": StateStore()}
    Intent(context, "k").remember(**record.to_json())
    assert StartRecord.of(Intent(context, "k")) == record
    assert json.loads(json.dumps(record.to_json())) == record.to_json()
