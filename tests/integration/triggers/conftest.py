"""A sandbox that delivers real webhooks to a real inbox, and a connection to both in the environment."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webhooks import webhook_for
from airflow_provider_webdata.sandbox.server import SandboxServer
from airflow_provider_webdata.waiting import announcement, backoff, shared_task
from airflow_provider_webdata.waiting import hub as hub_module
from airflow_provider_webdata.waiting.hub import Hub
from tests.support.inbox_server import InboxServer
from tests.support.service import CHECK_COMPLETED, NEVER, connection_text
from tests.support.waiting import PATIENCE, until


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer(quirks=("http-webhooks",)) as server:
        yield server


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[InboxServer]:
    with InboxServer(tmp_path) as server:
        yield server


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the default connection."""

    def set_connection(host: str, **extra: Any) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(host, **extra))

    return set_connection


class World:
    """A sandbox, an inbox, and what a DAG author does with them."""

    def __init__(self, sandbox: SandboxServer, inbox: InboxServer) -> None:
        self.sandbox, self.inbox = sandbox, inbox
        self.control = sandbox.control
        self.hook = WebDataHook()

    def monitor(self, *pages: str, webhook: bool = True, **fields: Any) -> str:
        """Create a monitor of these pages, or of one that the sandbox has."""
        urls = pages or ["https://river.example/"]
        body: dict[str, Any] = {
            "name": "m",
            "schedule": NEVER,
            "targets": [{"type": "scrape", "urls": urls}],
            **fields,
        }
        if webhook:
            body["webhook"] = webhook_for(self.hook.get_settings(), "k", [CHECK_COMPLETED])
        return self.hook.create_monitor(body).id

    def run(self, monitor_id: str) -> str:
        """Run a check to its end, its delivery made."""
        check = self.hook.run_monitor(monitor_id)
        self.control.settle()
        return check.id

    def asked(self, path: str = "/v2/monitor") -> int:
        return len(self.control.requests(path))


@pytest.fixture
def world(sandbox: SandboxServer, inbox: InboxServer, connect: Callable[..., None]) -> Iterator[World]:
    connect(sandbox.url, retry_budget=0.5, **inbox.extra)
    made = World(sandbox, inbox)
    yield made
    made.hook.close()


@pytest.fixture(autouse=True)
def no_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared tasks end at once, and outages are retried often: the tests need not wait for them."""
    for module in (shared_task, hub_module):
        monkeypatch.setattr(module, "LINGER", 0.01)
    monkeypatch.setattr(backoff, "LONGEST_PAUSE", 0.5)
    # The waits of the tests before have taken their turns to be announced, too.
    monkeypatch.setattr(announcement, "_next_turn", float("-inf"))
    # No worker has deferred these.
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "0")


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with capture_logs() as entries:
        yield entries


async def event_of(trigger: Any) -> dict[str, Any]:
    """Run a trigger as the triggerer does, and return its only event."""
    events = [event.payload async for event in trigger.run()]
    await trigger.cleanup()
    (event,) = events
    json.dumps(event)
    return event


def has_begun(hub: Hub) -> bool:
    """Whether the inbox and the service were asked for every wait."""
    watches = list(hub.poller._watches.values())
    subscriptions = list(hub.reader._index)
    return (
        bool(watches or subscriptions)
        and all(watch.polled_at for watch in watches)
        and all(subscription.held_back is None for subscription in subscriptions)
    )


@asynccontextmanager
async def waiting(
    *triggers: Any, begun: Callable[[Hub], object] = has_begun
) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Run triggers in the background; their waits have begun, unless they are over already."""
    tasks = [asyncio.create_task(event_of(trigger)) for trigger in triggers]
    try:
        hub = None
        while hub is None:
            await asyncio.sleep(0.01)
            hub = hub_module._HUBS.get(asyncio.get_running_loop(), {}).get("webdata_default")
        await until(lambda: begun(hub) or all(task.done() for task in tasks))
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def timed_out(trigger: Any, **begun: Any) -> dict[str, Any]:
    """Run a trigger whose deadline comes as soon as its wait has begun."""
    async with waiting(trigger, **begun) as (task,):
        deadlines = Hub.of("webdata_default")._deadlines
        for mailbox in list(deadlines._entries):
            deadlines.add(mailbox, time.time())
        event: dict[str, Any] = await task
        return event


@pytest.fixture
def tools() -> Any:
    """What the tests share beside fixtures."""

    class Tools:
        event_of = staticmethod(event_of)
        waiting = staticmethod(waiting)
        timed_out = staticmethod(timed_out)
        until = staticmethod(until)

    return Tools


@pytest.fixture
async def leftovers() -> AsyncIterator[None]:
    """No task is left when everybody has gone."""
    before = asyncio.all_tasks()
    yield
    await until(lambda: True)
    end = time.monotonic() + PATIENCE
    while asyncio.all_tasks() - before - {asyncio.current_task()}:  # type: ignore[arg-type]
        assert time.monotonic() < end, asyncio.all_tasks() - before
        await asyncio.sleep(0.01)
