# SPDX-License-Identifier: Apache-2.0
"""Running a coroutine beside a thread that signals may interrupt."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from airflow_provider_webdata.runs import event_loop
from airflow_provider_webdata.runs.event_loop import run_aside

WHO: ContextVar[str] = ContextVar("WHO")


class TimeIsOverError(BaseException):
    pass


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeIsOverError

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_what_comes_of_it_is_returned_or_raised() -> None:
    async def ask() -> str:
        await asyncio.sleep(0)
        return WHO.get()

    async def fail() -> None:
        raise LookupError("nothing")

    WHO.set("the caller")
    assert run_aside(ask()) == "the caller"
    with pytest.raises(LookupError, match="nothing"):
        run_aside(fail())


@pytest.mark.usefixtures("alarm")
def test_a_signal_ends_it_after_its_clean_up() -> None:
    done: list[str] = []

    async def work() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            done.append("cleaned up")

    with pytest.raises(TimeIsOverError):
        run_aside(work())
    assert done == ["cleaned up"]


@pytest.mark.usefixtures("alarm")
def test_a_signal_before_anybody_waits_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(30)
        done.append("all of it")

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **more: Any) -> Any:
            super().submit(*arguments, **more)
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(event_loop, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(TimeIsOverError):
        run_aside(work())
    assert done == []
