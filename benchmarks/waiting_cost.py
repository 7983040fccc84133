# SPDX-License-Identifier: Apache-2.0
"""Cost of a waiting task in the triggerer: memory, requests, and the lag of the event loop.

Each row is a process with one event loop and several triggers, each in a separate asyncio task as in the triggerer. The
alternatives are the deferrable HttpSensor of the HTTP provider, which polls once a minute, a trigger that polls with
its own client, and one that only sleeps. The inbox is in Airflow's API server, on SQLite. The service is a process that
returns a monitor whose last check was long ago. Memory is the increase for each additional wait, as resident set and,
in another process, as measured by tracemalloc. The lag is the excess duration of a sleep of 50 ms.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from benchmarks.api_server import WEBHOOK_SECRET, Airflow
from benchmarks.monitor_service import AIRFLOW_URL, monitor_service
from benchmarks.waiters import FIRST_WAITS, KINDS

QUIET_SECONDS = 60.0
BUSY_SECONDS = 20.0
CALM_SECONDS = 2.0


@dataclass(eq=False)
class Case:
    """A process with a number of waits of one kind."""

    kind: str
    count: int
    trace: bool = False
    seen: dict[str, float] = field(default_factory=dict)
    lags: list[float] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    @property
    def conn_id(self) -> str:
        """The connection id that identifies the case's requests."""
        words = re.sub(r"\W+", "_", self.kind)
        return f"{words}_{self.count}_{'traced' if self.trace else 'plain'}".lower()

    @property
    def monitors(self) -> str:
        """The case's prefix of the service's paths, which ends with the number of monitors."""
        shared = KINDS[self.kind].monitors
        return f"{self.conn_id}-{shared or self.count + FIRST_WAITS}"


NAMES = {
    "asleep": "nothing: asleep",
    "delivery": "a delivery each, this provider",
    "check by webhook": "checks of 50 monitors by webhook, this provider",
    "check by polling": "checks of 50 monitors by polling, this provider",
    "check by polling, a monitor each": "checks of a monitor each by polling, this provider",
    "HttpSensor": "a monitor each, HttpSensor",
    "own client": "a monitor each, polling with an own client",
}
OURS = [kind for kind, name in NAMES.items() if name.endswith("this provider")]
COUNTS = (1_000, 10_000)

QUIET = [Case(kind, count) for kind in ("asleep", *OURS) for count in COUNTS]
# A client takes about 20 ms to create and almost a megabyte, so most machines cannot run ten thousand.
BUSY = [Case("HttpSensor", 1_000), Case("HttpSensor", 10_000), Case("own client", 1_000)]
TRACED = [
    *(Case(kind, 10_000, trace=True) for kind in ("asleep", *OURS)),
    Case("HttpSensor", 1_000, trace=True),
]
CASES = [*QUIET, *BUSY, *TRACED]


def run() -> list[dict[str, object]]:
    """Return a row per kind and number of waits."""
    with tempfile.TemporaryDirectory() as folder, monitor_service() as service:
        home = Path(folder)
        connections = ChainMap(*(_connections(case, service, "") for case in CASES))
        airflow = Airflow(home, f"sqlite:///{home}/airflow.db", connections)
        airflow.set_up()
        with airflow.api_server("inbox") as inbox, _Watch(service, home / "inbox.log", inbox) as watch:
            watch.start(QUIET)
            watch.await_waits(QUIET)
            watch.await_calm(QUIET)
            # Starting these waits takes a minute, in which the other ones have their first regular round.
            watch.start([*BUSY, *TRACED])
            watch.await_waits([*BUSY, *TRACED])
            watch.see(TRACED, 1.0)
            watch.see(BUSY, BUSY_SECONDS)
            watch.see(QUIET, QUIET_SECONDS)
    traced = {(case.kind, case.count): case.seen["bytes"] for case in TRACED}
    return [_row(case, traced.get((case.kind, case.count))) for case in [*QUIET, *BUSY]]


