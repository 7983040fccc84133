"""Search once for each month, for pages published in that month, and store the results in a separate file.

The time filter comes from the run's data interval, not from the clock. So runs that come late (catch-up), again
(a cleared task) or out of order (`airflow backfill create --dag-id webdata_incremental_search ...`) ask for the same
days, replace the same file, and no two months overlap.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pendulum
from airflow.sdk import Asset, CronDataIntervalTimetable, ObjectStoragePath, Param, dag, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator

# Other DAGs can be scheduled on it; its events tell `path`, `count` and `creditsUsed` of the file.
results = Asset("webdata_incremental_search_results")


@dag(
    dag_id="webdata_incremental_search",
    # With this timetable a run has the interval that it is for; a plain "@monthly" has none.
    schedule=CronDataIntervalTimetable("@monthly", timezone="UTC"),
    start_date=pendulum.datetime(2026, 8, 1, tz="UTC"),
    # Every month since then gets its run, two at a time.
    catchup=True,
    max_active_runs=2,
    params={
        "folder": Param(
            f"file://{tempfile.gettempdir()}/webdata",
            type="string",
            description="Where the files go: a folder that all workers share, or for example s3://conn_id@bucket/key.",
        ),
    },
    tags=["webdata", "example"],
)
def webdata_incremental_search():
    search = WebDataSearchOperator(
        task_id="search",
        query="pipeline",
        limit=20,
        tbs="{{ macros.webdata.tbs(dag_run) }}",
        # A run that was started by hand may have no data interval; then both are about its own day.
        output="{{ params.folder }}/{{ dag.dag_id }}/"
        "{{ (dag_run.data_interval_start or dag_run.run_after) | ds }}.jsonl",
        outlets=[results],
        retries=2,
    )

    @task
    def report(found: dict[str, Any]) -> str:
        import json

        with ObjectStoragePath(found["path"]).open() as file:
            items = [json.loads(line) for line in file]
        summary = f"{found['count']} results, {found['creditsUsed']} credits, {found['path']}"
        return "\n".join([summary, *(f"{item['title']} {item['url']}" for item in items)])

    report(search.output)


webdata_incremental_search()
