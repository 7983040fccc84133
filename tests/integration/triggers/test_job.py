# SPDX-License-Identifier: Apache-2.0
"""Waits for the end of a job, against a service and an inbox over HTTP."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from airflow_provider_webdata.waiting import inbox_source, job_target, policy, subjects
from airflow_provider_webdata.waiting.hub import Hub
from tests.integration.triggers.conftest import has_begun
from tests.support.job_service import RUNNING, JobService
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("leftovers")

JOB = "0b9c1f4e-0000-4000-8000-000000000001"


@pytest.fixture
def service(jobs: JobService, connect: Callable[..., None]) -> JobService:
    connect(jobs.url, retry_budget=0)
    return jobs


@pytest.fixture
def receiving(service: Any, inbox: Any, connect: Callable[..., None]) -> Any:
    """An inbox, and a connection that can receive deliveries."""
    connect(service.url, retry_budget=0, **inbox.extra)
    return inbox


def trigger(kind: str = "crawl", job_id: str = JOB, **given: Any) -> WebDataJobTrigger:
    wait = {"poll_interval": 1.0, "deadline": time.time() + PATIENCE, **given}
    return WebDataJobTrigger("webdata_default", kind, job_id, **wait)


def delivery(event: str, job_id: str = JOB, **more: Any) -> dict[str, Any]:
    return {
        "success": True,
        "type": event,
        "id": job_id,
        "webhookId": f"{event}-{job_id}",
        "data": [],
        **more,
    }


def number(index: int) -> str:
    """Return the id of one of several jobs."""
    return f"{JOB[:-3]}{index:03}"


async def test_jobs_that_complete_between_polls(service: Any, tools: Any) -> None:
    for kind, running in RUNNING.items():
        service.set(kind, JOB, running)
    async with tools.waiting(*(trigger(kind) for kind in RUNNING)) as tasks:
        service.set_all("completed")
        for kind, task in zip(RUNNING, tasks, strict=True):
            assert await task == {
                "status": "done",
                "kind": kind,
                "job_id": JOB,
                "job_status": "completed",
                "via": "polling",
            }


ENDS = {
    "crawl": ("completed", "failed"),
    "batch_scrape": ("completed", "failed"),
    "agent": ("completed", "failed", "cancelled"),
}


@pytest.mark.rule("event-job-completed", "event-agent", "job-cancelled")
async def test_deliveries_report_the_end(service: Any, receiving: Any, tools: Any) -> None:
    cases = [(kind, state) for kind, states in ENDS.items() for state in states]
    for index, (kind, _) in enumerate(cases):
        service.set(kind, number(index), RUNNING[kind])
    waits = [
        trigger(kind, number(index), reports=True, poll_interval=600.0)
        for index, (kind, _) in enumerate(cases)
    ]
    async with tools.waiting(*waits) as tasks:
        for index, ((kind, state), task) in enumerate(zip(cases, tasks, strict=True)):
            service.set(kind, number(index), state)
            body = delivery(f"{kind}.{state}", number(index))
            await asyncio.to_thread(receiving.deliver, body, "k")
            event = await task
            assert (event["job_status"], event["via"]) == (state, "webhook"), kind
            assert len(service.looks(number(index))) <= 3


@pytest.mark.rule("event-none-for-failure")
async def test_a_failure_without_a_delivery_is_found_by_a_safety_poll(
    service: Any, receiving: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_target, "JOB_SAFETY_POLL", 1.0)
    service.set("crawl", JOB, "scraping")
    async with tools.waiting(trigger(reports=True)) as (task,):
        service.set("crawl", JOB, "failed")
        event = await task
        assert (event["job_status"], event["via"]) == ("failed", "polling")


@pytest.mark.rule("delivery-order")
async def test_a_delivery_ahead_of_the_service_is_followed_by_polls(
    service: Any, receiving: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "HINT_PAUSES", (0.05,) * 1000)
    service.set("crawl", JOB, "scraping")
    async with tools.waiting(trigger(reports=True)) as (task,):
        before = len(service.looks())
        await asyncio.to_thread(receiving.deliver, delivery("crawl.completed"), "k")
        await tools.until(lambda: len(service.looks()) >= before + 2)
        assert not task.done(), "the service decides, not the delivery"
        service.set("crawl", JOB, "completed")
        assert (await task)["via"] == "webhook"


@pytest.mark.rule("delivery-once", "job-counts", "job-scraping")
async def test_a_delivery_that_a_self_hosted_server_does_not_repeat(
    service: Any, inbox: Any, connect: Callable[..., None], tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's end follows a while after its last page, and its start after a while at 0 of 0."""
    monkeypatch.setattr(policy, "SINGLE_DELIVERY_SAFETY_POLL", 1.0)
    connect(service.url, retry_budget=0, server="self-hosted", **inbox.extra)
    inbox.lossy = True
    service.set("crawl", JOB, "scraping", completed=0, total=0)
    async with tools.waiting(trigger(reports=True)) as (task,):
        for progress in ({"completed": 2, "total": 8}, {"completed": 8, "total": 8}):
            polls = len(service.looks())
            service.set("crawl", JOB, "scraping", **progress)
            await tools.until(lambda polls=polls: len(service.looks()) > polls or task.done())
            assert not task.done()
        service.set("crawl", JOB, "completed", completed=8, total=8)
        event = await task
    assert (event["status"], event["via"]) == ("done", "polling")


