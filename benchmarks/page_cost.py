# SPDX-License-Identifier: Apache-2.0
"""Milliseconds to load a page in Airflow's UI with 1,000,000 deliveries of the last 24 hours, by database.

The pages of one API server (one uvicorn process) are requested one after the other as a browser does, alternating with
Airflow's list of DAGs. Ratios are to that list. Figures are the median and the slowest of all rounds. Data of the
service, which a page loads later, is not included.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import sqlalchemy as sa

from airflow_provider_webdata.common.page_urls import UI_PATH
from benchmarks.api_server import Airflow
from benchmarks.databases import DATABASES
from tests.support.airflow_settings import Ports, login
from tests.support.many_deliveries import fill

ROUNDS = 15
DELIVERIES = 1_000_000
CONN_ID = "bench"
JOB_ID = f"job-{DELIVERIES // 10}"
OURS = {
    "overview": f"{UI_PATH}/",
    "inbox": f"{UI_PATH}/inbox",
    "inbox, of an event": f"{UI_PATH}/inbox?conn_id={CONN_ID}&event=monitor.check.completed",
    "inbox, of a job": f"{UI_PATH}/inbox?find={JOB_ID}",
    "a delivery": f"{UI_PATH}/inbox/delivery?id={DELIVERIES // 2}",
    "needs attention": f"{UI_PATH}/attention?days=7",
    "tab of a task": f"{UI_PATH}/task?dag_id=shop&run_id=run&task_id=crawl&map_index=-1",
}
AIRFLOWS = "/api/v2/dags?limit=50"
_ADD_TASK = f"""
from airflow.utils.session import create_session
from tests.support.airflow_rows import add_task
with create_session() as session:
    add_task(session, "shop", "crawl", operator="WebDataCrawlOperator", rendered={{"webdata_conn_id": "{CONN_ID}"}},
             xcoms={{"job_id": "{JOB_ID}"}})
"""


def run() -> list[dict[str, object]]:
    """Return a row per database and page."""
    rows: list[dict[str, object]] = []
    for name, database in DATABASES.items():
        with tempfile.TemporaryDirectory() as folder, database(Path(folder)) as url:
            rows += _measure(name, Airflow(Path(folder), url, {}))
    return rows


def _measure(name: str, airflow: Airflow) -> list[dict[str, object]]:
    airflow.set_up()
    subprocess.run([sys.executable, "-c", _ADD_TASK], env=airflow.environment(Ports.free()), check=True)
    engine = sa.create_engine(airflow.database)
    # All deliveries are from the last 24 hours.
    step = 80_000
    fill(engine, CONN_ID, DELIVERIES, int(time.time() * 10**6) - DELIVERIES * step, step)
    engine.dispose()
    with airflow.api_server("pages") as url, httpx.Client(base_url=url, timeout=600) as http:
        user, password = login(airflow.home)
        token = http.post("/auth/token", json={"username": user, "password": password}).json()["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"
        paths = {"Airflow's list of DAGs": AIRFLOWS, **OURS}
        durations: dict[str, list[float]] = {what: [] for what in paths}
        for number in range(ROUNDS + 1):
            for what, path in paths.items():
                began = time.perf_counter()
                answer = http.get(path)
                if number:
                    durations[what].append((time.perf_counter() - began) * 1000)
                answer.raise_for_status()
    yardstick = statistics.median(durations[next(iter(durations))])
    return [
        {
            "Database": name,
            "Page": what,
            "Median, ms": f"{statistics.median(times):.0f}",
            "Slowest, ms": f"{max(times):.0f}",
            "Ratio": f"{statistics.median(times) / yardstick:.2f}",
        }
        for what, times in durations.items()
    ]
