# SPDX-License-Identifier: Apache-2.0
"""CPU time of one search by response size and text, as ratios to plain httpx with json, and the worst ratios."""

from __future__ import annotations

import statistics
import time

from benchmarks.bodies import MIXES, SIZES, Mix, canned_server, search_response
from benchmarks.contenders import CONTENDERS

ROUNDS = 15
CALLS_PER_ROUND = {"3 kB": 60, "1 MB": 10, "10 MB": 2}
BASE = "httpx + json"


def run() -> list[dict[str, object]]:
    """Return a row per size and text: CPU of the base in ms, and of each contender as a ratio to it."""
    rows: list[dict[str, object]] = []
    for size in SIZES:
        found = {name: _measured(size, mix) for name, mix in MIXES.items()}
        rows += [{"response": size, "text": name, **ratios} for name, ratios in found.items()]
        worst = {name: max(ratios[name] for ratios in found.values()) for name in CONTENDERS if name != BASE}
        rows.append({"response": size, "text": "the worst", f"{BASE}, cpu ms": "", **worst})
    return rows


def _measured(size: str, mix: Mix) -> dict[str, float]:
    body = search_response(SIZES[size], mix)
    results = mix.results if SIZES[size] else 10
    with canned_server(body) as url:
        searches = {name: make(url) for name, make in CONTENDERS.items()}
        for search in searches.values():
            assert search() == results
        cpu: dict[str, list[float]] = {name: [] for name in searches}
        for _ in range(ROUNDS):
            # One after the other within each round, so that a slow moment of the machine affects all of them.
            for name, search in searches.items():
                start = time.process_time()
                for _ in range(CALLS_PER_ROUND[size]):
                    search()
                cpu[name].append((time.process_time() - start) / CALLS_PER_ROUND[size])
    ratios = {name: _ratio(these, cpu[BASE]) for name, these in cpu.items() if name != BASE}
    return {f"{BASE}, cpu ms": round(1000 * statistics.median(cpu[BASE]), 3), **ratios}


def _ratio(these: list[float], base: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(these, base, strict=True)), 2)