@pytest.mark.says("The message has the last state")
async def test_a_timeout_names_the_last_state(service: Any, receiving: Any, tools: Any) -> None:
    service.set("crawl", JOB, "scraping", completed=3, total=9, creditsUsed=3)
    event = await tools.timed_out(trigger(reports=True))
    assert (event["status"], event["kind"], event["job_id"]) == ("timeout", "crawl", JOB)
    assert f"Timed out waiting for crawl {JOB}" in event["message"]
    assert "scraping, 3 of 9 pages done, 3 credits used" in event["message"]
    assert "the inbox was reachable" in event["message"]


@pytest.mark.rule("job-not-found", "job-expiry")
async def test_a_job_that_is_gone(service: Any, tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 1.0)
    event = await tools.event_of(trigger("batch_scrape"))
    assert (event["status"], event["verdict"], event["job_id"]) == ("error", "never", JOB)
    assert "expired" in event["message"]


@pytest.mark.rule("job-not-found")
async def test_a_job_that_is_not_there_yet(service: Any, tools: Any) -> None:
    service.faults = [(404, {"error": "Job not found."}, {})] * 2
    service.set("crawl", JOB, "completed")
    assert (await tools.event_of(trigger()))["status"] == "done"


@pytest.mark.parametrize("kind", ["crawl", "batch_scrape", "agent"])
async def test_a_job_runs_in_any_state_that_is_not_an_end(service: Any, tools: Any, kind: str) -> None:
    """groktocrawl names each kind of running job `processing`."""
    service.set(kind, JOB, "processing")
    waiting = asyncio.create_task(tools.event_of(trigger(kind)))
    while len(service.looks(JOB)) < 2:
        await asyncio.sleep(0.01)
    assert not waiting.done()
    service.set(kind, JOB, "completed")
    assert (await waiting)["status"] == "done"


@pytest.mark.rule("error-body")
@pytest.mark.parametrize("status", [400, 403, 404, 421])
async def test_a_proxy_that_does_not_know_the_service_for_a_while(
    service: Any, tools: Any, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """The 404 of a proxy does not mean that the job is missing, nor its 403 that the wait is not permitted."""
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 0.0)
    service.faults = [(status, "page not found", {"Content-Type": "text/plain"})] * 3
    service.set("crawl", JOB, "completed")
    assert (await tools.event_of(trigger()))["status"] == "done"


async def test_the_log_of_a_wait_has_no_secrets_of_urls(service: Any, tools: Any, logs: Any) -> None:
    """Airflow's masker knows them only in the process of the task."""
    text = "no answer from https://user:hush-1@a.example/?key=hush-2"
    service.faults = [(500, {"error": text}, {}), (429, {"error": text}, {"Retry-After": "1"})]
    service.set("crawl", JOB, "failed", error=text)
    event = await tools.event_of(trigger())
    assert "https://user:***@a.example/?key=***" in event["message"]
    shown = f"{logs} {event}"
    assert "next attempt" in shown
    assert "hush" not in shown


