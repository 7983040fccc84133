"""The record of a job's start: read as it was stored, and of the next job once one is over."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.runs.intent import Intent
from airflow_provider_webdata.runs.jobs.record import StartRecord, TaskJob
from tests.support.direct import StateStore

SENT = StartRecord(
    generation=1, past=("old",), known=("old", "another"), requested_at="2026-03-01T12:00:00+00:00"
)
STARTED = replace(SENT, job_id="j", reports=True, invalid_urls=("x",), deadline=5.0, stopped=True)


@pytest.mark.parametrize("record", [StartRecord(), SENT, STARTED])
def test_a_record_is_read_as_it_was_stored(record: StartRecord) -> None:
    context: Any = {"ti": SimpleNamespace(max_tries=1), "task_state_store": StateStore()}
    Intent(context, "k").remember(**record.to_json())
    assert StartRecord.of(Intent(context, "k")) == record
    assert json.loads(json.dumps(record.to_json())) == record.to_json()


def test_a_job_keeps_at_most_a_thousand_invalid_urls() -> None:
    record = SENT.owning(TaskJob("j", True, [*range(1001)]))
    assert record == replace(SENT, job_id="j", reports=True, invalid_urls=(*range(1000),))


@pytest.mark.parametrize(
    ("over", "generation", "past"),
    [([], 2, ("old",)), (["j"], 2, ("old", "j")), (["old", "j", "k", "j"], 3, ("old", "j", "k"))],
)
def test_the_next_job_counts_those_before(over: list[str], generation: int, past: tuple[str, ...]) -> None:
    record = STARTED.next_generation(over)
    expected = {"requested_at": None, "job_id": None, "deadline": None, "stopped": False}
    assert record == replace(STARTED, generation=generation, past=past, **expected)
