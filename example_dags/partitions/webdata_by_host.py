"""Crawl sites into one file per host, and process each host in its own run.

The crawl emits one asset event per host, whose partition key is the host. The second DAG runs once per host. Needs
Airflow 3.3 or newer.
"""

from __future__ import annotations

import tempfile

import pendulum
from airflow.sdk import Asset, ObjectStoragePath, Param, PartitionedAssetTimetable, dag, task

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Output

pages_by_host = Asset("webdata_pages_by_host")


@dag(
    dag_id="webdata_by_host",
    schedule="@daily",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    params={
        "site": Param("https://river.example/", type="string", format="uri"),
        "folder": Param(
            f"file://{tempfile.gettempdir()}/webdata", type="string", description="Shared by all workers"
        ),
    },
    tags=["webdata", "example"],
)
def webdata_by_host():
    WebDataCrawlOperator(
        task_id="crawl",
        url="{{ params.site }}",
        limit=50,
        allow_external_links=True,
        scrape_options={"formats": ["markdown"]},
        output=Output(
            "{{ params.folder }}/by_host/{{ dag_run.run_after | ds }}.jsonl", emit_partitions="host"
        ),
        outlets=[pages_by_host],
        deferrable=True,
    )


@dag(
    dag_id="webdata_of_one_host",
    schedule=PartitionedAssetTimetable(assets=pages_by_host),
    catchup=False,
    tags=["webdata", "example"],
)
def webdata_of_one_host():
    @task
    def count(path: str, dag_run=None) -> str:
        with ObjectStoragePath(path).open() as file:
            return f"{sum(1 for _ in file)} pages of {dag_run.partition_key}"

    count("{{ macros.webdata.partition_file() }}")


webdata_by_host()
webdata_of_one_host()
