# SPDX-License-Identifier: Apache-2.0
"""Waits of one kind in one event loop, as in the triggerer, and their cost.

Run it as `python -m benchmarks.waiters KIND COUNT CONN_ID`. It prints `waiting` when all waits have started, reads a
number of seconds from standard input, measures for that time, and prints the result. With `--trace`, memory is measured
with tracemalloc, which slows the waits down. `BENCHMARK_SERVICE` is the service's URL; the connections are in the
environment, as for Airflow.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from airflow.triggers.base import BaseTrigger, TriggerEvent

from benchmarks.monitor_service import lift_file_limit, monitor_id

CONN_ID = sys.argv[3] if len(sys.argv) > 3 else ""
POLL_INTERVAL = 60.0
FIRST_WAITS = 10
SHARED = 50

AFTER = "2026-06-01T00:00:00+00:00"
"""A check that finished after this time ends a wait. In this benchmark, no check does."""


class SleepingTrigger(BaseTrigger):
    """Only sleeps: the minimum cost of a wait."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.SleepingTrigger", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(10**6)
        yield TriggerEvent({})  # type: ignore[no-untyped-call]


class KeptClientTrigger(BaseTrigger):
    """Requests a separate monitor once a minute with its own persistent client."""

    def __init__(self, number: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.number = number

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.KeptClientTrigger", {"number": self.number}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        import httpx

        async with httpx.AsyncClient(base_url=os.environ["BENCHMARK_SERVICE"]) as client:
            while True:
                # After any HTTP error, retry a minute later.
                with contextlib.suppress(httpx.HTTPError):
                    response = await client.get(f"/v2/monitor/{monitor_id(self.number)}")
                    if response.raise_for_status().json()["data"]["lastRunAt"] > AFTER:
                        yield TriggerEvent({"status": "done"})  # type: ignore[no-untyped-call]
                        return
                await asyncio.sleep(POLL_INTERVAL)


def _sensor(number: int) -> BaseTrigger:
    from airflow.providers.http.triggers.http import HttpSensorTrigger

    # The trigger polls while the response is 404.
    endpoint = f"v2/monitor/{monitor_id(number)}/checks/next"
    return HttpSensorTrigger(endpoint=endpoint, http_conn_id=f"{CONN_ID}_http", poke_interval=POLL_INTERVAL)


def _delivery(number: int) -> BaseTrigger:
    from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger

    return WebDataWebhookTrigger(
        webdata_conn_id=CONN_ID, key=f"key-of-wait-{number}", after=AFTER, deadline=_in_a_day()
    )


def _check(number: int) -> BaseTrigger:
    from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger

    return WebDataMonitorCheckTrigger(
        webdata_conn_id=CONN_ID,
        monitor_id=monitor_id(number),
        after=AFTER,
        poll_interval=POLL_INTERVAL,
        criteria={},
        deadline=_in_a_day(),
    )


def _in_a_day() -> float:
    return time.time() + 86_400


@dataclass(frozen=True)
class Kind:
    """A kind of wait.

    :param trigger: creates a trigger from the number of the wait.
    :param spread: seconds over which the waits start.
    :param monitors: number of monitors at the service; 0: one for each wait.
    """

    trigger: Callable[[int], BaseTrigger]
    spread: float = 0.0
    monitors: int = 0


KINDS: dict[str, Kind] = {
    "asleep": Kind(lambda _: SleepingTrigger()),  # type: ignore[no-untyped-call]
    "delivery": Kind(_delivery),
    "check by webhook": Kind(lambda number: _check(number % SHARED), monitors=SHARED),
    "check by polling": Kind(lambda number: _check(number % SHARED), monitors=SHARED),
    "check by polling, a monitor each": Kind(_check),
    # Started in the same second, they would all poll in a burst each minute.
    "HttpSensor": Kind(_sensor, spread=POLL_INTERVAL),
    "own client": Kind(KeptClientTrigger, spread=POLL_INTERVAL),
}


async def _wait(trigger: BaseTrigger) -> None:
    async for event in trigger.run():
        raise RuntimeError(f"a wait ended: {event}")


async def measure(
    kind: Kind, count: int, memory: Callable[[], int], say: Callable[[str], None]
) -> dict[str, object]:
    """Start the waits; return bytes per wait, CPU seconds per second, and the lags of the event loop in ms."""
    tasks = [asyncio.create_task(_wait(kind.trigger(number))) for number in range(FIRST_WAITS)]
    # The first waits load everything that later waits share: modules, readers, pooled connections.
    await asyncio.sleep(2.0)
    before, start = memory(), time.monotonic()
    for number in range(count):
        tasks.append(asyncio.create_task(_wait(kind.trigger(FIRST_WAITS + number))))
        if number % 10 == 0:
            await asyncio.sleep(max(0.0, start + kind.spread * number / count - time.monotonic()))
    await asyncio.sleep(3.0)
    say("waiting")
    seconds = float(await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline))
    used, end, lags = time.process_time(), time.monotonic() + seconds, []
    while time.monotonic() < end:
        lags.append(await _lag())
    for task in tasks:
        if task.done():
            task.result()
    return {
        "bytes": (memory() - before) / count,
        "cpu": (time.process_time() - used) / seconds,
        "lags": [round(1000 * lag, 3) for lag in lags],
    }


async def _lag(pause: float = 0.05) -> float:
    start = time.perf_counter()
    await asyncio.sleep(pause)
    return max(0.0, time.perf_counter() - start - pause)


def _resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise LookupError("VmRSS")


def _traced() -> int:
    return tracemalloc.get_traced_memory()[0]


async def _main(name: str, count: int, trace: bool, answers: TextIO) -> None:
    def say(text: str) -> None:
        print(text, file=answers, flush=True)

    lift_file_limit()
    if trace:
        tracemalloc.start(1)
    say(json.dumps(await measure(KINDS[name], count, _traced if trace else _resident, say)))
    # Exit without cleanup, which would take long for ten thousand waits.
    os._exit(0)


if __name__ == "__main__":
    # In the triggerer, the output of triggers goes to the logs of their tasks. Discard it here.
    with os.fdopen(os.dup(1), "w") as pipe, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        asyncio.run(_main(sys.argv[1], int(sys.argv[2]), "--trace" in sys.argv, pipe))
