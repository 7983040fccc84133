# SPDX-License-Identifier: Apache-2.0
"""A site that goes into a table and a vector-ready file, run by run; the run's configuration says where."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import dag

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator


def hold(context: dict[str, Any], result: Any) -> None:
    """Linger with all work done and nothing told to Airflow, while a file says so."""
    held = Path(context["dag_run"].conf["folder"]) / f"hold_{context['ti'].task_id}"
    while held.exists():
        (held.parent / f"{held.name}.reached").touch()
        time.sleep(0.1)


RETRY = {"retries": 1, "retry_delay": timedelta(seconds=1), "post_execute": hold}


@dag(dag_id="e2e_site", schedule=None)
def site():
    crawl = WebDataCrawlOperator(
        task_id="crawl",
        webdata_conn_id="{{ dag_run.conf['connection'] }}",
        url="https://thousand.example/",
        limit=2000,
        scrape_options={"max_age": 0},
        # The run after the one that misses a page removes it. A run that is cleared does not.
        changes=Changes("{{ dag_run.conf['folder'] }}/seen", removed_after=timedelta(seconds=1)),
        save_to="{{ dag_run.conf['folder'] }}/{{ dag_run.conf['day'] }}.jsonl",
        documents=True,
        deferrable=False,
        poll_interval=1,
        **RETRY,
    )
    load = WebDataToTableOperator(
        task_id="load",
        path="{{ ti.xcom_pull('crawl')['path'] }}",
        table="pages",
        conn_id="site_table",
        **RETRY,
    )
    crawl >> load


site()
