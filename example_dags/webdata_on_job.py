# SPDX-License-Identifier: Apache-2.0
"""Run once for each completed crawl that reports to this Airflow, regardless of who started it.

The API server that receives the delivery registers one event of the asset per crawl. `WebDataCrawlOperator` attaches
the webhook. If you start a crawl elsewhere, set its webhook to this Airflow's inbox.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, task

from airflow_provider_webdata.assets.job import job_asset
from airflow_provider_webdata.hooks.webdata import WebDataHook

crawls = job_asset("crawl")


@dag(dag_id="webdata_on_job", schedule=[crawls], catchup=False, tags=["webdata", "example"])
def webdata_on_job():
    @task
    def pages(triggering_asset_events: Any = None) -> dict[str, int]:
        """Return the pages of each of the run's crawls: one, unless the DAG is scheduled on more assets."""
        counts = {}
        for event in triggering_asset_events[crawls]:
            job = event.extra["payload"]
            with WebDataHook(job["conn_id"]) as hook:
                parts = hook.iter_job_documents(job["kind"], job["job_id"])
                counts[job["job_id"]] = sum(len(part.documents) for part in parts)
        return counts

    pages()


webdata_on_job()
