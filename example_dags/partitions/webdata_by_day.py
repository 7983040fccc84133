"""Search once per day into one file per day, and process each day in its own run.

The first DAG has a run per day, which a backfill can repeat for past days. The second runs when a day's file is
written. Needs Airflow 3.3 or newer.
"""

from __future__ import annotations

import tempfile

import pendulum
from airflow.sdk import (
    Asset,
    CronPartitionTimetable,
    ObjectStoragePath,
    Param,
    PartitionedAssetTimetable,
    dag,
    task,
)

from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Output

results_by_day = Asset("webdata_results_by_day")


@dag(
    dag_id="webdata_by_day",
    # The run at midnight covers the day before.
    schedule=CronPartitionTimetable("0 0 * * *", timezone="UTC", run_offset=-1, key_format="%Y-%m-%d"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    params={
        "query": Param("river", type="string"),
        "folder": Param(
            f"file://{tempfile.gettempdir()}/webdata", type="string", description="Shared by all workers"
        ),
    },
    tags=["webdata", "example"],
)
def webdata_by_day():
    WebDataSearchOperator(
        task_id="search",
        query="{{ params.query }}",
        limit=10,
        tbs="{{ macros.webdata.tbs(dag_run) }}",
        returns="web",
        output=Output("{{ params.folder }}/by_day/{{ dag_run.partition_key }}.jsonl", emit_partitions="date"),
        outlets=[results_by_day],
    )


@dag(
    dag_id="webdata_of_one_day",
    schedule=PartitionedAssetTimetable(assets=results_by_day),
    catchup=False,
    tags=["webdata", "example"],
)
def webdata_of_one_day():
    @task
    def count(path: str, dag_run=None) -> str:
        with ObjectStoragePath(path).open() as file:
            return f"{sum(1 for _ in file)} results of {dag_run.partition_key}"

    count("{{ macros.webdata.partition_file() }}")


webdata_by_day()
webdata_of_one_day()
