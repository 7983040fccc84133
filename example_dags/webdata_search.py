"""Search once a day for what was published lately, work on every result by itself, then sum up.

The operator returns the list of web results, so the next task maps over it directly: one task instance per
result, each with its own log, retries and place in the UI.
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.sdk import CronDataIntervalTimetable, dag, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator


@dag(
    dag_id="webdata_search",
    # A run that covers the day before. A plain "@daily" makes runs whose data interval has no length.
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
        # The seven days up to the moment at which the run was due: repeated a month later, it asks for the same
        # days again.
        tbs="{{ macros.webdata.tbs(dag_run.run_after - macros.timedelta(days=7), dag_run.run_after) }}",
        # Without formats, results carry title, description and url only.
        scrape_options={"formats": ["markdown"]},
        returns="web",
    )

    @task
    def summarize(result: dict[str, Any]) -> str:
        """Runs once for each result."""
        words = len((result.get("markdown") or "").split())
        return f"{result['title']} ({words} words) {result['url']}"

    @task
    def report(lines: list[str]) -> str:
        return "\n".join(lines)

    report(summarize.expand(result=search.output))


webdata_search()
