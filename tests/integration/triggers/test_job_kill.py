# SPDX-License-Identifier: Apache-2.0
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
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="Triggers learn of no kill on Airflow 3.2")

JOB = "0b9c1f4e-0000-4000-8000-000000000001"


async def ended(service: JobService, kind: str, by_user: bool, rounds: int = 1, **given: Any) -> None:
    """Run a trigger in Airflow's runner until it waits, then end it.

    :param rounds: rounds of the triggerer until the trigger ends, one a second. Each ends it again.
    """
    trigger = WebDataJobTrigger("webdata_default", kind, JOB, 30.0, **given)  # type: ignore[arg-type]
    path, kwargs = trigger.serialize()
    runner = TriggerRunner()
    runner.to_create.append(RunTrigger(id=1, classpath=path, encrypted_kwargs=Trigger.encrypt_kwargs(kwargs)))
    await runner.create_triggers()
    task = runner.triggers[1]["task"]
    while not service.looks():
        await asyncio.sleep(0.01)
        assert not task.done()
    if by_user:
        for number in range(rounds):
            await asyncio.sleep(1.0 if number else 0.0)
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


async def test_a_kill_that_takes_longer_than_a_round_of_the_triggerer(
    jobs: JobService, connect: Any, logs: list[Any]
) -> None:
    """The triggerer cancels `on_kill` itself; the service has asked to wait."""
    connect(jobs.url, retry_budget=10)
    jobs.set("crawl", JOB, "scraping")
    jobs.cancel_faults = [(429, {"error": "slow down"}, {"Retry-After": "2"})]
    await ended(jobs, "crawl", True, 2, cancel_on_kill=True)
    (job,) = jobs.jobs.values()
    await until(lambda: job["status"] == "cancelled")
    await until(lambda: any("was canceled" in entry["event"] for entry in logs))


async def test_a_kill_that_fails(jobs: JobService, connect: Any, logs: list[Any]) -> None:
    connect(jobs.url, retry_budget=0)
    jobs.set("crawl", JOB, "scraping")
    jobs.cancel_faults = [(503, {"error": "down"}, {})]
    await ended(jobs, "crawl", True, cancel_on_kill=True)
    (warning,) = [entry for entry in logs if "could not be canceled" in entry["event"]]
    assert warning["log_level"] == "warning"
    assert JOB in str(warning)
    assert "503" in str(warning)
