# SPDX-License-Identifier: Apache-2.0
"""Search once a day for recent pages, process each result in its own task, and report.

The operator returns the list of web results, so the next task maps over it: one task instance per result, with its own
log and retries.
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.sdk import CronDataIntervalTimetable, dag, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator


@dag(
    dag_id="webdata_search",
    # Each run covers the day before. With a plain "@daily", data intervals have no length.
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    tags=["webdata", "example"],
)
def webdata_search():
    search = WebDataSearchOperator(
        task_id="search",
        query="site:river.example",
        limit=5,
        # The seven days before the run was due: a run that is repeated a month later searches the same days.
        tbs="{{ macros.webdata.tbs(dag_run.run_after - macros.timedelta(days=7), dag_run.run_after) }}",
        # Without formats, results have only title, description, and url.
        scrape_options={"formats": ["markdown"]},
        returns="web",
    )

    @task
    def summarize(result: dict[str, Any]) -> str:
        """Summarize one result."""
        words = len((result.get("markdown") or "").split())
        return f"{result['title']} ({words} words) {result['url']}"

    @task
    def report(lines: list[str]) -> str:
        return "\n".join(lines)

    report(summarize.expand(result=search.output))


webdata_search()
