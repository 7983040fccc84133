# SPDX-License-Identifier: Apache-2.0
"""A DAG with a run for each day, and one that runs for each day of its asset."""

from __future__ import annotations

import tempfile

import pendulum
from airflow.sdk import Asset, CronPartitionTimetable, Param, PartitionedAssetTimetable, dag, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator

days = Asset("e2e_days")


@dag(
    dag_id="e2e_each_day",
    # The run at midnight covers the day before.
    schedule=CronPartitionTimetable("0 0 * * *", timezone="UTC", run_offset=-1, key_format="%Y-%m-%d"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    params={"folder": Param(f"file://{tempfile.gettempdir()}/webdata", type="string")},
)
def each_day():
    WebDataSearchOperator(
        task_id="search",
        query="river",
        limit=10,
        tbs="{{ macros.webdata.tbs(dag_run) }}",
        save_to="{{ params.folder }}/{{ dag_run.partition_key }}.jsonl",
        outlets=[days],
    )


@dag(dag_id="e2e_one_day", schedule=PartitionedAssetTimetable(assets=days), catchup=False)
def one_day():
    @task
    def path(*, triggering_asset_events) -> str:
        return triggering_asset_events[days][-1].extra["path"]

    path()


each_day()
one_day()
