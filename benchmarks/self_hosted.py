# SPDX-License-Identifier: Apache-2.0
"""Time to start a crawl and to create a connection on a self-hosted server, against firecrawl-py and Airflow's command.

The server is the sandbox in its self-hosted profile, which has no list of calls and no balance.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

STARTS = 10
COMMANDS = 3
SITE = "https://river.example/"


def run() -> list[dict[str, object]]:
    """Return a row per step: seconds, those of the alternative, and their ratio."""
    from firecrawl import Firecrawl

    from webdata_sandbox.server import SandboxServer

    with SandboxServer(profile="self-hosted", settle=True, queue_seconds=0, closing_seconds=0) as server:
        client = Firecrawl(api_url=server.url, api_key="none")
        start = _task_start(server.url)
        theirs, ours = _alternating(STARTS, lambda: client.start_crawl(SITE, limit=3), start)
        rows = [_row("start of a crawl of three pages, from `execute`", ours, theirs, "firecrawl-py")]
        with tempfile.TemporaryDirectory() as folder:
            environ = _airflow(Path(folder))
            theirs, ours = _alternating(
                COMMANDS,
                lambda: _command(environ, "connections", "add", f"c{time.time_ns()}", "--conn-type", "http"),
                lambda: _command(
                    environ,
                    *("webdata", "init", "--no-example", "--conn-id", f"c{time.time_ns()}"),
                    *("--base-url", server.url),
                ),
            )
        rows.append(_row("`airflow webdata init`", ours, theirs, "`airflow connections add`"))
    return rows


def _task_start(url: str) -> Callable[[], object]:
    from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
    from tests.support import direct
    from tests.support.service import connection_text

    os.environ["AIRFLOW_CONN_WEBDATA_DEFAULT"] = connection_text(url, "", server="self-hosted")

    def start() -> None:
        task = WebDataCrawlOperator(task_id="crawl", url=SITE, limit=3, wait_for_completion=False)
        outcome = direct.run(task)
        if outcome.error is not None:
            raise outcome.error

    return start


def _airflow(home: Path) -> dict[str, str]:
    environ = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
    }
    environ.pop("AIRFLOW_CONN_WEBDATA_DEFAULT")
    _command(environ, "db", "migrate")
    return environ


def _command(environ: dict[str, str], *argv: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "airflow", *argv],
        env=environ,
        input="",
        check=True,
        capture_output=True,
        text=True,
    )


def _alternating(
    rounds: int, one: Callable[[], object], other: Callable[[], object]
) -> tuple[list[float], list[float]]:
    """Return the seconds of both, which run alternately; the first round is not counted."""
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for seconds, call in zip(found, (one, other), strict=True):
            begin = time.perf_counter()
            call()
            if number:
                seconds.append(time.perf_counter() - begin)
    return found


def _row(step: str, ours: list[float], theirs: list[float], alternative: str) -> dict[str, object]:
    return {
        "step": step,
        "seconds": round(statistics.median(ours), 3),
        "alternative": alternative,
        "its seconds": round(statistics.median(theirs), 3),
        "ratio": round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 1),
    }
