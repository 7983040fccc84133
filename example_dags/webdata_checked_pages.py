# SPDX-License-Identifier: Apache-2.0
"""Search and scrape every day, and replace yesterday's file only if today's pages meet the conditions.

If they do not, the task fails and the file is unchanged. The rejected pages are in a file beside it. To accept them, do
what the task's log says: move that file, mark the task as success, and clear the tasks downstream.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pendulum
from airflow.sdk import Param, dag, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Quality


@dag(
    dag_id="webdata_checked_pages",
    schedule="@daily",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    params={
        "folder": Param(
            f"file://{tempfile.gettempdir()}/webdata",
            type="string",
            description="Folder for files that all workers share, such as s3://conn_id@bucket/key.",
        ),
    },
    tags=["webdata", "example"],
)
def webdata_checked_pages():
    search = WebDataSearchOperator(
        task_id="search",
        query="site:shop.example",
        limit=5,
        returns="web",
        scrape_options={"formats": ["markdown"]},
        save_to="{{ params.folder }}/{{ dag.dag_id }}/pages.jsonl",
        quality=Quality(
            min_items=2,
            # Compared with the run before.
            drop_vs_last=0.3,
            coverage={"markdown": 0.95, "metadata.title": 0.95},
            # Challenges, consent and login pages, soft 404s, and empty shells.
            blocked=0.05,
        ),
        retries=2,
    )

    @task
    def report(found: dict[str, Any]) -> str:
        quality = found["quality"]
        titled = quality["coverage"]["metadata.title"]
        return f"{quality['items']} pages in {found['path']}, {titled:.0%} of them with a title"

    report(search.output)


webdata_checked_pages()
