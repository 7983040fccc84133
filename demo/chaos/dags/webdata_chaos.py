# SPDX-License-Identifier: Apache-2.0
"""Every kind of task that starts something, of pages, queries, and monitors that are unique to the run.

So everything at the service belongs to exactly one task. Only the inbox names a job whose response was lost:
idempotency keys are trusted at the service's own host alone. Of a lost search, nothing is left.
"""

from __future__ import annotations

import os
from datetime import timedelta
from itertools import cycle
from typing import Any

from airflow.sdk import dag, get_current_context, task

from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.monitor.create import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.monitor.run import WebDataRunMonitorOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator

CONNECTIONS = ("webdata_default", "webdata_other_api_server")
RETRIES: dict[str, Any] = {"retries": 20, "retry_delay": timedelta(seconds=5)}
PAGE, QUERY, MONITOR = (f"{{{{ dag_run.conf.{name} }}}}" for name in ("page", "query", "monitor"))


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
    WebDataAgentOperator(task_id="agent", prompt="What is the title?", urls=[PAGE], deferrable=True)
    WebDataScrapeOperator(task_id="scrape", url=PAGE, max_age=0)
    WebDataSearchOperator(task_id="search", query=QUERY)
    WebDataBatchSearchOperator(
        task_id="batch_search",
        queries=[f"{QUERY} {letter}" for letter in "abc"],
        save_to=f"{os.environ['AIRFLOW_HOME']}/found/*.jsonl",
    )
    WebDataInteractOperator(
        task_id="interact", steps=[f'await page.goto("{PAGE}")', "console.log(await page.title())"]
    )
    monitor = WebDataCreateMonitorOperator(
        task_id="monitor",
        name=MONITOR,
        schedule="every 6 hours",
        targets=[{"type": "scrape", "urls": [PAGE]}],
    )
    WebDataRunMonitorOperator(
        task_id="check", monitor_id=monitor.output["id"], wait_for_completion=True, deferrable=True
    )


webdata_chaos()
