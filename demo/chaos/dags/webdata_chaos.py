"""Crawls of pages that are unique to the run, so that each job at the service belongs to exactly one task."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import dag, get_current_context, task

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator

CONNECTIONS = ("webdata_default", "webdata_other_api_server")
RETRIES: dict[str, Any] = {"retries": 20, "retry_delay": timedelta(seconds=5)}


@dag(dag_id="webdata_chaos", schedule=None, default_args=RETRIES)
def webdata_chaos():
    """Half of the crawls report to one API server, half to the other."""

    @task
    def crawls() -> list[dict[str, str]]:
        conf = get_current_context()["dag_run"].conf
        return [
            {"url": url, "webdata_conn_id": CONNECTIONS[index % 2]} for index, url in enumerate(conf["urls"])
        ]

    WebDataCrawlOperator.partial(task_id="crawl", limit=1, deferrable=True).expand_kwargs(crawls())


webdata_chaos()
