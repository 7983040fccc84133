"""Waits for the end of a job, against a service and an inbox over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webhooks import webhook_for
from airflow_provider_webdata.sandbox.control import SandboxControl
from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from airflow_provider_webdata.waiting import policy, subjects
from airflow_provider_webdata.waiting.hub import Hub
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
    """Return a trigger with further arguments and values of the policy."""
    policy = {"wait_by": "auto", "poll_interval": 1.0, "safety_poll": 300.0}
    policy |= {name: given.pop(name) for name in list(given) if name in policy}
    return WebDataJobTrigger(
        "webdata_default", kind, job_id, policy, **{"deadline": time.time() + PATIENCE, **given}
    )


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


@pytest.mark.rule("job-completed", "job-failed", "job-cancelled")
@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("crawl", "completed"),
        ("crawl", "failed"),
        ("batch_scrape", "cancelled"),
        ("extract", "failed"),
        ("agent", "cancelled"),
    ],
)
async def test_a_job_that_is_over_already(service: Any, tools: Any, kind: str, state: str) -> None:
    service.set(kind, JOB, state, error="the queue was full")
    event = await tools.event_of(trigger(kind, poll_interval=600.0))
    assert (event["status"], event["job_status"]) == ("done" if state == "completed" else "failed", state)
    assert ("message" in event) == (state != "completed")
    assert ("the queue was full" in event.get("message", "")) == (state == "failed")
    assert len(service.looks()) == 1


ENDS = {
    "crawl": ("completed", "failed"),
    "batch_scrape": ("completed", "failed"),
    "extract": ("completed", "failed"),
    "agent": ("completed", "failed", "cancelled"),
}


@pytest.mark.rule("event-job-completed", "event-extract", "event-agent")
async def test_deliveries_report_the_end(service: Any, receiving: Any, tools: Any) -> None:
    cases = [(kind, state) for kind, states in ENDS.items() for state in states]
    for index, (kind, _) in enumerate(cases):
        service.set(kind, number(index), RUNNING[kind])
    waits = [
        trigger(kind, number(index), reports=True, poll_interval=600.0, safety_poll=600.0)
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


@pytest.mark.rule("delivery-order")
async def test_a_delivery_from_before_the_wait(service: Any, receiving: Any, tools: Any) -> None:
    service.set("crawl", JOB, "completed")
    await asyncio.to_thread(receiving.deliver, delivery("crawl.completed"), "k")
    event = await tools.event_of(trigger(reports=True, safety_poll=600.0))
    assert event["status"] == "done"


@pytest.mark.rule("delivery-order")
async def test_a_delivery_ahead_of_the_service_is_followed_by_polls(
    service: Any, receiving: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "HINT_PAUSES", (0.05,) * 1000)
    service.set("crawl", JOB, "scraping")
    async with tools.waiting(trigger(reports=True, safety_poll=600.0)) as (task,):
        before = len(service.looks())
        await asyncio.to_thread(receiving.deliver, delivery("crawl.completed"), "k")
        await tools.until(lambda: len(service.looks()) >= before + 2)
        assert not task.done(), "the service decides, not the delivery"
        service.set("crawl", JOB, "completed")
        assert (await task)["via"] == "webhook"


async def test_other_deliveries_cause_no_poll(service: Any, receiving: Any, tools: Any) -> None:
    service.set("crawl", JOB, "scraping")
    others = [
        delivery("crawl.page"),
        delivery("crawl.started"),
        delivery("crawl.completed", number(2)),
        delivery("batch_scrape.completed"),
        delivery("monitor.page", "m"),
    ]
    async with tools.waiting(trigger(reports=True, safety_poll=600.0)) as (task,):
        polls = len(service.looks())
        for body in others:
            await asyncio.to_thread(receiving.deliver, body, "k")
        reader = Hub.of("webdata_default").inbox
        await tools.until(lambda: (reader.last is not None and reader.last.job_id == "m") or task.done())
        assert (len(service.looks()), task.done()) == (polls, False)


@pytest.mark.rule("event-none-for-failure")
async def test_a_safety_poll_finds_a_failure_without_a_delivery(
    service: Any, receiving: Any, tools: Any
) -> None:
    service.set("crawl", JOB, "scraping")
    wanted = trigger(reports=True, poll_interval=600.0, safety_poll=1.0)
    async with tools.waiting(wanted) as (task,):
        service.set("crawl", JOB, "failed", error="boom")
        event = await task
    assert (event["status"], event["via"]) == ("failed", "polling")


@pytest.mark.rule("delivery-once", "job-counts", "job-scraping")
async def test_a_delivery_that_a_self_hosted_server_does_not_repeat(
    service: Any, inbox: Any, connect: Callable[..., None], tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's end follows a while after its last page, and its start after a while at 0 of 0."""
    monkeypatch.setattr(policy, "SINGLE_DELIVERY_SAFETY_POLL", 1.0)
    connect(service.url, retry_budget=0, server="self-hosted", **inbox.extra)
    inbox.lossy = True
    service.set("crawl", JOB, "scraping", completed=0, total=0)
    async with tools.waiting(trigger(reports=True, poll_interval=600.0)) as (task,):
        for progress in ({"completed": 2, "total": 8}, {"completed": 8, "total": 8}):
            polls = len(service.looks())
            service.set("crawl", JOB, "scraping", **progress)
            await tools.until(lambda polls=polls: len(service.looks()) > polls or task.done())
            assert not task.done()
        service.set("crawl", JOB, "completed", completed=8, total=8)
        event = await task
    assert (event["status"], event["via"]) == ("done", "polling")