async def test_a_failing_job_delays_no_other(
    service: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll of one job fails again and again; the others end meanwhile."""
    failing = "0b9c1f4e-0000-4000-8000-00000000dead"
    real = service.answer

    def answer(method: str, path: str, *rest: Any) -> Any:
        return (500, {"error": "cannot"}, {}) if failing in path else real(method, path, *rest)

    service.answer = answer
    others = [number(index) for index in range(10)]
    for job_id in others:
        service.set("crawl", job_id, "completed")
    tasks = [asyncio.create_task(tools.event_of(trigger(job_id=job_id))) for job_id in (failing, *others)]
    try:
        events = await asyncio.gather(*tasks[1:])
        assert {event["status"] for event in events} == {"done"}
        assert not tasks[0].done()
    finally:
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_job_without_an_answer_keeps_no_other_from_its_polls(
    service: Any, connect: Callable[..., None], tools: Any
) -> None:
    """The polls of one job time out; of those after it, some run on, and others end."""
    connect(service.url, retry_budget=0, timeout=0.5)
    silent = "0b9c1f4e-0000-4000-8000-00000000dead"
    real = service.answer

    def answer(method: str, path: str, *rest: Any) -> Any:
        if silent in path:
            service._stopped.wait(1)
            return None
        return real(method, path, *rest)

    service.answer = answer
    running, ended = [number(index) for index in range(8)], [number(index) for index in range(8, 12)]
    for job_id in running:
        service.set("crawl", job_id, "scraping")
    for job_id in ended:
        service.set("crawl", job_id, "completed")
    tasks = [
        asyncio.create_task(tools.event_of(trigger(job_id=job_id))) for job_id in (silent, *running, *ended)
    ]
    try:
        events = await asyncio.gather(*tasks[-len(ended) :])
        assert {event["status"] for event in events} == {"done"}
        assert not any(task.done() for task in tasks[: -len(ended)])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_calls_of_many_waits_are_those_of_their_jobs(
    service: Any, receiving: Any, tools: Any
) -> None:
    jobs = [number(index) for index in range(5)]
    for job_id in jobs:
        service.set("crawl", job_id, "scraping")
    waits = [trigger(job_id=jobs[n % 5], reports=True) for n in range(400)]
    async with tools.waiting(*waits) as tasks:
        assert len(service.looks()) <= 2 * len(jobs)
        for job_id in jobs:
            service.set("crawl", job_id, "completed")
            await asyncio.to_thread(receiving.deliver, delivery("crawl.completed", job_id), "k")
        events = await asyncio.gather(*tasks)
    assert {event["job_id"] for event in events} == set(jobs)
    assert {event["via"] for event in events} == {"webhook"}
    assert len(service.looks()) <= 5 * len(jobs), service.requests


@pytest.mark.rule("job-cancel-ended")
async def test_a_kill_that_ends_no_job(service: Any) -> None:
    service.set("crawl", JOB, "completed")
    await trigger("crawl", cancel_on_kill=True).on_kill()
    (job,) = service.jobs.values()
    assert job["status"] == "completed"
    assert len([line for line in service.requests if line.startswith("DELETE")]) == 1


async def test_an_invalid_argument_is_named(service: Any, tools: Any) -> None:
    event = await tools.event_of(trigger("map"))
    assert event["status"] == "error"
    assert "kind must be one of" in event["message"]


@pytest.fixture
def moved() -> Iterator[JobService]:
    """The service at its next address."""
    service = JobService()
    yield service
    service.stop()


async def test_a_wait_follows_a_connection_whose_address_changed(
    service: JobService, moved: JobService, connect: Any, tools: Any
) -> None:
    service.set("crawl", JOB, "scraping")
    moved.set("crawl", JOB, "completed", total=1, completed=1)
    async with tools.waiting(trigger()) as (task,):
        connect(moved.url, retry_budget=0)
        service.faults = [(503, {"error": "moved"}, {})] * 1000
        event = await task
    assert event["status"] == "done"


async def test_a_job_of_another_server_than_earlier_waits(
    service: JobService, moved: JobService, connect: Any, tools: Any
) -> None:
    """The earlier wait keeps the hub, and the former server still runs."""
    service.set("crawl", number(1), "scraping")
    moved.set("crawl", number(1), "scraping")
    moved.set("crawl", number(2), "completed", total=1, completed=1)
    async with tools.waiting(trigger(job_id=number(1))) as (earlier,):
        connect(moved.url, retry_budget=0)
        event = await tools.event_of(trigger(job_id=number(2)))
        assert not earlier.done()
    assert event["status"] == "done"


async def test_an_outage_keeps_a_connection_that_cannot_be_read(
    service: JobService, connect: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.set("crawl", JOB, "scraping")
    async with tools.waiting(trigger()) as (task,):
        monkeypatch.delenv("AIRFLOW_CONN_WEBDATA_DEFAULT")
        service.set("crawl", JOB, "completed", total=1, completed=1)
        service.faults = [(503, {"error": "down"}, {})]
        event = await task
    assert event["status"] == "done"


@pytest.mark.parametrize("outage", ["from the start", "later"])
@pytest.mark.says("the triggerer polls, and the log says why")
async def test_while_the_inbox_is_silent_the_service_is_polled(
    service: Any, receiving: Any, tools: Any, logs: Any, monkeypatch: pytest.MonkeyPatch, outage: str
) -> None:
    """The log says why once; when the inbox answers again, deliveries count again."""
    monkeypatch.setattr(inbox_source, "SILENT_SECONDS", 0.0)
    service.set("crawl", JOB, "scraping")
    if outage == "from the start":
        receiving.stop()
    begun = (lambda hub: hub.inbox.backoff.notice) if outage == "from the start" else has_begun
    async with tools.waiting(trigger(reports=True), begun=begun) as (task,):
        if outage == "later":
            await asyncio.to_thread(receiving.stop)
        hub = Hub.of("webdata_default")
        await tools.until(lambda: hub.inbox.backoff.notice)
        (subject,) = hub.polls.subjects.values()
        polled = subject.polled_at
        await tools.until(lambda: subject.polled_at != polled)
        await asyncio.to_thread(receiving.start)
        await tools.until(lambda: hub.inbox.backoff.notice is None)
        # The next poll sets the longer pause again. While a poll runs, its time is infinite.
        clock = asyncio.get_running_loop().time
        await tools.until(lambda: clock() + 200 < subject.due < math.inf)
        service.set("crawl", JOB, "completed")
        await asyncio.to_thread(receiving.deliver, delivery("crawl.completed"))
        assert (await task)["via"] == "webhook"
    reasons = [entry["event"] for entry in logs if "does not respond" in entry["event"]]
    assert len(reasons) == 1
    assert "Until then, jobs and checks are polled" in reasons[0]
