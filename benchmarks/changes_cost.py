# SPDX-License-Identifier: Apache-2.0
"""Cost of `changes` in a run: seconds and memory to compare a site with the state, and to write the next state.

10% of the pages have changed, and 1% are new. The ratio is to writing the same pages as JSON Lines, which a run does
anyway. Memory is the peak in addition to the previous memory of Airflow and the package. Linux only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.results.files.output import OutputFile
from airflow_provider_webdata.runs.publishing.detect_changes import DetectChanges
from airflow_provider_webdata.runs.publishing.step import Results
from benchmarks.peak_memory import resident

SIZES = {"pages of 3 kB": 10_000, "links": 1_000_000}
_TEXT = "The river stood at two metres this morning. " * 70


def run() -> list[dict[str, object]]:
    """Return a row per size, each measured in a separate process."""
    rows: list[dict[str, object]] = []
    for what in SIZES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.changes_cost", what],
            check=True,
            capture_output=True,
            text=True,
        )
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    return rows


def _items(what: str, day: int) -> Iterator[dict[str, Any]]:
    count = SIZES[what]
    for number in range(count // 100 * day, count + count // 100 * day):
        url = f"https://site.example/part-{number % 97}/page-{number}"
        if what == "links":
            yield {"url": url, "title": f"Page {number}"}
        else:
            text = f"# Page {number}, version {day if number % 10 == 0 else 0}\n\n{_TEXT}"
            yield {"markdown": text, "metadata": {"sourceURL": url, "url": url, "statusCode": 200}}


def _step(folder: str, day: int) -> DetectChanges:
    states = SimpleNamespace(get_task_states=lambda **_: {}, get_dr_count=lambda *_, **__: 1)
    task = WebDataMapOperator(task_id="task", url="https://site.example/")
    ti = SimpleNamespace(
        **vars(states), task=task, dag_id="dag", run_id=f"night {day}", task_id="task", map_index=-1
    )
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=day)
    context: Any = {"ti": ti, "dag_run": SimpleNamespace(run_after=moment)}
    return DetectChanges(Changes(folder), task, context, dict, None)


def _pass(what: str, folder: str, day: int) -> None:
    step = _step(folder, day)
    kind = "link" if what == "links" else "document"
    results = Results(_items(what, day), kind, {}, site="https://site.example/")
    emitted = sum(1 for _ in step.transform(results).items)
    step.written()
    count = SIZES[what]
    # 1% are new; 10% of the pages have changed.
    expected = count // 100 + (0 if what == "links" else count // 10)
    assert not day or abs(emitted - expected) < count // 100, (emitted, expected)


def _measure(what: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as home:
        folder = f"file://{home}/seen"
        _pass(what, folder, 0)
        began = time.perf_counter()
        for _ in _items(what, 1):
            pass
        making = time.perf_counter() - began
        began = time.perf_counter()
        with OutputFile(f"file://{home}/out.jsonl", ()) as file:
            file.write(_items(what, 1))
        writing = time.perf_counter() - began - making
        Path("/proc/self/clear_refs").write_text("5")
        before = resident("VmRSS")
        began = time.perf_counter()
        _pass(what, folder, 1)
        seconds = time.perf_counter() - began - making
        peak = resident("VmHWM") - before
    return {
        "State": f"{SIZES[what]:,} {what}",
        "Seconds": f"{seconds:.2f}",
        "Ratio to writing them": f"{seconds / writing:.1f}",
        "Peak, MB": f"{peak / 2**20:.0f}",
    }


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
