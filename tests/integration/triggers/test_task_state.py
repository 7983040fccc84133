# SPDX-License-Identifier: Apache-2.0
"""A trigger that Airflow ends, because of a user or because another triggerer has taken it over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from tests.support.job_service import JobService

pytestmark = pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="Triggers learn of no kill on Airflow 3.2")

JOB = "0b9c1f4e-0000-4000-8000-000000000002"
NEXT_JOB = "0b9c1f4e-0000-4000-8000-000000000003"
TASK = {"dag_id": "d", "task_id": "t", "run_id": "r", "map_index": -1}
MAPPED = {**TASK, "map_index": 3}


class Answers:
    """Airflow's answer about the states of tasks."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.arguments: dict[str, Any] = {}

    def __call__(self, **arguments: Any) -> Any:
        self.arguments = arguments
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def task_instance(task: dict[str, Any]) -> Any:
    """Return the part of a task that Airflow and a trigger read."""
    return SimpleNamespace(**task, task=None)


@pytest.mark.parametrize(
    ("task", "states", "pushed", "left"),
    [
        (TASK, {"r": {"t": "deferred"}}, JOB, "scraping"),
        (MAPPED, {"r": {"t_3": "deferred"}}, JOB, "scraping"),
        # Without XComs, a cleared task cannot be told from one that another triggerer has taken over.
        (TASK, {"r": {"t": "deferred"}}, None, "scraping"),
        (TASK, {"r": {"t": "failed"}}, JOB, "cancelled"),
        (MAPPED, {"r": {"t_3": "success"}}, JOB, "cancelled"),
        # Cleared: its next try has not begun.
        (TASK, {"r": {"t": None}}, None, "cancelled"),
        # Cleared: its next try waits for another job.
        (TASK, {"r": {"t": "deferred"}}, NEXT_JOB, "cancelled"),
        (MAPPED, {"r": {"t_3": "deferred"}}, NEXT_JOB, "cancelled"),
        # Its DAG run was deleted.
        (TASK, {}, None, "cancelled"),
    ],
    ids=[
        "deferred",
        "deferred-mapped",
        "deferred-without-xcom",
        "failed",
        "success-mapped",
        "cleared",
        "cleared-deferred",
        "cleared-deferred-mapped",
        "no-run",
    ],
)
async def test_only_a_task_that_no_longer_waits_cancels_its_job(
    jobs: JobService,
    connect: Any,
    monkeypatch: pytest.MonkeyPatch,
    task: dict[str, Any],
    states: Any,
    pushed: str | None,
    left: str,
) -> None:
    connect(jobs.url, retry_budget=0)
    jobs.set("crawl", JOB, "scraping")
    answers = Answers(states)
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(answers))
    xcom = Answers(pushed)
    monkeypatch.setattr(BaseXCom, "get_one", staticmethod(xcom))
    trigger = WebDataJobTrigger("webdata_default", "crawl", JOB, {}, cancel_on_kill=True)
    trigger.task_instance = task_instance(task)

    await trigger.on_kill()

    (job,) = jobs.jobs.values()
    assert job["status"] == left
    wanted = {"dag_id": "d", "task_ids": ["t"], "run_ids": ["r"], "map_index": task["map_index"]}
    assert answers.arguments == wanted
    if xcom.arguments:
        assert xcom.arguments == {**task, "key": "job_id"}


async def test_the_job_stays_if_airflow_does_not_answer(
    jobs: JobService, connect: Any, monkeypatch: pytest.MonkeyPatch, logs: list[Any]
) -> None:
    connect(jobs.url, retry_budget=0)
    jobs.set("crawl", JOB, "scraping")
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(Answers(OSError("gone"))))
    trigger = WebDataJobTrigger("webdata_default", "crawl", JOB, {}, cancel_on_kill=True)
    trigger.task_instance = task_instance(TASK)

    await trigger.on_kill()

    (job,) = jobs.jobs.values()
    assert job["status"] == "scraping"
    assert [entry["event"] for entry in logs if "could not be canceled (gone)" in entry["event"]]