def _connections(case: Case, service: str, inbox: str) -> dict[str, str]:
    extra = {"webhook_url": AIRFLOW_URL, "webhook_secret": WEBHOOK_SECRET, "inbox_url": inbox}
    if "polling" in case.kind:
        extra = {}
    url = f"{service}/{case.monitors}"
    ours = {"conn_type": "webdata", "host": url, "password": "wd-benchmark-key", "extra": extra}
    return {
        f"AIRFLOW_CONN_{case.conn_id.upper()}": json.dumps(ours),
        f"AIRFLOW_CONN_{case.conn_id.upper()}_HTTP": json.dumps({"conn_type": "http", "host": url}),
    }


class _Watch:
    """Runs cases in parallel, and counts the requests of each to the service and to the inbox."""

    def __init__(self, service: str, inbox_log: Path, inbox: str) -> None:
        self._service, self._inbox_log, self._inbox = service, inbox_log, inbox
        self._running: list[Case] = []

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, *_: object) -> None:
        for case in self._running:
            if case.process is not None and case.process.poll() is None:
                case.process.kill()
                case.process.wait()

    def start(self, cases: Sequence[Case]) -> None:
        for case in cases:
            argv = [sys.executable, "-m", "benchmarks.waiters", case.kind, str(case.count), case.conn_id]
            environment = {
                **os.environ,
                **_connections(case, self._service, self._inbox),
                "BENCHMARK_SERVICE": f"{self._service}/{case.monitors}",
            }
            case.process = subprocess.Popen(
                [*argv, *(["--trace"] if case.trace else [])],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._running.append(case)

    def await_waits(self, cases: Sequence[Case]) -> None:
        for case in cases:
            if (line := _line(case)) != "waiting":
                raise RuntimeError(f"{case.kind}: {line!r}")

    def await_calm(self, cases: Sequence[Case]) -> None:
        """Wait until the cases have stopped sending requests for a while."""
        before = self._all_requests(cases)
        while True:
            time.sleep(CALM_SECONDS)
            now = self._all_requests(cases)
            if now == before:
                return
            before = now

    def see(self, cases: Sequence[Case], seconds: float) -> None:
        """Let the cases wait for this time, record the cost, and end them."""
        before = self._all_requests(cases)
        for case in cases:
            assert case.process is not None
            print(seconds, file=case.process.stdin, flush=True)
        for case in cases:
            seen = json.loads(_line(case))
            case.seen, case.lags = seen, seen.pop("lags")
            case.seen["requests to begin"] = before[case.conn_id]
            case.seen["requests a minute"] = (self._requests(case) - before[case.conn_id]) / (seconds / 60)

    def _all_requests(self, cases: Sequence[Case]) -> dict[str, int]:
        return {case.conn_id: self._requests(case) for case in cases}

    def _requests(self, case: Case) -> int:
        with urlopen(f"{self._service}/asked") as answer:
            to_service: int = json.load(answer).get(case.monitors, 0)
        return to_service + self._inbox_log.read_text().count(f" path=/webdata/deliveries/{case.conn_id}")


def _line(case: Case) -> str:
    assert case.process is not None
    assert case.process.stdout is not None
    return case.process.stdout.readline().strip()


def _row(case: Case, traced: float | None) -> dict[str, object]:
    percentiles = statistics.quantiles(case.lags, n=100)
    return {
        "waits": f"{case.count:,}",
        "for": NAMES[case.kind],
        "kB each": round(case.seen["bytes"] / 1000, 1),
        "kB each, traced": "" if traced is None else round(traced / 1000, 1),
        "requests to begin": round(case.seen["requests to begin"]),
        "requests a minute": round(case.seen["requests a minute"]),
        "CPU %": round(100 * case.seen["cpu"], 1),
        "late p50 ms": round(percentiles[49], 1),
        "late p99 ms": round(percentiles[98], 1),
    }
