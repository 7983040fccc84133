# SPDX-License-Identifier: Apache-2.0
"""The first log line of a deferred task, with what it waits for, how, and until when."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest

from airflow_provider_webdata.api.errors import RateLimitError
from airflow_provider_webdata.triggers.base import announcement
from airflow_provider_webdata.triggers.resume import ResumeTrigger
from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger
from airflow_provider_webdata.waiting.backoff import Backoff
from airflow_provider_webdata.waiting.mailbox import Notice
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("leftovers")

CONNECTION = "webdata_default"
JOB = "0b9c1f4e-0000-4000-8000-000000000001"
END = 1_900_000_000.5


def announced(logs: list[Any]) -> list[str]:
    return [entry["event"] for entry in logs if entry["event"].startswith("Waiting for")]


@pytest.mark.says("the task's log says what the task waits for")
async def test_delivery(world: Any, tools: Any, logs: list[Any]) -> None:
    async with tools.waiting(WebDataWebhookTrigger(CONNECTION, key="k", job_id=JOB)):
        await until(lambda: announced(logs))
        (line,) = announced(logs)
        assert line == (
            f"Waiting for a delivery (key k, job_id {JOB}) for connection 'webdata_default', by webhook, "
            "without a deadline"
        )


async def test_result_that_is_fetched_later(logs: list[Any]) -> None:
    """The wait is over, and the service has named a later time for the result."""
    [event async for event in ResumeTrigger(time.time(), {"status": "done"}).run()]
    (line,) = announced(logs)
    assert re.fullmatch(r"Waiting for the time .* by the clock, until \d{4}-.*Z", line)


async def test_many_waits_at_the_same_time(logs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow hangs if it sends triggers while its pipe is full of unread lines."""
    monkeypatch.setattr(announcement, "PAUSE", 3600.0)
    event = {"status": "done"}
    waits = [asyncio.create_task(anext(ResumeTrigger(END, event).run())) for _ in range(300)]
    await until(lambda: len(announced(logs)) >= announcement.AT_ONCE)
    over = ResumeTrigger(time.time() - 1, event)
    assert [found.payload async for found in over.run()] == [event]
    # One wait was over before its turn.
    assert len(announced(logs)) == announcement.AT_ONCE + 1
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    assert len(announced(logs)) == announcement.AT_ONCE + 1


async def test_a_line_that_cannot_be_logged(logs: list[Any]) -> None:
    """It costs neither its wait nor the lines after it."""

    class Broken:
        def __str__(self) -> str:
            raise ValueError("no text")

    for subject in (Broken(), "the next"):
        with announcement.Announcement() as line:
            line.announce(subject, "polling", None)
    assert announced(logs) == ["Waiting for the next, polling, without a deadline"]


async def test_each_has_its_turn(logs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcement, "PAUSE", 0.001)
    waits = [asyncio.create_task(anext(ResumeTrigger(END, {}).run())) for _ in range(30)]
    await until(lambda: len(announced(logs)) == 30)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    assert len(announced(logs)) == 30


@pytest.mark.parametrize(
    ("retry_after", "noted"),
    [(None, 0), (0.5, 0), (5.0, 1)],
    ids=["growing", "short", "long"],
)
def test_named_pause(retry_after: float | None, noted: int) -> None:
    """A long pause that the service names is logged immediately; another single failure is not."""

    error = RateLimitError("search", 429, "busy", retry_after=retry_after)
    notices: list[Notice] = []
    pause = Backoff("service", notices.append).failed(error)
    assert len(notices) == noted
    for notice in notices:
        assert f"(WD-429); the next attempt is in {pause:.1f} s" in notice.text
