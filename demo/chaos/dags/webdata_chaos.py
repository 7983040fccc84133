"""Jobs of pages that are unique to the run, so that each job at the service belongs to exactly one task.

Only the inbox names a job whose response was lost: idempotency keys are trusted at the service's own host alone.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import cycle
from typing import Any

from airflow.sdk import dag, get_current_context, task

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator

CONNECTIONS = ("webdata_default", "webdata_other_api_server")
RETRIES: dict[str, Any] = {"retries": 20, "retry_delay": timedelta(seconds=5)}


@dag(dag_id="webdata_chaos", schedule=None, default_args=RETRIES)
def webdata_chaos():
    """Half of the jobs report to one API server, half to the other; half of the pages are crawled."""

    @task
    def jobs(first: int, name: str) -> list[dict[str, Any]]:
        urls = get_current_context()["dag_run"].conf["urls"][first::2]
        return [
            {name: [url] if name == "urls" else url, "webdata_conn_id": conn_id}
            for url, conn_id in zip(urls, cycle(CONNECTIONS), strict=False)
        ]

    crawls = jobs.override(task_id="crawls")(0, "url")
    batches = jobs.override(task_id="batches")(1, "urls")
    WebDataCrawlOperator.partial(task_id="crawl", limit=1, deferrable=True).expand_kwargs(crawls)
    WebDataBatchScrapeOperator.partial(task_id="batch_scrape", deferrable=True).expand_kwargs(batches)


webdata_chaos()
