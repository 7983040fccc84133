# SPDX-License-Identifier: Apache-2.0
"""Operators in loops of task groups, and the example of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.airflow_features import HAS_LOOPS
from tests.support.dag_runner import Airflow, connection
from webdata_sandbox.server import SandboxServer

EXAMPLE = Path(__file__).parents[3] / "example_dags" / "loops" / "webdata_search_until_enough.py"

pytestmark = pytest.mark.skipif(not HAS_LOOPS, reason="this Airflow has no loops")


def test_a_search_that_widens_until_it_finds_enough(airflow: Airflow, sandbox: SandboxServer) -> None:
    example = EXAMPLE.read_text(encoding="utf-8")
    bound = example.replace("\nwebdata_search_until_enough()", "\ndag = webdata_search_until_enough()")
    done = airflow.run(bound, AIRFLOW_CONN_WEBDATA_DEFAULT=connection(sandbox))
    assert done.run["state"] == "success", done.log[-3000:]
    windows = [request["body"]["tbs"] for request in sandbox.control.requests("/v2/search")]
    report = done.xcom["report.return_value"]
    assert (windows, report["searches"]) == (["qdr:d", "qdr:w", "qdr:m"], 3)
    assert len(report["urls"]) == 8


def test_each_iteration_starts_its_own_job(run_dag: Any, sandbox: SandboxServer) -> None:
    """They share the map index, by which attempts of other tasks find their job."""
    done = run_dag(
        """
        @task_group
        def again():
            WebDataCrawlOperator(
                task_id="crawl", url="https://river.example/", limit="{{ loop.index + 1 }}", poll_interval=1
            )

        again.loop(max_iterations=2)
        """,
        before="from airflow.sdk import task_group\n"
        "from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator",
    )
    assert done.run["state"] == "success", done.log[-3000:]
    assert [job["request"]["limit"] for job in sandbox.control.jobs("crawl")] == [1, 2]
