# SPDX-License-Identifier: Apache-2.0
"""A DAG whose results are checked and loaded; the run's configuration says where they go."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Quality
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator


@dag(dag_id="e2e_quality", schedule=None)
def checks():
    crawl = WebDataCrawlOperator(
        task_id="crawl",
        url="https://checked.example/",
        limit=50,
        scrape_options={"max_age": 0},
        save_to="{{ dag_run.conf['folder'] }}/files/*.jsonl",
        changes="{{ dag_run.conf['folder'] }}/seen",
        quality=Quality(drop_vs_last=0.3, coverage={"markdown": 1}, blocked=0.1),
        poll_interval=2,
        deferrable=True,
        retries=2,
        retry_delay=timedelta(seconds=1),
    )
    WebDataToTableOperator(task_id="load", path=crawl.output, table="pages", conn_id="checked_table")


checks()
