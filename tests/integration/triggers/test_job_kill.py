"""A user's kill reaches the job through Airflow's own triggerer code."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from airflow.executors.workloads import RunTrigger
from airflow.jobs.triggerer_job_runner import TriggerRunner
from airflow.models.trigger import Trigger

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from tests.support.job_service import RUNNING, JobService

pytestmark = pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="Triggers learn of no kill on Airflow 3.2")

JOB = "0b9c1f4e-0000-4000-8000-000000000001"


async def ended(service: JobService, kind: str, by_user: bool, **given: Any) -> None:
    """Run a trigger in Airflow's runner until it waits, then end it."""
    policy = {"wait_by": "auto", "poll_interval": 30.0, "safety_poll": 300.0}
    trigger = WebDataJobTrigger("webdata_default", kind, JOB, policy, **given)  # type: ignore[arg-type]
    path, kwargs = trigger.serialize()
    runner = TriggerRunner()
    runner.to_create.append(RunTrigger(id=1, classpath=path, encrypted_kwargs=Trigger.encrypt_kwargs(kwargs)))
    await runner.create_triggers()
    task = runner.triggers[1]["task"]
    while not service.looks():
        await asyncio.sleep(0.01)
        assert not task.done()
    if by_user:
        runner.to_cancel.append(1)
        await runner.cancel_triggers()
    else:
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.rule("job-cancel")
@pytest.mark.parametrize(
    ("kind", "by_user", "wanted", "left"),
    [
        ("crawl", True, True, "cancelled"),
        ("batch_scrape", True, True, "cancelled"),
        ("agent", True, True, "cancelled"),
        ("crawl", True, False, "scraping"),
        ("crawl", False, True, "scraping"),
    ],
)
async def test_a_kill(
    jobs: JobService, connect: Any, kind: str, by_user: bool, wanted: bool, left: str
) -> None:
    """A triggerer that shuts down, or hands its triggers over, cancels nothing."""
    connect(jobs.url, retry_budget=0)
    jobs.set(kind, JOB, RUNNING[kind])
    await ended(jobs, kind, by_user, cancel_on_kill=wanted)
    (job,) = jobs.jobs.values()
    assert job["status"] == left