async def test_auto_polls_seldom_only_if_the_job_reports(service: Any, receiving: Any, tools: Any) -> None:
    waits = []
    for index, reports in enumerate((True, False)):
        service.set("crawl", number(index), "scraping")
        waits.append(trigger(job_id=number(index), reports=reports, poll_interval=5.0, safety_poll=600.0))
    async with tools.waiting(*waits):
        polled = Hub.of("webdata_default").polls.subjects
        assert [polled["crawl", number(index)].interval for index in range(2)] == [600.0, 5.0]


async def test_a_timeout_names_the_last_state(service: Any, receiving: Any, tools: Any) -> None:
    service.set("crawl", JOB, "scraping", completed=3, total=9, creditsUsed=3)
    event = await tools.timed_out(trigger(reports=True))
    assert (event["status"], event["kind"], event["job_id"]) == ("timeout", "crawl", JOB)
    assert f"Timed out waiting for crawl {JOB}" in event["message"]
    assert "scraping, 3 of 9 pages done, 3 credits used" in event["message"]
    assert "the inbox was reachable" in event["message"]


async def test_new_progress_is_logged(service: Any, tools: Any, logs: Any) -> None:
    service.set("batch_scrape", JOB, "scraping", completed=1, total=4)
    async with tools.waiting(trigger("batch_scrape")) as (task,):
        await tools.until(lambda: len(service.looks()) >= 2)
        service.set("batch_scrape", JOB, "completed", completed=4, total=4, creditsUsed=4)
        await task
    lines = [entry["event"] for entry in logs if "Batch scrape" in entry["event"]]
    assert lines == [
        f"Batch scrape {JOB}: scraping, 1 of 4 pages done",
        f"Batch scrape {JOB}: completed, 4 of 4 pages done, 4 credits used",
    ]


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


async def test_trouble_of_the_service_is_survived(service: Any, tools: Any) -> None:
    service.faults = [(503, {"error": "down"}, {}), (429, {"error": "slow down"}, {"Retry-After": "0"})]
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


@pytest.mark.rule("status-401")
async def test_a_refused_key_ends_the_wait(service: Any, tools: Any) -> None:
    service.faults = [(401, {"error": "Unauthorized"}, {})] * 5
    event = await tools.event_of(trigger())
    assert (event["status"], event["verdict"]) == ("error", "never")


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


