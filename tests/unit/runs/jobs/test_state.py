"""The record of a job's start: read as it was stored, and of the next job once one is over."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from airflow_provider_webdata.runs.failures import UncertainStartError
from airflow_provider_webdata.runs.jobs.state import NOT_STARTED, StartState, TaskJob
from airflow_provider_webdata.runs.state import TaskState
from tests.support.direct import StateStore

SENT = replace(
    NOT_STARTED,
    generation=1,
    past=("old",),
    known=("old", "another"),
    requested_at=datetime(2026, 3, 1, 12, tzinfo=timezone.utc),
)
STARTED = replace(SENT, job_id="j", reports=True, invalid_urls=("x",), deadline=5.0, stopped=True)


@pytest.mark.parametrize("record", [NOT_STARTED, SENT, STARTED])
def test_a_record_is_read_as_it_was_stored(record: StartState) -> None:
    context: Any = {"ti": SimpleNamespace(max_tries=1), "task_state_store": StateStore()}
    TaskState(context, "k", NOT_STARTED).write(record)
    assert TaskState(context, "k", NOT_STARTED).record == record


def test_an_unchanged_record_is_not_stored_again() -> None:
    """Between a billed response and the job's id, each write is one more that can fail."""
    store = StateStore()
    context: Any = {"ti": SimpleNamespace(max_tries=1), "task_state_store": store}
    state = TaskState(context, "k", NOT_STARTED)
    state.write(SENT)
    store.values.clear()
    state.set(generation=1)
    assert store.values == {}
    state.set(generation=2)
    assert store.get("k")["generation"] == 2


@pytest.mark.parametrize("name", ["known", "request"])
def test_a_record_without_a_field_of_each_start_is_damaged(name: str) -> None:
    context: Any = {"ti": SimpleNamespace(max_tries=1), "task_state_store": StateStore()}
    TaskState(context, "k", NOT_STARTED).write(SENT)
    stored = context["task_state_store"].get("k")
    context["task_state_store"].set("k", {key: value for key, value in stored.items() if key != name})
    with pytest.raises(UncertainStartError, match=f"required field `{name}`"):
        TaskState(context, "k", NOT_STARTED)


def test_a_job_keeps_at_most_a_thousand_invalid_urls() -> None:
    record = SENT.owning(TaskJob("j", True, [*range(1001)]))
    assert record == replace(SENT, job_id="j", reports=True, invalid_urls=(*range(1000),))


@pytest.mark.parametrize(
    ("over", "generation", "past"),
    [([], 2, ("old",)), (["j"], 2, ("old", "j")), (["old", "j", "k", "j"], 3, ("old", "j", "k"))],
)
def test_the_next_job_counts_those_before(over: list[str], generation: int, past: tuple[str, ...]) -> None:
    record = STARTED.next_generation(over)
    expected: dict[str, Any] = {"requested_at": None, "job_id": None, "deadline": None, "stopped": False}
    assert record == replace(STARTED, generation=generation, past=past, **expected)
