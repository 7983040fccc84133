"""CPU and wall time of one search, by response size, as ratios to plain httpx with json."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack

from benchmarks.bodies import SIZES, canned_server, search_response
from benchmarks.contenders import CONTENDERS

ROUNDS = 15
CALLS_PER_ROUND = {"3 kB": 60, "1 MB": 10, "10 MB": 2}
BASE = "httpx + json"


def run() -> list[dict[str, object]]:
    """Return a row per size and contender: CPU and wall in ms, and each as a ratio to the base."""
    rows: list[dict[str, object]] = []
    for size, content in SIZES.items():
        with ExitStack() as stack:
            url = stack.enter_context(canned_server(search_response(content)))
            searches = {name: make(url) for name, make in CONTENDERS.items()}
            for search in searches.values():
                assert search() == 10
            cpu: dict[str, list[float]] = {name: [] for name in searches}
            wall: dict[str, list[float]] = {name: [] for name in searches}
            for _ in range(ROUNDS):
                # One after the other within each round, so that a slow moment of the machine hits all of them.
                for name, search in searches.items():
                    cpu_start, wall_start = time.process_time(), time.perf_counter()
                    for _ in range(CALLS_PER_ROUND[size]):
                        search()
                    cpu[name].append((time.process_time() - cpu_start) / CALLS_PER_ROUND[size])
                    wall[name].append((time.perf_counter() - wall_start) / CALLS_PER_ROUND[size])
            rows += [
                {
                    "response": size,
                    "client": name,
                    "cpu ms": round(1000 * statistics.median(cpu[name]), 3),
                    "wall ms": round(1000 * statistics.median(wall[name]), 3),
                    "cpu ratio": _ratio(cpu[name], cpu[BASE]),
                    "wall ratio": _ratio(wall[name], wall[BASE]),
                }
                for name in searches
            ]
    return rows


def _ratio(these: list[float], base: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(these, base, strict=True)), 2)
