# SPDX-License-Identifier: Apache-2.0
"""Search each month for pages published in that month, and write one file per month.

The time filter comes from the run's data interval, not from the clock. Late runs (catch-up), cleared tasks, and
backfills (`airflow backfill create --dag-id webdata_incremental_search ...`) search the same days and replace the same
file. No two months overlap.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pendulum
from airflow.sdk import Asset, CronDataIntervalTimetable, ObjectStoragePath, Param, dag, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator

# Schedule other DAGs on it; its events have the file's `path`, `count`, and `credits_used`.
results = Asset("webdata_incremental_search_results")


@dag(
    dag_id="webdata_incremental_search",
    # This timetable gives each run a data interval; a plain "@monthly" does not.
    schedule=CronDataIntervalTimetable("@monthly", timezone="UTC"),
    start_date=pendulum.datetime(2026, 8, 1, tz="UTC"),
    # One run for each month since then, two concurrently.
    catchup=True,
    max_active_runs=2,
    params={
        "folder": Param(
            f"file://{tempfile.gettempdir()}/webdata",
            type="string",
            description="Folder for files that all workers share, such as s3://conn_id@bucket/key.",
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
        # A manual run may have no data interval; then both use the day on which it started. A second run of a day
        # replaces its file.
        save_to="{{ params.folder }}/{{ dag.dag_id }}/"
        "{{ (dag_run.data_interval_start or dag_run.run_after) | ds }}.jsonl",
        outlets=[results],
        retries=2,
    )

    @task
    def report(found: dict[str, Any]) -> str:
        import json

        with ObjectStoragePath(found["path"]).open() as file:
            items = [json.loads(line) for line in file]
        summary = f"{found['count']} results, {found['credits_used']} credits, {found['path']}"
        return "\n".join([summary, *(f"{item['title']} {item['url']}" for item in items)])

    report(search.output)


webdata_incremental_search()
