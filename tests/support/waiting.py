# SPDX-License-Identifier: Apache-2.0
"""Functions that wait for the work of another thread, process, or task."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

# Seconds after which a wait has failed, however slow the machine.
PATIENCE = 600.0


def wait_until(condition: Callable[[], object], patience: float = PATIENCE, pause: float = 0.1) -> bool:
    """Check `condition` until it holds (True) or `patience` seconds have passed (False).

    :param pause: least seconds between two checks; a long wait checks once a second.
    """
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited > patience:
            return False
        time.sleep(max(pause, min(waited / 20, 1.0)))
    return True


def today(seconds: float) -> date:
    """Return the date (UTC), which stays the same for this many seconds. If midnight is nearer, wait for it first."""
    now = datetime.now(timezone.utc)
    midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), timezone.utc)
    if (left := (midnight - now).total_seconds()) < seconds:
        time.sleep(left)
        return midnight.date()
    return now.date()


async def until(condition: Callable[[], object]) -> None:
    """Return once `condition` holds, which is checked in a thread; fails if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, "it did not come about"
        await asyncio.sleep(0.01)


async def settled(value: Any) -> Any:
    """The result of a method of a blocking or an asynchronous client: awaited, or read to the end."""
    if inspect.isasyncgen(value):
        return [item async for item in value]
    if inspect.isgenerator(value):
        return list(value)
    return await value if inspect.isawaitable(value) else value
