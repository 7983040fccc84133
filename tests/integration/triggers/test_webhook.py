"""Waits for any delivery, while the inbox is restarted, fails, or refuses the reader."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.common import worker_exit
from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger
from tests.support.service import WEBHOOK_SECRET
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("leftovers")


def trigger(**given: Any) -> WebDataWebhookTrigger:
    given.setdefault("deadline", time.time() + PATIENCE)
    return WebDataWebhookTrigger("webdata_default", **given)


def body(event: str = "crawl.completed", job: str = "j1", number: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "success": True,
        "type": event,
        "id": job,
        "webhookId": f"{event}-{job}-{number}",
        "data": [],
        **more,
    }


FITTING: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "key": ({"key": "k1"}, body(job="j1"), "k1"),
    "no key in the address": ({"job_id": "j2"}, body(job="j2"), None),
    "event with its operation": ({"key": "k3", "events": ["crawl.completed"]}, body(job="j3"), "k3"),
    "event without its operation": ({"key": "k4", "events": ["completed"]}, body(job="j4"), "k4"),
    "one of several events": ({"events": ["crawl.failed", "agent.failed"]}, body("agent.failed", "j5"), "k5"),
    "monitor": ({"monitor_id": "m1"}, body("monitor.page", "c1", data=[{"monitorId": "m1"}]), "k6"),
    "all arguments": ({"key": "k7", "job_id": "j7", "events": ["completed"]}, body(job="j7"), "k7"),
    "anything": ({}, {"odd": 1}, "k8"),
}
"""The arguments of a wait, the delivery that ends it, and the key of that delivery."""


async def test_a_delivery_that_fits_ends_the_wait(world: Any, tools: Any) -> None:
    """Deliveries for other waits do not end it."""
    waits = {case: trigger(**given) for case, (given, _, _) in FITTING.items()}
    anything = waits.pop("anything")
    async with tools.waiting(*waits.values()) as tasks:
        other = body("batch_scrape.started", "other", data=[{"monitorId": "other"}])
        await asyncio.to_thread(world.inbox.deliver, other, "other")
        for case, task in zip(waits, tasks, strict=True):
            _, sent, key = FITTING[case]
            assert not task.done(), case
            await asyncio.to_thread(world.inbox.deliver, sent, key)
            await ends_with(world, task, sent, key)
    async with tools.waiting(anything) as (task,):
        _, sent, key = FITTING["anything"]
        await asyncio.to_thread(world.inbox.deliver, sent, key)
        await ends_with(world, task, sent, key)


async def ends_with(world: Any, task: asyncio.Task[Any], sent: dict[str, Any], key: str | None) -> None:
    event = await task
    assert event["status"] == "done"
    assert (event.get("event"), event.get("job_id"), event.get("key")) == (sent.get("type"), sent.get("id"), key)
    with world.hook.inbox() as reader:
        assert reader.fetch(event["delivery_id"]).payload() == sent


NOT_FITTING: dict[str, dict[str, Any]] = {
    "another key": {"key": "k2"},
    "another event": {"key": "k1", "events": ["crawl.page"]},
    "the same name of another operation": {"key": "k1", "events": ["batch_scrape.completed"]},
    "another job": {"key": "k1", "job_id": "j2"},
    "another monitor": {"key": "k1", "monitor_id": "m2"},
    "too early": {"key": "k1", "after": "2999-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("early", [True, False], ids=["early", "during"])
async def test_a_delivery_that_does_not_fit_is_ignored(world: Any, tools: Any, early: bool) -> None:
    if early:
        world.inbox.deliver(body(), "k1")
    waits = [trigger(**case) for case in NOT_FITTING.values()]
    async with tools.waiting(*waits, trigger(key="k1")) as (*tasks, witness):
        if not early:
            await asyncio.to_thread(world.inbox.deliver, body(), "k1")
        assert (await witness)["status"] == "done"
        assert not any(task.done() for task in tasks)
        tools.expire()
        events = [await task for task in tasks]
    for case, event in zip(NOT_FITTING, events, strict=True):
        assert event["status"] == "timeout", case
        assert "the inbox was reachable" in event["message"], case


async def test_the_oldest_early_delivery_ends_the_wait(world: Any, tools: Any) -> None:
    for number in range(3):
        world.inbox.deliver(body(number=number), "k1")
    event = await tools.event_of(trigger(key="k1"))
    with world.hook.inbox() as reader:
        assert reader.fetch(event["delivery_id"]).payload()["webhookId"].endswith("-0")


async def test_a_task_is_resumed_once_its_worker_is_gone(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "1")
    monkeypatch.setattr(worker_exit, "SCHEDULER_LAG", 0.1)
    world.inbox.deliver(body(), "k1")
    began = time.monotonic()
    deferred = asyncio.create_task(tools.event_of(trigger(key="k1")))
    # Both find it. The event of the one without a worker is not held back.
    assert (await tools.event_of(trigger(key="k1", deadline=None)))["status"] == "done"
    assert not deferred.done() or time.monotonic() - began >= 1.1
    assert (await deferred)["status"] == "done"
    assert time.monotonic() - began >= 1.1


async def test_waits_survive_an_api_server_that_restarts(world: Any, tools: Any, logs: Any) -> None:
    async with tools.waiting(trigger(key="k1"), trigger(key="k2")) as tasks:
        await asyncio.to_thread(world.inbox.stop)
        await tools.until(lambda: sum("does not respond" in entry["event"] for entry in logs) >= 2)
        await asyncio.to_thread(world.inbox.start)
        for key in ("k1", "k2"):
            await asyncio.to_thread(world.inbox.deliver, body(job=key), key)
        assert [(await task)["key"] for task in tasks] == ["k1", "k2"]
    lines = [
        (entry["log_level"], "available again" in entry["event"])
        for entry in logs
        if not entry["event"].startswith("Waiting for")
    ]
    assert lines == [("warning", False)] * 2 + [("info", True)] * 2, "the begin and the end, for each wait"
    ends = [line for line in world.inbox.reads() if "after=end" in line]
    assert len(ends) == 1, "the reader continued at its cursor"


async def test_a_delivery_while_the_reader_is_cut_off_is_found(world: Any, tools: Any) -> None:
    async with tools.waiting(trigger(key="k1")) as (task,):
        world.inbox.answers.extend([(503, {"error": "the database is down"})] * 2)
        await asyncio.to_thread(world.inbox.deliver, body(job="other"), "other")
        await tools.until(lambda: not world.inbox.answers)
        await asyncio.to_thread(world.inbox.deliver, body(job="j2"), "k1")
        assert (await task)["job_id"] == "j2"


async def test_a_changed_secret_is_read_again(world: Any, tools: Any, connect: Any, logs: Any) -> None:
    async with tools.waiting(trigger(key="k1")) as (task,):
        await asyncio.to_thread(world.inbox.stop)
        world.inbox.secret = "another-secret-that-is-long"
        await asyncio.to_thread(world.inbox.start)
        await tools.until(lambda: any("rejects the token" in entry["event"] for entry in logs))
        connect(
            world.sandbox.url,
            webhook_url=world.inbox.url,
            webhook_secret=world.inbox.secret,
            inbox_url=world.inbox.url,
        )
        await asyncio.to_thread(world.inbox.deliver, body(), "k1")
        assert (await task)["status"] == "done"
    text = " ".join(entry["event"] for entry in logs)
    assert world.inbox.secret not in text
    assert WEBHOOK_SECRET not in text


async def test_an_inbox_that_was_reset_is_searched_again(world: Any, tools: Any) -> None:
    async with tools.waiting(trigger(key="k1")) as (task,):
        world.inbox.answers.append((410, {"error": "reset", "cursor": "0"}))
        await asyncio.to_thread(world.inbox.deliver, body(job="other"), "other")
        await tools.until(lambda: not world.inbox.answers)
        assert not task.done()
        await asyncio.to_thread(world.inbox.deliver, body(), "k1")
        assert (await task)["status"] == "done"


@pytest.mark.parametrize(
    "extra,words",
    [
        ({"inbox_url": "http://127.0.0.1:9"}, "does not respond"),
        ({"inbox_url": "the sandbox"}, "has no inbox"),
    ],
    ids=["unreachable", "missing"],
)
async def test_a_timeout_names_an_unreadable_inbox(
    world: Any, tools: Any, connect: Any, extra: dict[str, str], words: str
) -> None:
    url = extra["inbox_url"].replace("the sandbox", world.sandbox.url)
    connect(world.sandbox.url, webhook_secret=world.inbox.secret, inbox_url=url)
    event = await tools.timed_out(trigger(key="k1"), begun=lambda hub: hub.inbox.backoff.notice)
    assert event["status"] == "timeout"
    assert "could not be read" in event["message"]
    assert words in event["message"]


async def test_a_connection_without_a_secret(world: Any, tools: Any, connect: Any) -> None:
    connect(world.sandbox.url)
    event = await tools.event_of(trigger(key="k1"))
    assert (event["status"], event["verdict"]) == ("error", "never")


async def test_an_unknown_connection(tools: Any) -> None:
    event = await tools.event_of(WebDataWebhookTrigger("no_such_connection", key="k"))
    assert event["status"] == "error"
    assert "no_such_connection" in event["message"]


async def test_an_impossible_value_is_refused(world: Any, tools: Any) -> None:
    for value in ("", "x" * 201, "a\nb"):
        event = await tools.event_of(trigger(job_id=value))
        assert event["status"] == "error", value
        assert "job_id" in event["message"], value


@pytest.mark.parametrize("zone", [timezone.utc, timezone(timedelta(hours=5))])
async def test_the_default_deadline_is_that_of_airflow(world: Any, tools: Any, zone: timezone) -> None:
    wanted = trigger(key="k", deadline=None)
    wanted.timeout_after = datetime.fromtimestamp(time.time() + 1, zone)
    assert (await tools.event_of(wanted))["status"] == "timeout"


def test_every_argument_survives() -> None:
    given = {
        "webdata_conn_id": "c",
        "key": "k",
        "events": ["a", "b"],
        "job_id": "j",
        "monitor_id": "m",
        "after": "2026-01-01T00:00:00Z",
        "deadline": 5.0,
    }
    path, kwargs = WebDataWebhookTrigger(**given).serialize()
    assert path == "airflow_provider_webdata.triggers.webhook.WebDataWebhookTrigger"
    assert kwargs == given
