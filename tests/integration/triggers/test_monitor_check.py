"""Waits for a check of a monitor, which is reported by webhook or found by polling."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger
from airflow_provider_webdata.waiting import subjects
from tests.support.service import NEVER, hourly
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("leftovers")


def ago(seconds: float = 60.0) -> str:
    return (datetime.now(timezone.utc) - timedelta(seconds=seconds)).isoformat()


POLICY = {"wait_by": "auto", "poll_interval": 60.0, "safety_poll": 1500.0}
WAIT = {"check_id", "after", "deadline"}


def trigger(monitor_id: str, **given: Any) -> WebDataMonitorCheckTrigger:
    """Return a trigger with further arguments, and values of the policy and the criteria."""
    wait = {"after": ago(), "deadline": time.time() + PATIENCE}
    wait |= {name: value for name, value in given.items() if name in WAIT}
    policy = {name: given.get(name, value) for name, value in POLICY.items()}
    criteria = {name: value for name, value in given.items() if name not in {*wait, *WAIT, *policy}}
    return WebDataMonitorCheckTrigger("webdata_default", monitor_id, policy, criteria, **wait)


@pytest.mark.rule("event-check-completed", "event-check-completed-data")
@pytest.mark.parametrize("wait_by", ["webhook", "auto"])
async def test_a_check_reported_by_webhook(world: Any, tools: Any, wait_by: str) -> None:
    monitor = world.monitor()
    async with tools.waiting(trigger(monitor, wait_by=wait_by)) as (task,):
        check = await asyncio.to_thread(world.run, monitor)
        assert await task == {
            "status": "done",
            "check_id": check,
            "monitor_id": monitor,
            "check_status": "completed",
            "via": "webhook",
        }


@pytest.mark.rule("check-over", "check-list")
async def test_a_check_found_by_polling(world: Any, tools: Any) -> None:
    monitor = world.monitor(webhook=False)
    async with tools.waiting(trigger(monitor, wait_by="auto", poll_interval=1.0)) as (task,):
        check = await asyncio.to_thread(world.run, monitor)
        event = await task
    assert (event["status"], event["check_id"], event["via"]) == ("done", check, "polling")
    assert world.inbox.reads(), (
        "an automatic wait listens too, because the monitor may have another webhook to this inbox"
    )


async def test_polling_needs_no_inbox(sandbox: Any, connect: Any, tools: Any) -> None:
    connect(sandbox.url)
    with WebDataHook() as hook:
        body = {
            "name": "m",
            "schedule": NEVER,
            "targets": [{"type": "scrape", "urls": ["https://river.example/"]}],
        }
        monitor = hook.create_monitor(body).id
        check = hook.run_monitor(monitor).id
    sandbox.control.settle()
    event = await tools.event_of(trigger(monitor, wait_by="auto"))
    assert (event["status"], event["check_id"]) == ("done", check)
    refused = await tools.event_of(trigger(monitor, wait_by="webhook"))
    assert (refused["status"], refused["verdict"]) == ("error", "never")
    assert "webhook_url" in refused["message"]


async def test_a_check_from_before_the_wait(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    first = world.run(monitor)
    world.run(monitor)
    assert (await tools.event_of(trigger(monitor)))["check_id"] == first, "the oldest after the moment"


async def test_an_early_delivery_while_the_service_is_down(
    world: Any, tools: Any, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "HINT_PAUSES", (0.01, 0.01))
    monitor = world.monitor()
    check = world.run(monitor)
    world.control.add_fault("status", path="/v2/", status=503, times=None)
    event = await tools.event_of(trigger(monitor, wait_by="webhook"))
    assert (event["check_id"], event["check_status"], event["via"]) == (check, "completed", "webhook")
    lines = [entry["event"] for entry in logs]
    (delivery,) = {
        found[1] for line in lines if (found := re.match(r"Delivery (\S+) reports the end of check", line))
    }
    assert any(
        f"ended according to delivery {delivery}, but" in line and "HTTP 503" in line for line in lines
    )


async def test_checks_before_the_moment_do_not_count(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    old = world.run(monitor)
    event = await tools.timed_out(
        trigger(monitor, after=datetime.now(timezone.utc).isoformat(), wait_by="auto")
    )
    assert event["status"] == "timeout"
    for part in (monitor, old, "completed", "the inbox was reachable"):
        assert part in event["message"]


async def test_deliveries_long_before_the_moment_are_not_read(world: Any, tools: Any, logs: Any) -> None:
    monitor = world.monitor()
    world.run(monitor)
    event = await tools.timed_out(trigger(monitor, after=ago(-600), wait_by="webhook"))
    assert event["status"] == "timeout"
    assert not [entry for entry in logs if "reports the end of check" in entry["event"]]


async def test_a_named_check(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    world.run(monitor)
    second = world.run(monitor)
    world.run(monitor)
    event = await tools.event_of(
        trigger(monitor, check_id=second, after=datetime.now(timezone.utc).isoformat())
    )
    assert (event["status"], event["check_id"]) == ("done", second)


@pytest.mark.rule("delivery-retries")
async def test_a_safety_poll_makes_up_for_a_lost_delivery(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    async with tools.waiting(trigger(monitor, wait_by="webhook", safety_poll=1.0)) as (task,):
        world.inbox.lossy = True
        check = await asyncio.to_thread(world.run, monitor)
        event = await task
    assert (event["check_id"], event["via"]) == (check, "polling")


@pytest.mark.rule("delivery-replay", "delivery-order")
async def test_duplicate_and_late_deliveries_are_ignored(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    first = world.run(monitor)
    after = datetime.now(timezone.utc).isoformat()
    async with tools.waiting(trigger(monitor, wait_by="webhook", after=after)) as (task,):
        for number in range(3):
            # The first check's delivery repeated, as after a slow answer, each time as a new event.
            body = {
                "success": True,
                "type": "monitor.check.completed",
                "id": first,
                "webhookId": f"late-{number}",
                "data": [{"monitorId": monitor, "checkId": first, "status": "completed"}],
            }
            assert (await asyncio.to_thread(world.inbox.deliver, body, "k")).status_code == 200
        second = await asyncio.to_thread(world.run, monitor)
        assert (await task)["check_id"] == second


@pytest.mark.rule("check-failed", "check-partial", "check-skipped-no-credits", "event-none-for-skipped")
async def test_checks_that_did_not_complete(world: Any, tools: Any) -> None:
    """Each is an error, counts, or is passed over, as chosen."""
    monitors = {"on_failed": world.monitor()}
    world.control.add_fault("fail_check")
    checks = {"on_failed": world.run(monitors["on_failed"])}
    world.control.set_page("https://half.example/good", html="<p>fine</p>")
    world.control.set_page("https://half.example/bad", html="<p>bad</p>", error="SCRAPE_TIMEOUT")
    monitors["on_partial"] = world.monitor(
        "https://half.example/good", "https://half.example/bad", webhook=False
    )
    checks["on_partial"] = world.run(monitors["on_partial"])
    monitors["on_skipped"] = world.monitor(schedule=hourly())
    world.control.configure(credits=0)
    world.control.advance(3600)
    (skipped,) = world.hook.list_monitor_checks(monitors["on_skipped"])
    checks["on_skipped"] = skipped.id

    statuses = {"fail": "failed", "accept": "done", "wait": "timeout"}
    states = {"on_failed": "failed", "on_partial": "partial", "on_skipped": "skipped_no_credits"}
    cases = [(when, choice) for when in states for choice in statuses]
    waits = [trigger(monitors[when], **{when: choice}) for when, choice in cases]
    async with tools.waiting(*waits) as tasks:
        for (_, choice), task in zip(cases, tasks, strict=True):
            if choice != "wait":
                await task
        assert [task.done() for task in tasks] == [choice != "wait" for _, choice in cases]
        tools.expire()
        events = await asyncio.gather(*tasks)
    for (when, choice), event in zip(cases, events, strict=True):
        assert event["status"] == statuses[choice], (when, choice)
        if choice == "wait":
            assert checks[when] in event["message"], when
            assert states[when] in event["message"], when
        else:
            assert (event["check_id"], event["check_status"]) == (checks[when], states[when]), (when, choice)


@pytest.mark.rule("check-summary", "check-page-status")
async def test_only_if_changed(world: Any, tools: Any) -> None:
    world.control.set_page("https://news.example/", html="<p>one</p>")
    monitor = world.monitor("https://news.example/")
    world.run(monitor)
    after = datetime.now(timezone.utc).isoformat()
    waits = [
        trigger(monitor, only_if_changed=True, otherwise=otherwise, after=after)
        for otherwise in ("skip", "wait")
    ]
    async with tools.waiting(*waits) as tasks:
        same = await asyncio.to_thread(world.run, monitor)
        world.control.set_page("https://news.example/", html="<p>two</p>")
        changed = await asyncio.to_thread(world.run, monitor)
        events = await asyncio.gather(*tasks)
    assert [(event["status"], event["check_id"]) for event in events] == [("skip", same), ("done", changed)]


@pytest.mark.rule("check-judgment")
async def test_only_if_meaningful(world: Any, tools: Any) -> None:
    world.control.set_page("https://price.example/", html="<p>price 1</p>")
    monitor = world.monitor("https://price.example/", goal="price")
    world.run(monitor)
    after = datetime.now(timezone.utc).isoformat()
    waits = [
        trigger(monitor, only_if_meaningful=True, otherwise=otherwise, after=after)
        for otherwise in ("skip", "wait")
    ]
    async with tools.waiting(*waits) as tasks:
        world.control.set_page("https://price.example/", html="<p>price 1</p><p>weather fine</p>")
        weather = await asyncio.to_thread(world.run, monitor)
        world.control.set_page("https://price.example/", html="<p>price 2</p><p>weather fine</p>")
        price = await asyncio.to_thread(world.run, monitor)
        events = await asyncio.gather(*tasks)
    judged = {
        check: [
            page.judgment.meaningful
            for page in world.hook.get_monitor_check(monitor, check).pages
            if page.judgment
        ]
        for check in (weather, price)
    }
    assert judged == {weather: [False], price: [True]}
    assert [(event["status"], event["check_id"]) for event in events] == [("skip", weather), ("done", price)]


@pytest.mark.rule("monitor-get")
async def test_a_missing_monitor_or_check(world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 1.0)
    event = await tools.event_of(trigger("00000000-0000-4000-8000-000000000000", wait_by="polling"))
    assert (event["status"], event["verdict"]) == ("error", "never")
    assert "deleted, or the id is wrong" in event["message"]
    monitor = world.monitor()
    event = await tools.event_of(
        trigger(
            monitor, check_id="00000000-0000-4000-8000-000000000000", wait_by="polling", poll_interval=1.0
        )
    )
    assert (event["status"], event["verdict"]) == ("error", "never")
    assert "does not exist (" in event["message"]
    assert event["message"].endswith(" (WD-404)"), "the task adds the fix"
    assert "HTTP 404" in event["message"]


@pytest.mark.rule("late-reads")
async def test_a_lagging_replica(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    check = world.run(monitor)
    world.control.add_fault(
        "status", path="/v2/monitor/.*/checks", status=404, body={"error": "Not found"}, times=2
    )
    assert (await tools.event_of(trigger(monitor)))["check_id"] == check


@pytest.mark.rule("status-401")
async def test_a_refused_key_ends_the_wait(sandbox: Any, connect: Any, tools: Any) -> None:
    connect(sandbox.url)
    sandbox.control.add_fault("status", path="/v2/", status=401, body={"error": "Unauthorized"}, times=None)
    event = await tools.event_of(trigger("m", wait_by="polling"))
    assert (event["status"], event["verdict"]) == ("error", "never")
    assert "wd-sandbox-key" not in event["message"]


async def test_an_outage_is_logged_and_survived(world: Any, tools: Any, logs: Any) -> None:
    monitor = world.monitor()
    check = world.run(monitor)
    world.control.add_fault("status", path="/v2/", status=503, times=None)
    task = asyncio.create_task(tools.event_of(trigger(monitor, wait_by="polling")))
    await tools.until(lambda: any("503" in entry["event"] for entry in logs))
    world.control.clear_faults()
    assert (await task)["check_id"] == check
    lines = [entry for entry in logs if "service of connection" in entry["event"]]
    assert [entry["log_level"] for entry in lines] == ["warning", "info"], "its begin and its end"


def test_every_argument_survives() -> None:
    given: dict[str, Any] = {
        "webdata_conn_id": "c",
        "monitor_id": "m",
        "check_id": "x",
        "after": ago(),
        "policy": {"wait_by": "polling", "poll_interval": 5.0, "safety_poll": 7.0},
        "criteria": {
            "on_failed": "wait",
            "on_partial": "fail",
            "on_skipped": "accept",
            "only_if_changed": True,
            "only_if_meaningful": True,
            "otherwise": "skip",
        },
        "deadline": 1.0,
    }
    path, kwargs = WebDataMonitorCheckTrigger(**given).serialize()
    assert path == "airflow_provider_webdata.triggers.monitor.WebDataMonitorCheckTrigger"
    assert kwargs == given


@pytest.mark.parametrize(
    "given,word",
    [
        ({"otherwise": "fail"}, "otherwise"),
        ({"only_if_new": True}, "does not support only_if_new of CheckCriteria"),
        ({"poll_interval": 0.0}, "poll_interval"),
        ({"after": "yesterday"}, "after"),
    ],
    ids=["choice", "unknown", "policy", "after"],
)
async def test_invalid_arguments_are_named(connect: Any, tools: Any, given: Any, word: str) -> None:
    connect("http://127.0.0.1:9")
    event = await tools.event_of(trigger("m", **given))
    assert event["status"] == "error"
    assert word in event["message"]
