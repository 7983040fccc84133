# SPDX-License-Identifier: Apache-2.0
"""A sandbox that sends real webhooks to a real inbox, and a connection to both in the environment."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webhooks import webhook_for
from airflow_provider_webdata.triggers.base import announcement
from airflow_provider_webdata.waiting import backoff
from airflow_provider_webdata.waiting import hub as hub_module
from airflow_provider_webdata.waiting.hub import Hub
from tests.support.inbox_server import InboxServer
from tests.support.job_service import JobService
from tests.support.service import CHECK_COMPLETED, CONNECTION_ID, NEVER, connection_text
from tests.support.waiting import PATIENCE, until
from webdata_sandbox.server import SandboxServer


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the default connection."""

    def set_connection(host: str, **extra: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection_text(host, **extra))

    return set_connection


@pytest.fixture
def jobs() -> Iterator[JobService]:
    """A service that has only jobs."""
    service = JobService()
    yield service
    service.stop()


class World:
    """A sandbox, an inbox, and the calls of a DAG author."""

    def __init__(self, sandbox: SandboxServer, inbox: InboxServer) -> None:
        self.sandbox, self.inbox = sandbox, inbox
        self.control = sandbox.control
        self.hook = WebDataHook()

    def monitor(self, *pages: str, webhook: bool = True, **fields: Any) -> str:
        """Create a monitor of these pages; by default, of a page of the sandbox."""
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
        """Run a check, and return its id once it has ended and its delivery is sent."""
        check = self.hook.run_monitor(monitor_id)
        self.control.settle()
        return check.id

    def calls(self, path: str = "/v2/monitor") -> int:
        """Return the number of calls of the service."""
        return len(self.control.requests(path))


@pytest.fixture
def world(sandbox: SandboxServer, inbox: InboxServer, connect: Callable[..., None]) -> Iterator[World]:
    connect(sandbox.url, retry_budget=0.5, **inbox.extra)
    world = World(sandbox, inbox)
    yield world
    world.hook.close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close hubs immediately, and retry often."""
    monkeypatch.setattr(hub_module, "LINGER", 0.01)
    monkeypatch.setattr(backoff, "MAX_PAUSE", 0.5)
    monkeypatch.setattr(hub_module, "MAX_NAP", 0.1)
    # Waits of earlier tests have used up turns.
    monkeypatch.setattr(announcement, "_next_turn", float("-inf"))
    # No worker has deferred these.
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "0")


class Lines(logging.Handler):
    """The lines of a log, as texts with their levels."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.entries.append({"event": record.getMessage(), "log_level": record.levelname.lower()})


@pytest.fixture
def logs(caplog: pytest.LogCaptureFixture) -> Iterator[list[Any]]:
    """What the triggers log, without the log of the hub and of other packages."""
    name, lines = "airflow_provider_webdata.triggers", Lines()
    logger = logging.getLogger(name)
    logger.addHandler(lines)
    with caplog.at_level(logging.INFO, name):
        yield lines.entries
    logger.removeHandler(lines)


async def event_of(trigger: Any) -> dict[str, Any]:
    """Run a trigger as the triggerer does, and return its only event."""
    events = [event.payload async for event in trigger.run()]
    await trigger.cleanup()
    (event,) = events
    json.dumps(event)
    return event


def has_begun(hub: Hub) -> bool:
    """Return whether the inbox and the service have been called for every wait."""
    subjects = list(hub.polls.subjects.values())
    subscriptions = list(hub.inbox.subscriptions)
    return (
        bool(subjects or subscriptions)
        and all(subject.polled_at for subject in subjects)
        and all(subscription.is_caught_up for subscription in subscriptions)
    )


@asynccontextmanager
async def waiting(
    *triggers: Any, begun: Callable[[Hub], object] = has_begun
) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Run triggers in the background. Within the block their waits have begun, or are over already."""
    tasks = [asyncio.create_task(event_of(trigger)) for trigger in triggers]
    try:
        # Lets the triggers create their hub, if there is none.
        await asyncio.sleep(0.01)
        hub = Hub.of(CONNECTION_ID)
        await until(lambda: begun(hub) or all(task.done() for task in tasks))
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Functions that the tests share."""

    def expire() -> None:
        """Let all deadlines pass."""
        later = SimpleNamespace(time=lambda: time.time() + 2 * PATIENCE)
        monkeypatch.setattr(hub_module, "time", later)

    async def timed_out(trigger: Any, **begun: Any) -> dict[str, Any]:
        """Run a trigger whose deadline passes as soon as its wait has begun."""
        async with waiting(trigger, **begun) as (task,):
            expire()
            event: dict[str, Any] = await task
            return event

    return SimpleNamespace(
        event_of=event_of, waiting=waiting, expire=expire, timed_out=timed_out, until=until
    )


@pytest.fixture
async def leftovers() -> AsyncIterator[None]:
    """Fail if a task of the event loop is left."""
    before = asyncio.all_tasks()
    yield
    await until(lambda: True)
    end = time.monotonic() + PATIENCE
    while asyncio.all_tasks() - before - {asyncio.current_task()}:  # type: ignore[arg-type]
        assert time.monotonic() < end, asyncio.all_tasks() - before
        await asyncio.sleep(0.01)
