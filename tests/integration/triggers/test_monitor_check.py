# SPDX-License-Identifier: Apache-2.0
"""Waits for a check of a monitor, which is reported by webhook or found by polling."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from airflow_provider_webdata.states import answers
from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger
from airflow_provider_webdata.waiting import subjects
from tests.support.service import NEVER
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("leftovers")


def ago(seconds: float = 60.0) -> str:
    return (datetime.now(timezone.utc) - timedelta(seconds=seconds)).isoformat()


WAIT = {"check_id", "after", "deadline", "poll_interval"}


def trigger(monitor_id: str, **given: Any) -> WebDataMonitorCheckTrigger:
    """Return a trigger with further arguments, and values of the criteria."""
    wait = {"after": ago(), "deadline": time.time() + PATIENCE, "poll_interval": 60.0}
    wait |= {name: value for name, value in given.items() if name in WAIT}
    criteria = {name: value for name, value in given.items() if name not in WAIT}
    return WebDataMonitorCheckTrigger("webdata_default", monitor_id, criteria=criteria, **wait)


@pytest.mark.rule("event-check-completed", "event-check-completed-data")
async def test_a_check_reported_by_webhook(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    async with tools.waiting(trigger(monitor)) as (task,):
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
    async with tools.waiting(trigger(monitor, poll_interval=1.0)) as (task,):
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
    event = await tools.event_of(trigger(monitor))
    assert (event["status"], event["check_id"]) == ("done", check)


async def test_an_early_delivery_while_the_service_is_down(
    world: Any, tools: Any, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "HINT_PAUSES", (0.01, 0.01))
    monitor = world.monitor()
    check = world.run(monitor)
    world.control.add_fault("status", path="/v2/", status=503, times=None)
    event = await tools.event_of(trigger(monitor))
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
    event = await tools.timed_out(trigger(monitor, after=datetime.now(timezone.utc).isoformat()))
    assert event["status"] == "timeout"
    for part in (monitor, old, "completed", "the inbox was reachable"):
        assert part in event["message"]


async def test_all_checks_since_the_first_year_count(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    check = world.run(monitor)
    event = await tools.event_of(trigger(monitor, after="0001-01-01T00:00:00Z"))
    assert (event["status"], event["check_id"]) == ("done", check)


@pytest.mark.rule("delivery-replay", "delivery-order")
async def test_duplicate_and_late_deliveries_are_ignored(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    first = world.run(monitor)
    after = datetime.now(timezone.utc).isoformat()
    async with tools.waiting(trigger(monitor, after=after)) as (task,):
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


@pytest.mark.rule("monitor-get")
async def test_a_missing_monitor_or_check(world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 1.0)
    event = await tools.event_of(trigger("00000000-0000-4000-8000-000000000000"))
    assert (event["status"], event["verdict"]) == ("error", "never")
    assert "deleted, or the id is wrong" in event["message"]
    monitor = world.monitor()
    event = await tools.event_of(
        trigger(monitor, check_id="00000000-0000-4000-8000-000000000000", poll_interval=1.0)
    )
    assert (event["status"], event["verdict"]) == ("error", "never")
    assert "does not exist (" in event["message"]
    assert event["message"].endswith(" (WD-404)"), "the task adds the fix"
    assert "HTTP 404" in event["message"]


def outage(logs: Any) -> list[str]:
    return [entry["log_level"] for entry in logs if "service of connection" in entry["event"]]


async def test_an_outage_is_logged_and_survived(world: Any, tools: Any, logs: Any) -> None:
    monitor = world.monitor()
    check = world.run(monitor)
    world.control.add_fault("status", path="/v2/", status=503, times=None)
    task = asyncio.create_task(tools.event_of(trigger(monitor)))
    await tools.until(lambda: outage(logs) == ["warning"])
    world.control.clear_faults()
    assert (await task)["check_id"] == check
    assert outage(logs) == ["warning", "info"], "its begin and its end"


async def test_an_invalid_moment_is_named(connect: Any, tools: Any) -> None:
    connect("http://127.0.0.1:9")
    event = await tools.event_of(trigger("m", after="yesterday"))
    assert event["status"] == "error"
    assert "after must be a time" in event["message"]


async def test_a_key_that_is_renewed_while_the_secrets_backend_is_unavailable(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service refuses the key while it is asked for the pages of a check."""
    reads: list[str] = []
    real = WebDataAsyncHook.aget_connection

    async def unavailable(conn_id: str) -> Any:
        reads.append(conn_id)
        if len(reads) == 2:
            raise RuntimeError
        return await real(conn_id)

    monkeypatch.setattr(WebDataAsyncHook, "aget_connection", staticmethod(unavailable))
    page = "https://news.example/"
    world.control.set_page(page, html="<p>one euro</p>")
    monitor = world.monitor(page, goal="Tell me when the price changes.")
    world.run(monitor)
    world.control.set_page(page, html="<p>the price is two euro</p>")
    check = world.run(monitor)
    world.control.add_fault("status", path=f"/v2/monitor/{monitor}/checks/.+", status=401)
    event = await tools.event_of(trigger(monitor, after="2020-01-01T00:00:00Z", only_if_meaningful=True))
    assert (event["status"], event["check_id"], len(reads)) == ("done", check, 2)


async def test_pages_that_the_service_refuses_end_the_wait(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.5)
    page = "https://news.example/"
    world.control.set_page(page, html="<p>one euro</p>")
    monitor = world.monitor(page, goal="Tell me when the price changes.")
    world.run(monitor)
    world.control.set_page(page, html="<p>the price is two euro</p>")
    world.run(monitor)
    world.control.add_fault("status", path=f"/v2/monitor/{monitor}/checks/.+", status=422, times=None)
    event = await tools.event_of(trigger(monitor, after="2020-01-01T00:00:00Z", only_if_meaningful=True))
    assert (event["status"], event["verdict"]) == ("error", "later")
    assert f"of monitor {monitor}: get monitor check: HTTP 422" in event["message"]
