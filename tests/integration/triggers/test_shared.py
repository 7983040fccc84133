# SPDX-License-Identifier: Apache-2.0
"""Many waits share one reader and one poller, and do not disturb each other."""

from __future__ import annotations

import asyncio
import contextvars
import time
from datetime import datetime, timezone
from typing import Any

import pytest

from airflow_provider_webdata.api.errors import ServerError
from airflow_provider_webdata.inbox.reader import END
from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger
from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger
from airflow_provider_webdata.waiting import poll_source, subjects
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.subscriptions import SubscriptionIndex
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("leftovers")


def for_delivery(key: str, **given: Any) -> WebDataWebhookTrigger:
    return WebDataWebhookTrigger("webdata_default", key=key, deadline=time.time() + PATIENCE, **given)


def for_check(monitor: str, **given: Any) -> WebDataMonitorCheckTrigger:
    now = datetime.now(timezone.utc).isoformat()
    wait = {"poll_interval": 60.0, "after": now, "deadline": time.time() + PATIENCE, **given}
    return WebDataMonitorCheckTrigger("webdata_default", monitor, criteria={}, **wait)


def delivery(number: int) -> dict[str, Any]:
    return {"type": "crawl.completed", "id": f"j{number}", "webhookId": f"w{number}"}


async def test_a_thousand_waits_for_deliveries_share_a_reader(world: Any, tools: Any) -> None:
    world.inbox.deliver(delivery(500), "k500")
    async with tools.waiting(*(for_delivery(f"k{number}") for number in range(1000))) as tasks:
        searches = [line for line in world.inbox.reads() if "search" in line]
        assert len(searches) <= 3, searches
        assert (await tasks[500])["job_id"] == "j500"
        await asyncio.to_thread(world.inbox.deliver, delivery(7), "k7")
        assert (await tasks[7])["job_id"] == "j7"
        assert sum(task.done() for task in tasks) == 2
    assert len([line for line in world.inbox.reads() if "search" not in line]) <= 4


