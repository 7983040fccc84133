"""A trigger that Airflow ends: by a user's doing, or because another triggerer has taken it over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_provider_webdata.tasks.retry_policy import HAS_RETRY_POLICIES
from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from tests.support.job_service import JobService

pytestmark = pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="Airflow 3.2 tells triggers of no kill")

JOB = "0b9c1f4e-0000-4000-8000-000000000002"
TASK = {"dag_id": "d", "task_id": "t", "run_id": "r", "map_index": -1}
MAPPED = {**TASK, "map_index": 3}


class Answers:
    """Airflow's answer about the states of tasks."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: dict[str, Any] = {}

    def __call__(self, **asked: Any) -> Any:
        self.asked = asked
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def of(task: dict[str, Any]) -> Any:
    """What a trigger reads of the task that the triggerer gives to it."""
    return SimpleNamespace(**task)


@pytest.mark.parametrize(
    ("task", "states", "left"),
    [
        (TASK, {"r": {"t": "deferred"}}, "scraping"),
        (MAPPED, {"r": {"t_3": "deferred"}}, "scraping"),
        (TASK, {"r": {"t": "failed"}}, "cancelled"),
        (MAPPED, {"r": {"t_3": "success"}}, "cancelled"),
        # Cleared: its next try has not begun.
        (TASK, {"r": {"t": None}}, "cancelled"),
        # Its DAG run was deleted.
        (TASK, {}, "cancelled"),
    ],
)
async def test_only_a_task_that_waits_no_more_takes_its_job_along(
    connect: Any, monkeypatch: pytest.MonkeyPatch, task: dict[str, Any], states: Any, left: str
) -> None:
    service = JobService()
    connect(service.url, retry_budget=0)
    service.set("crawl", JOB, "scraping")
    answers = Answers(states)
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(answers))
    trigger = WebDataJobTrigger("webdata_default", "crawl", JOB, {}, cancel_on_kill=True)
    trigger._task_instance = of(task)  # the setter wants all of a task

    await trigger.on_kill()

    (job,) = service.jobs.values()
    assert job["status"] == left
    wanted = {"dag_id": "d", "task_ids": ["t"], "run_ids": ["r"], "map_index": task["map_index"]}
    assert answers.asked == wanted
    service.stop()


async def test_where_airflow_cannot_be_asked_the_job_goes_on(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = JobService()
    connect(service.url, retry_budget=0)
    service.set("crawl", JOB, "scraping")
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(Answers(OSError("gone"))))
    trigger = WebDataJobTrigger("webdata_default", "crawl", JOB, {}, cancel_on_kill=True)
    trigger._task_instance = of(TASK)

    with pytest.raises(OSError, match="gone"):
        await trigger.on_kill()

    (job,) = service.jobs.values()
    assert job["status"] == "scraping"
    service.stop()
