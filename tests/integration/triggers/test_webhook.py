# SPDX-License-Identifier: Apache-2.0
"""Waits for any delivery, while the inbox is restarted, fails, or refuses the reader."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.common import worker_exit
from airflow_provider_webdata.inbox.reader import AsyncInboxReader, InboxUnreachableError
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


@pytest.mark.parametrize("early", [True, False], ids=["early", "during"])
async def test_a_delivery_ends_the_waits_that_it_fits(world: Any, tools: Any, early: bool) -> None:
    sent = body(data=[{"monitorId": "m1"}])
    if early:
        world.inbox.deliver(sent, "k1")
    wanted = trigger(key="k1", job_id="j1", monitor_id="m1", events=["completed"])
    async with tools.waiting(wanted, trigger(), trigger(key="k2")) as (fitting, any_one, other):
        if not early:
            await asyncio.to_thread(world.inbox.deliver, sent, "k1")
        event = await fitting
        assert (event["status"], event["event"], event["job_id"], event["key"]) == (
            *("done", "crawl.completed", "j1", "k1"),
        )
        with world.hook.inbox() as reader:
            assert reader.fetch(event["delivery_id"]).payload() == sent
        # Without a key, deliveries from before the wait do not count.
        assert early or (await any_one)["delivery_id"] == event["delivery_id"]
        assert (other.done(), any_one.done()) == (False, not early)


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


@pytest.mark.parametrize("former", ["http://127.0.0.1:9", "the sandbox"], ids=["unreachable", "missing"])
async def test_a_changed_address_is_read_again(world: Any, tools: Any, connect: Any, former: str) -> None:
    url = former.replace("the sandbox", world.sandbox.url)
    connect(world.sandbox.url, webhook_secret=world.inbox.secret, inbox_url=url)
    async with tools.waiting(trigger(key="k1"), begun=lambda hub: hub.inbox.backoff.notice) as (task,):
        connect(world.sandbox.url, webhook_secret=world.inbox.secret, inbox_url=world.inbox.url)
        await asyncio.to_thread(world.inbox.deliver, body(), "k1")
        assert (await task)["status"] == "done"


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


async def test_a_search_that_fails_keeps_no_other_wait_from_its_own(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two searches takes too long for the database again and again."""
    real = AsyncInboxReader.search

    async def search(reader: AsyncInboxReader, **query: Any) -> Any:
        if "slow.event" in query["events"]:
            raise InboxUnreachableError("the database took longer than 8 s")
        return await real(reader, **query)

    monkeypatch.setattr(AsyncInboxReader, "search", search)
    world.inbox.deliver(body(), "k")
    async with tools.waiting(
        trigger(key="k", events="slow.event"), begun=lambda hub: hub.inbox.subscriptions
    ):
        event = await tools.event_of(trigger(key="k"))
    assert event["status"] == "done"


async def test_an_unknown_connection(tools: Any) -> None:
    event = await tools.event_of(WebDataWebhookTrigger("no_such_connection", key="k"))
    assert event["status"] == "error"
    assert "no_such_connection" in event["message"]


@pytest.mark.parametrize("zone", [timezone.utc, timezone(timedelta(hours=5))])
async def test_the_default_deadline_is_that_of_airflow(world: Any, tools: Any, zone: timezone) -> None:
    wanted = trigger(key="k", deadline=None)
    wanted.timeout_after = datetime.fromtimestamp(time.time() + 1, zone)
    assert (await tools.event_of(wanted))["status"] == "timeout"