async def test_many_waits_for_one_monitor_share_a_poll(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    world.control.clear_requests()
    waits = (for_check(monitor) for _ in range(400))
    async with tools.waiting(*waits) as tasks:
        await asyncio.to_thread(world.run, monitor)
        events = await asyncio.gather(*tasks)
    assert len({event["check_id"] for event in events}) == 1
    polls = world.control.requests(f"/v2/monitor/{monitor}/checks", "GET")
    assert len(polls) <= 3, [(poll["path"], poll["query"]) for poll in polls]


@pytest.mark.rule("monitor-last-check", "monitor-list")
async def test_many_monitors_are_listed_and_only_changed_ones_are_polled(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise all would be polled twice, because their checks may be from a replica.
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 0.0)
    monitors = [world.monitor(webhook=False) for _ in range(poll_source.FEW + 2)]
    world.control.clear_requests()
    waits = [for_check(monitor, poll_interval=600.0) for monitor in monitors]
    async with tools.waiting(*waits) as tasks:
        first = world.control.requests("/v2/monitor/.*/checks", "GET")
        assert len(first) == len(monitors), "each is polled once when its wait begins"
        world.control.clear_requests()
        check = await asyncio.to_thread(world.run, monitors[4])
        loop = asyncio.get_running_loop()
        now = loop.time
        # All are due again, at the same time.
        monkeypatch.setattr(loop, "time", lambda: now() + 600.0)
        assert (await tasks[4])["check_id"] == check
        polls = world.control.requests("/v2/monitor/.*/checks", "GET")
        assert {poll["path"].split("/")[3] for poll in polls} == {monitors[4]}
        assert world.control.requests("/v2/monitor$", "GET"), "the list was read"


async def test_a_list_that_a_gateway_cuts_ends_no_wait(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It drops `offset`, so that each page is the first one."""
    monitors = [world.monitor(webhook=False) for _ in range(poll_source.FEW + 2)]
    page = {"success": True, "data": [{"id": f"m{number}"} for number in range(25)]}
    world.control.add_fault("status", method="GET", path="/v2/monitor$", status=200, body=page, times=None)
    async with tools.waiting(*(for_check(monitor, poll_interval=600.0) for monitor in monitors)) as tasks:
        check = await asyncio.to_thread(world.run, monitors[4])
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + 600.0)
        assert (await tasks[4])["check_id"] == check
    assert len(world.control.requests("/v2/monitor$", "GET")) >= 2


async def test_waits_that_are_cancelled_leave_the_others(world: Any, tools: Any) -> None:
    async with tools.waiting(for_delivery("k1"), for_delivery("k1"), for_delivery("k2")) as tasks:
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        await asyncio.to_thread(world.inbox.deliver, delivery(1), "k1")
        assert (await tasks[1])["job_id"] == "j1"
        assert not tasks[2].done()


async def test_a_new_wait_right_after_the_last_one(world: Any, tools: Any) -> None:
    for number in range(3):
        async with tools.waiting(for_delivery(f"k{number}")) as (task,):
            await asyncio.to_thread(world.inbox.deliver, delivery(number), f"k{number}")
            assert (await task)["job_id"] == f"j{number}"


async def test_shared_tasks_have_no_context_of_the_task_that_started_them(world: Any, tools: Any) -> None:
    name = contextvars.ContextVar("name", default="none")
    seen: list[str] = []

    class Curious(WebDataWebhookTrigger):
        def _target(self) -> Any:
            seen.append(name.get())
            hub = Hub.of(self.webdata_conn_id)
            settings = hub.connection.settings

            async def look() -> Any:
                seen.append(name.get())
                return await settings()

            hub.connection.settings = look  # type: ignore[method-assign]
            hook = hub.connection.hook

            async def hook_too() -> Any:
                seen.append(name.get())
                return await hook()

            hub.connection.hook = hook_too  # type: ignore[method-assign]
            return super()._target()

    name.set("the first task")
    wanted = Curious("webdata_default", key="k1", deadline=time.time() + PATIENCE)
    async with tools.waiting(wanted) as (task,):
        await asyncio.to_thread(world.inbox.deliver, delivery(1), "k1")
        await task
    assert seen[0] == "the first task"
    assert set(seen[1:]) == {"none"}


async def test_the_death_of_the_shared_reader_ends_every_wait(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with tools.waiting(for_delivery("k1"), for_delivery("k2")) as tasks:

        def fall_over(*_: Any) -> Any:
            raise MemoryError("no room at https://cache.example/?token=hush")

        monkeypatch.setattr(SubscriptionIndex, "of", fall_over)
        await asyncio.to_thread(world.inbox.deliver, delivery(1), "k1")
        events = await asyncio.gather(*tasks)
    assert {event["status"] for event in events} == {"error"}
    assert all("ended unexpectedly" in event["message"] for event in events)
    monkeypatch.undo()
    assert "in fall_over" in caplog.text, "the traceback"
    assert "hush" not in caplog.text + str(events)


async def test_the_connection_is_read_once(world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook

    reads: list[str] = []
    real = WebDataAsyncHook.aget_connection

    async def counted(conn_id: str) -> Any:
        reads.append(conn_id)
        return await real(conn_id)

    monkeypatch.setattr(WebDataAsyncHook, "aget_connection", staticmethod(counted))
    monitor = world.monitor()
    waits = [for_delivery(f"k{number}") for number in range(50)]
    async with tools.waiting(*waits, *(for_check(monitor) for _ in range(50))):
        assert reads == ["webdata_default"]


@pytest.mark.usefixtures("world")
async def test_failed_calls_cause_few_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook

    reads: list[str] = []
    real = WebDataAsyncHook.aget_connection

    async def counted(conn_id: str) -> Any:
        reads.append(conn_id)
        return await real(conn_id)

    async def fail(_: WebDataAsyncHook) -> None:
        raise ServerError("get monitor", 503, "down")

    monkeypatch.setattr(WebDataAsyncHook, "aget_connection", staticmethod(counted))
    hub = Hub.of("webdata_default")
    with hub.mailbox():
        for _ in range(20):
            with pytest.raises(ServerError):
                await hub.connection.call(fail)
    assert len(reads) == 2


async def test_a_secrets_backend_that_is_unavailable(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch, logs: list[Any]
) -> None:
    """The waits go on once the connection can be read, and read it once. No log line has a secret of the error."""
    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook

    reads: list[str] = []
    real = WebDataAsyncHook.aget_connection

    async def unavailable(conn_id: str) -> Any:
        reads.append(conn_id)
        if len(reads) <= 3:
            raise RuntimeError("no answer from https://vault.example/?token=hush")
        return await real(conn_id)

    monkeypatch.setattr(WebDataAsyncHook, "aget_connection", staticmethod(unavailable))
    monitor = world.monitor()
    async with tools.waiting(for_delivery("k1"), for_check(monitor)) as tasks:
        assert not any(task.done() for task in tasks)
    assert len(reads) == 4
    shown = str(logs)
    assert "no answer from https://vault.example" in shown
    assert "hush" not in shown


async def test_the_event_of_a_failed_lookup_has_no_secret(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook

    async def unavailable(_: str) -> Any:
        raise RuntimeError("no answer from https://vault.example/?token=hush")

    monkeypatch.setattr(WebDataAsyncHook, "aget_connection", staticmethod(unavailable))
    wait = for_check(world.monitor(), deadline=time.time() + 2)
    event = await asyncio.wait_for(tools.event_of(wait), 30)
    assert event["status"] == "timeout"
    assert "no answer from https://vault.example" in event["message"]
    assert "hush" not in event["message"]


async def test_a_secrets_backend_that_hangs(world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait ends at its deadline."""
    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook

    over = asyncio.Event()

    async def hang(_: str) -> Any:
        await over.wait()
        raise RuntimeError

    monkeypatch.setattr(WebDataAsyncHook, "aget_connection", staticmethod(hang))
    event = await asyncio.wait_for(tools.event_of(for_check("m", deadline=time.time() + 0.2)), 10)
    assert event["status"] == "timeout"
    assert "Airflow has not read the connection" in event["message"]
    over.set()


@pytest.mark.rule("retry-after")
async def test_a_pause_that_the_service_requests(world: Any, tools: Any) -> None:
    monitors = [world.monitor(webhook=False) for _ in range(2)]
    world.control.clear_requests()
    world.control.add_fault("rate_limit", path="/v2/monitor/.*/checks", seconds=60, times=None)

    def wait(monitor: str, seconds: float) -> Any:
        wanted = for_check(monitor, after=None, deadline=time.time() + seconds)
        return asyncio.create_task(tools.event_of(wanted))

    first = wait(monitors[0], PATIENCE)
    await tools.until(lambda: world.calls("/v2/monitor/.*/checks"))
    event = await wait(monitors[1], 1)
    assert event["status"] == "timeout"
    assert "could not be polled" in event["message"]
    assert world.calls("/v2/monitor/.*/checks") == 1, "a wait that begins during the pause does not poll"
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


@pytest.mark.rule("retry-after")
async def test_a_pause_that_the_service_requests_for_one_monitor(
    world: Any, tools: Any, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check whose delivery is stored does not wait for it, and the logs have its begin and its end."""
    # Every round polls all monitors, and so the fault is of one of them only.
    monkeypatch.setattr(poll_source, "EARLY", 1.0)
    failing, other = world.monitor(), world.monitor()
    begun = datetime.now(timezone.utc).isoformat()
    check = world.run(failing)
    path, pause = f"/v2/monitor/{failing}/checks", {"Retry-After": "250"}
    world.control.add_fault("status", path=path, status=503, headers=pause, times=None)
    async with tools.waiting(for_check(other)):
        event = await tools.event_of(for_check(failing, after=begun))
        assert (event["check_id"], event["via"]) == (check, "webhook")

        def noted() -> list[Any]:
            return [entry for entry in logs if entry["event"].startswith(f"monitor {failing}: ")]

        logs.clear()
        task = asyncio.create_task(tools.event_of(for_check(failing)))
        await tools.until(noted)
        world.control.clear_faults()
        check = await asyncio.to_thread(world.run, failing)
        assert (await task)["check_id"] == check
    assert [entry["log_level"] for entry in noted()] == ["warning", "info"]


async def test_a_hub_that_closes_leaves_the_next_alone(world: Any) -> None:
    async def read_both(hub: Hub) -> None:
        await hub.inbox.page(END)
        await hub.connection.call(lambda hook: hook.list_monitors())

    for _ in range(3):
        with Hub.of("webdata_default").mailbox() as mailbox:
            former = Hub.of("webdata_default")
            former.inbox.watch(mailbox)
            await read_both(former)
        # It lingers, and closes while the next one is used.
        await asyncio.sleep(0.05)
        with Hub.of("webdata_default").mailbox() as mailbox:
            hub = Hub.of("webdata_default")
            assert hub is not former
            hub.inbox.watch(mailbox)
            await read_both(hub)
            await former.close()
            await read_both(hub)
