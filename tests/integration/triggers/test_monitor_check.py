"""Waiting for a check of a monitor: learned by webhook, by polling, early, twice, late, or not at all."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger
from tests.support.service import NEVER, hourly
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("leftovers")


def ago(seconds: float = 60.0) -> str:
    return (datetime.now(timezone.utc) - timedelta(seconds=seconds)).isoformat()


POLICY = {"wait_by": "auto", "poll_interval": 60.0, "safety_poll": 1500.0}
WAIT = {"check_id", "after", "deadline"}


def trigger(monitor_id: str, **given: Any) -> WebDataMonitorCheckTrigger:
    """Return a trigger; what is given is an argument, part of the policy, or else of the criteria."""
    wait = {"after": ago(), "deadline": time.time() + PATIENCE}
    wait |= {name: value for name, value in given.items() if name in WAIT}
    policy = {name: given.get(name, value) for name, value in POLICY.items()}
    criteria = {name: value for name, value in given.items() if name not in {*wait, *WAIT, *policy}}
    return WebDataMonitorCheckTrigger("webdata_default", monitor_id, policy, criteria, **wait)


@pytest.mark.rule("event-check-completed", "event-check-completed-data")
@pytest.mark.parametrize("wait_by", ["webhook", "auto"])
async def test_learns_of_a_check_by_webhook(world: Any, tools: Any, wait_by: str) -> None:
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
async def test_learns_of_a_check_by_polling(world: Any, tools: Any) -> None:
    monitor = world.monitor(webhook=False)
    async with tools.waiting(trigger(monitor, wait_by="auto", poll_interval=1.0)) as (task,):
        check = await asyncio.to_thread(world.run, monitor)
        event = await task
    assert (event["status"], event["check_id"], event["via"]) == ("done", check, "polling")
    assert world.inbox.reads(), "an automatic wait listens too, in case the webhook comes from elsewhere"


async def test_polling_needs_no_inbox(sandbox: Any, connect: Any, tools: Any) -> None:
    connect(sandbox.url)
    from airflow_provider_webdata.hooks.webdata import WebDataHook

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
    assert "webhook_url" in refused["error"]


async def test_finds_a_check_that_ended_before_the_wait_began(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    first = world.run(monitor)
    world.run(monitor)
    assert (await tools.event_of(trigger(monitor)))["check_id"] == first, "the oldest after the moment"


async def test_finds_an_early_delivery_though_the_service_is_down(world: Any, tools: Any, logs: Any) -> None:
    monitor = world.monitor()
    check = world.run(monitor)
    world.control.add_fault("status", path="/v2/", status=503, times=None)
    event = await tools.event_of(trigger(monitor, wait_by="webhook"))
    assert (event["check_id"], event["check_status"], event["via"]) == (check, "completed", "webhook")
    assert any("using the status in the delivery" in entry["event"] for entry in logs)


async def test_passes_over_what_ended_before(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    old = world.run(monitor)
    event = await tools.timed_out(
        trigger(monitor, after=datetime.now(timezone.utc).isoformat(), wait_by="auto")
    )
    assert event["status"] == "timeout"
    for part in (monitor, old, "completed", "the inbox was reachable"):
        assert part in event["message"]


async def test_a_certain_check(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    world.run(monitor)
    second = world.run(monitor)
    world.run(monitor)
    event = await tools.event_of(
        trigger(monitor, check_id=second, after=datetime.now(timezone.utc).isoformat())
    )
    assert (event["status"], event["check_id"]) == ("done", second)


@pytest.mark.rule("delivery-retries")
async def test_a_lost_delivery_is_made_up_for_by_the_safety_poll(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    async with tools.waiting(trigger(monitor, wait_by="webhook", safety_poll=1.0)) as (task,):
        world.inbox.lossy = True
        check = await asyncio.to_thread(world.run, monitor)
        event = await task
    assert (event["check_id"], event["via"]) == (check, "polling")


@pytest.mark.rule("delivery-replay", "delivery-order")
async def test_duplicate_and_late_deliveries_do_no_harm(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    first = world.run(monitor)
    after = datetime.now(timezone.utc).isoformat()
    async with tools.waiting(trigger(monitor, wait_by="webhook", after=after)) as (task,):
        for number in range(3):
            # The first check's delivery again and again, as after a slow answer, each time as a new event.
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


async def event_of_choice(tools: Any, choice: str, wanted: WebDataMonitorCheckTrigger) -> dict[str, Any]:
    """The event of a wait for a check that went wrong: one that goes on ends with its deadline."""
    event: dict[str, Any] = await (tools.timed_out if choice == "wait" else tools.event_of)(wanted)
    return event


@pytest.mark.rule("check-failed")
@pytest.mark.parametrize(
    "choice,status",
    [("fail", "failed"), ("accept", "done"), ("wait", "timeout")],
)
async def test_a_failed_check(world: Any, tools: Any, choice: str, status: str) -> None:
    monitor = world.monitor()
    world.control.add_fault("fail_check")
    check = world.run(monitor)
    event = await event_of_choice(tools, choice, trigger(monitor, on_failed=choice))
    assert event["status"] == status
    if status == "timeout":
        assert check in event["message"]
    else:
        assert (event["check_id"], event["check_status"]) == (check, "failed")
    assert ("error" in event) == (status == "failed")


@pytest.mark.rule("check-partial")
@pytest.mark.parametrize("choice,status", [("fail", "failed"), ("accept", "done"), ("wait", "timeout")])
async def test_a_partial_check(world: Any, tools: Any, choice: str, status: str) -> None:
    world.control.set_page("https://half.example/good", html="<p>fine</p>")
    world.control.set_page("https://half.example/bad", html="<p>bad</p>", error="SCRAPE_TIMEOUT")
    monitor = world.monitor("https://half.example/good", "https://half.example/bad", webhook=False)
    check = world.run(monitor)
    assert world.hook.get_monitor_check(monitor, check).status == "partial"
    event = await event_of_choice(tools, choice, trigger(monitor, on_partial=choice))
    assert event["status"] == status


@pytest.mark.rule("check-skipped-no-credits", "event-none-for-skipped")
@pytest.mark.parametrize("choice,status", [("fail", "failed"), ("accept", "done"), ("wait", "timeout")])
async def test_a_skipped_check(world: Any, tools: Any, choice: str, status: str) -> None:
    monitor = world.monitor(schedule=hourly())
    world.control.configure(credits=0)
    world.control.advance(3600)
    (check,) = world.hook.list_monitor_checks(monitor)
    assert check.status == "skipped_no_credits"
    event = await event_of_choice(tools, choice, trigger(monitor, on_skipped=choice))
    assert event["status"] == status
    if choice == "wait":
        assert "skipped_no_credits" in event["message"]


@pytest.mark.rule("check-summary", "check-page-status")
@pytest.mark.parametrize("otherwise,status", [("skip", "skip"), ("wait", "done")])
async def test_only_if_changed(world: Any, tools: Any, otherwise: str, status: str) -> None:
    world.control.set_page("https://news.example/", html="<p>one</p>")
    monitor = world.monitor("https://news.example/")
    world.run(monitor)
    after = datetime.now(timezone.utc).isoformat()
    wanted = trigger(monitor, only_if_changed=True, otherwise=otherwise, after=after)
    async with tools.waiting(wanted) as (task,):
        same = await asyncio.to_thread(world.run, monitor)
        world.control.set_page("https://news.example/", html="<p>two</p>")
        changed = await asyncio.to_thread(world.run, monitor)
        event = await task
    assert (event["status"], event["check_id"]) == (status, same if status == "skip" else changed)


@pytest.mark.rule("check-judgment")
@pytest.mark.parametrize("otherwise,status", [("skip", "skip"), ("wait", "done")])
async def test_only_if_meaningful(world: Any, tools: Any, otherwise: str, status: str) -> None:
    world.control.set_page("https://price.example/", html="<p>price 1</p>")
    monitor = world.monitor("https://price.example/", goal="price")
    world.run(monitor)
    after = datetime.now(timezone.utc).isoformat()
    wanted = trigger(monitor, only_if_meaningful=True, otherwise=otherwise, after=after)
    async with tools.waiting(wanted) as (task,):
        world.control.set_page("https://price.example/", html="<p>price 1</p><p>weather fine</p>")
        idle = await asyncio.to_thread(world.run, monitor)
        world.control.set_page("https://price.example/", html="<p>price 2</p><p>weather fine</p>")
        telling = await asyncio.to_thread(world.run, monitor)
        event = await task
    judged = {
        check: [
            page.judgment.meaningful
            for page in world.hook.get_monitor_check(monitor, check).pages
            if page.judgment
        ]
        for check in (idle, telling)
    }
    assert judged == {idle: [False], telling: [True]}
    assert (event["status"], event["check_id"]) == (status, idle if status == "skip" else telling)


@pytest.mark.rule("monitor-get")
async def test_a_monitor_that_is_gone(world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_webdata.waiting.polling import poller

    monkeypatch.setattr(poller, "MISSING_LIMIT", 1.0)
    event = await tools.event_of(trigger("00000000-0000-4000-8000-000000000000", wait_by="polling"))
    assert (event["status"], event["verdict"]) == ("error", "never")
    assert "deleted, or the id is wrong" in event["error"]


@pytest.mark.rule("late-reads")
async def test_a_replica_that_lags_is_waited_for(world: Any, tools: Any) -> None:
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
    assert "wd-sandbox-key" not in event["error"]


async def test_trouble_of_the_service_is_told_and_survived(world: Any, tools: Any, logs: Any) -> None:
    monitor = world.monitor()
    check = world.run(monitor)
    world.control.add_fault("status", path="/v2/", status=503, times=None)
    task = asyncio.create_task(tools.event_of(trigger(monitor, wait_by="polling")))
    await tools.until(lambda: any("503" in entry["event"] for entry in logs))
    world.control.clear_faults()
    assert (await task)["check_id"] == check
    told = [entry for entry in logs if "service of connection" in entry["event"]]
    assert [entry["log_level"] for entry in told] == ["warning", "info"], "once each way"


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
        ({"on_failed": "ignore"}, "on_failed"),
        ({"otherwise": "fail"}, "otherwise"),
        ({"only_if_new": True}, "does not know only_if_new of CheckCriteria"),
        ({"wait_by": "mail"}, "wait_by"),
        ({"poll_interval": 0.0}, "poll_interval"),
        ({"after": "yesterday"}, "after"),
    ],
)
async def test_bad_arguments_are_named(world: Any, tools: Any, given: Any, word: str) -> None:
    event = await tools.event_of(trigger("m", **given))
    assert event["status"] == "error"
    assert word in event["error"]