async def test_the_calls_of_many_waits_are_those_of_their_jobs(
    service: Any, receiving: Any, tools: Any
) -> None:
    jobs = [number(index) for index in range(5)]
    for job_id in jobs:
        service.set("crawl", job_id, "scraping")
    waits = [trigger(job_id=jobs[n % 5], reports=True, safety_poll=600.0) for n in range(400)]
    async with tools.waiting(*waits) as tasks:
        assert len(service.looks()) <= 2 * len(jobs)
        for job_id in jobs:
            service.set("crawl", job_id, "completed")
            await asyncio.to_thread(receiving.deliver, delivery("crawl.completed", job_id), "k")
        events = await asyncio.gather(*tasks)
    assert {event["job_id"] for event in events} == set(jobs)
    assert {event["via"] for event in events} == {"webhook"}
    assert len(service.looks()) <= 5 * len(jobs), service.requests


@pytest.mark.rule("job-cancel", "job-cancel-ended")
@pytest.mark.parametrize(
    ("kind", "state", "left"),
    [
        ("crawl", "scraping", "cancelled"),
        ("agent", "processing", "cancelled"),
        ("crawl", "completed", "completed"),
    ],
)
async def test_a_users_kill_cancels(service: Any, tools: Any, kind: str, state: str, left: str) -> None:
    service.set(kind, JOB, state)
    wanted = trigger(kind, cancel_on_kill=True)
    await wanted.on_kill()
    (job,) = service.jobs.values()
    assert job["status"] == left
    assert [line for line in service.requests if line.startswith("DELETE")]


@pytest.mark.rule("no-extract-cancel")
@pytest.mark.parametrize(("kind", "given"), [("extract", True), ("crawl", False)])
async def test_a_kill_that_cancels_nothing(service: Any, tools: Any, kind: str, given: bool) -> None:
    service.set(kind, JOB, RUNNING[kind])
    await trigger(kind, cancel_on_kill=given).on_kill()
    assert service.requests == []


async def test_a_cancelled_wait_leaves_the_job_running(service: Any, tools: Any) -> None:
    """A triggerer shuts down, or hands its triggers over."""
    service.set("crawl", JOB, "scraping")
    async with tools.waiting(trigger(cancel_on_kill=True)) as (task,):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not [line for line in service.requests if line.startswith("DELETE")]


def test_every_argument_survives() -> None:
    given: dict[str, Any] = {
        "webdata_conn_id": "c",
        "kind": "agent",
        "job_id": "j",
        "policy": {"wait_by": "webhook", "poll_interval": 5.0, "safety_poll": 7.0},
        "reports": True,
        "cancel_on_kill": True,
        "deadline": 1.0,
    }
    path, kwargs = WebDataJobTrigger(**given).serialize()
    assert path == "airflow_provider_webdata.triggers.job.WebDataJobTrigger"
    assert kwargs == given


@pytest.mark.parametrize(
    "given,word",
    [
        ({"kind": "map"}, "kind"),
        ({"poll_interval": 0.0}, "poll_interval"),
        ({"wait_by": "webhook"}, "webhook_url"),
    ],
    ids=["kind", "policy", "no-webhook"],
)
async def test_invalid_arguments_are_named(service: Any, tools: Any, given: Any, word: str) -> None:
    event = await tools.event_of(trigger(**given))
    assert event["status"] == "error"
    assert word in event["message"]


async def test_many_jobs_that_end_together(world: Any, tools: Any) -> None:
    """With real webhooks of the sandbox, a job is polled when its wait begins and when its delivery comes."""
    world.control.configure(page_seconds=1800)
    webhook = webhook_for(world.hook.get_settings(), "k", ["started", "completed"])
    body = {"urls": ["https://river.example/"], "ignoreInvalidURLs": True, "webhook": webhook}
    jobs = [world.hook.start_batch_scrape(body).id for _ in range(40)]
    waits = [trigger("batch_scrape", job_id, reports=True, safety_poll=600.0) for job_id in jobs]
    async with tools.waiting(*waits) as tasks:
        world.control.clear_requests()
        await asyncio.to_thread(SandboxControl(world.sandbox.url, timeout=PATIENCE).advance, 3600)
        events = await asyncio.gather(*tasks)
    assert [event["job_id"] for event in events] == jobs
    assert {(event["status"], event["via"]) for event in events} == {("done", "webhook")}
    assert len(world.control.requests("/v2/batch/scrape/", "GET")) <= 3 * len(jobs)
    assert len([line for line in world.inbox.reads() if "search" not in line]) <= 2 * len(jobs)
