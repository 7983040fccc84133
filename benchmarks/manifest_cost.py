"""Cost of a manifest in a run: seconds and memory to read it, compare a site with it, and write the next one.

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
from typing import Any

from airflow_provider_webdata.results.files.output import OutputFile
from airflow_provider_webdata.results.manifest.comparison import Comparison
from airflow_provider_webdata.results.manifest.folder import ManifestFolder, ManifestRun
from benchmarks.peak_memory import resident

SIZES = {"pages of 3 kB": 10_000, "links": 1_000_000}
_TEXT = "The river stood at two metres this morning. " * 70


def run() -> list[dict[str, object]]:
    """Return a row per size, each measured in a separate process."""
    rows: list[dict[str, object]] = []
    for what in SIZES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.manifest_cost", what],
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


def _pass(what: str, folder: ManifestFolder, day: int) -> None:
    run = ManifestRun(
        datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=day), "dag", f"run_{day}", "task"
    )
    known = folder.known_before(run)
    compare = "url" if what == "links" else "content"
    comparison = Comparison(known.entries, run.stored_moment, compare)  # type: ignore[arg-type]
    for item in _items(what, day):
        comparison.change_of(item)
    assert len(comparison.removed(1, SIZES[what])) == (SIZES[what] // 100 if day else 0)
    folder.write(run, known, comparison.entries(), compare)


def _measure(what: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as home:
        folder = ManifestFolder(f"file://{home}/seen")
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
        "Manifest": f"{SIZES[what]:,} {what}",
        "Seconds": f"{seconds:.2f}",
        "Ratio to writing them": f"{seconds / writing:.1f}",
        "Peak, MB": f"{peak / 2**20:.0f}",
    }


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
