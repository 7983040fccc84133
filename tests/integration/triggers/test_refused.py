# SPDX-License-Identifier: Apache-2.0
"""Waits whose connection the service refuses, while their jobs run: over HTTP, as in the triggerer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_webdata.states import answers
from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from tests.support.job_service import REFUSED, Answer, JobService
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("leftovers")

JOBS = [f"0b9c1f4e-0000-4000-8000-00000000000{number}" for number in range(6)]
FORBIDDEN: Answer = (403, {"success": False, "error": "Forbidden"}, {})
DOWN: Answer = (503, {"success": False, "error": "down"}, {})


@pytest.fixture
def service(jobs: JobService, connect: Callable[..., None]) -> JobService:
    connect(jobs.url, key="old", retry_budget=0)
    for job_id in JOBS:
        jobs.set("crawl", job_id, "scraping")
    return jobs


def trigger(job_id: str) -> WebDataJobTrigger:
    return WebDataJobTrigger("webdata_default", "crawl", job_id, 1.0, deadline=time.time() + PATIENCE)


def lines(logs: list[Any], *words: str) -> list[str]:
    return [entry["log_level"] for entry in logs if all(word in entry["event"] for word in words)]


@pytest.mark.rule("status-401", "status-403")
@pytest.mark.parametrize("refusal", [REFUSED, FORBIDDEN], ids=["401", "403"])
async def test_waits_survive_a_refusal(service: JobService, tools: Any, logs: Any, refusal: Answer) -> None:
    """Each log warns once per outage."""
    async with tools.waiting(*map(trigger, JOBS[:2])) as tasks:
        for _ in range(2):
            logs.clear()
            service.faults = [refusal, refusal, DOWN, *[refusal] * 4]
            await tools.until(lambda: not service.faults)
            for job_id in JOBS[:2]:
                await tools.until(lambda job_id=job_id: len(lines(logs, job_id, "accepts")) == 1)
                assert lines(logs, job_id, f"HTTP {refusal[0]}", "retries") == ["warning"]
        service.set_all("completed")
        events = await asyncio.gather(*tasks)
    assert [event["status"] for event in events] == ["done"] * 2
    assert not service.cancels()


@pytest.mark.rule("status-401")
async def test_the_next_poll_uses_a_corrected_key(service: JobService, connect: Any, tools: Any) -> None:
    async with tools.waiting(*map(trigger, JOBS[:2])) as tasks:
        service.accepts = "new"
        service.set_all("completed")
        before = len(service.requests)
        await tools.until(lambda: len(service.requests) >= before + 6)
        assert not any(task.done() for task in tasks)
        connect(service.url, key="new", retry_budget=0)
        events = await asyncio.gather(*tasks)
    assert [event["status"] for event in events] == ["done"] * 2


@pytest.mark.rule("status-401")
async def test_a_lasting_refusal_ends_the_wait_and_not_the_job(
    service: JobService, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tools.waiting(trigger(JOBS[0])) as (task,):
        monkeypatch.setattr(answers, "OUTAGE_SECONDS", 1.0)
        service.accepts = "new"
        event = await task
    assert (event["status"], event["verdict"], event["job_id"]) == ("error", "later", JOBS[0])
    assert "HTTP 401" in event["message"]
    assert event["message"].endswith("(WD-401)"), "the task adds the fix"
    assert not service.cancels()


@pytest.mark.parametrize(
    "refusal", [REFUSED, FORBIDDEN, (422, {"error": "no"}, {})], ids=["401", "403", "422"]
)
async def test_the_refusal_of_one_job_ends_no_other_wait(
    service: JobService, tools: Any, monkeypatch: pytest.MonkeyPatch, refusal: Answer
) -> None:
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.5)
    real = service.answer

    def answer(method: str, path: str, *rest: Any) -> Any:
        return refusal if JOBS[0] in path else real(method, path, *rest)

    service.answer = answer  # type: ignore[method-assign]
    tasks = [asyncio.create_task(tools.event_of(trigger(job_id))) for job_id in JOBS]
    assert (await tasks[0])["verdict"] == "later"
    assert not any(task.done() for task in tasks[1:])
    service.set_all("completed")
    assert {event["status"] for event in await asyncio.gather(*tasks[1:])} == {"done"}


async def test_a_connection_that_is_missing_for_a_while(
    service: JobService, connect: Any, tools: Any, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read again; a wait that begins meanwhile, as after a restart of the triggerer, does not end."""
    service.set_all("completed")
    monkeypatch.delenv("AIRFLOW_CONN_WEBDATA_DEFAULT")
    task = asyncio.create_task(tools.event_of(trigger(JOBS[0])))
    await tools.until(lambda: lines(logs, "does not exist"))
    connect(service.url, retry_budget=0)
    assert (await task)["status"] == "done"
    assert lines(logs, "does not exist") == ["warning"]


async def test_a_connection_that_stays_missing(
    service: JobService, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.5)
    monkeypatch.delenv("AIRFLOW_CONN_WEBDATA_DEFAULT")
    event = await tools.event_of(trigger(JOBS[0]))
    assert (event["status"], event["verdict"]) == ("error", "later")
    assert "does not exist" in event["message"]
