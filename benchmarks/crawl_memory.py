# SPDX-License-Identifier: Apache-2.0
"""Peak memory of writing a crawl's pages to JSON Lines, in addition to the interpreter with Airflow loaded.

Linux only: the high-water mark of the resident set is reset through /proc before the pages are read.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peak_memory import resident

PAGES = (1_000, 10_000)
PAGE_CHARACTERS = 20_000


def run() -> list[dict[str, object]]:
    """Return a row per number of pages: the file's size, and the peak."""
    from webdata_sandbox.server import SandboxServer

    rows: list[dict[str, object]] = []
    for pages in PAGES:
        with SandboxServer(credits=10 * pages) as server:
            server.control.set_site("site.example", pages=pages, size=PAGE_CHARACTERS)
            command = [
                sys.executable,
                "-m",
                "benchmarks.crawl_memory",
                server.url,
                server.api_key,
                str(pages),
            ]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            count, written, peak = json.loads(done.stdout.splitlines()[-1])
            if count != pages:
                raise AssertionError(f"{count} of {pages} pages")
        rows.append(
            {
                "pages": f"{pages:,}",
                "file MB": round(written / 10**6, 1),
                "peak MB over Airflow": round(peak / 10**6, 1),
            }
        )
    return rows


def _measure(url: str, key: str, pages: int) -> tuple[int, int, int]:
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.sensors.job import WebDataJobSensor
    from tests.support import direct
    from webdata_sandbox.control import SandboxControl

    connection = {"conn_type": "webdata", "host": url, "password": key}
    os.environ["AIRFLOW_CONN_WEBDATA_DEFAULT"] = json.dumps(connection)
    with WebDataHook() as hook:
        job = hook.start_crawl(url="https://site.example/", limit=pages)
    assert job.id is not None
    SandboxControl(url).settle()
    with tempfile.TemporaryDirectory() as folder:
        output = f"file://{folder}/pages.jsonl"
        task = WebDataJobSensor(
            task_id="crawl", kind="crawl", job_id=job.id, save_to=output, deferrable=False
        )
        # Exclude the memory of the run's modules.
        importlib.import_module(task._run_path.partition(":")[0])
        before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        outcome = direct.run(task)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value["count"], outcome.value["bytes"], resident("VmHWM") - before


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
