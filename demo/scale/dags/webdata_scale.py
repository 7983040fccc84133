# SPDX-License-Identifier: Apache-2.0
"""Many jobs at the same time, each a deferred task, which waits without a worker; see docs/scaling.md."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import dag

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator

JOBS = int(os.environ.get("WEBDATA_SCALE_JOBS", "200"))
SITE = "https://scale.example/p"
# Its webhooks go to one API server, those of the other connection to the other.
CONNECTIONS = {"first": "webdata_default", "second": "webdata_other_api_server"}


@dag(dag_id="webdata_scale", schedule=None, max_active_tasks=JOBS)
def webdata_scale():
    """Crawls and batch scrapes, half of each by way of each API server."""
    each = JOBS // 4
    settings: dict[str, Any] = {
        "pool": "webdata_scale",
        "deferrable": True,
        # The safety poll is beyond the end of this demonstration: only deliveries report the end of a job.
        "retries": 3,
        "retry_delay": timedelta(seconds=5),
    }
    for number, (name, connection) in enumerate(CONNECTIONS.items()):
        pages = [f"{SITE}/{1 + number * each + index}" for index in range(each)]
        WebDataCrawlOperator.partial(
            task_id=f"crawl_{name}", webdata_conn_id=connection, limit=1, **settings
        ).expand(url=pages)
        WebDataBatchScrapeOperator.partial(
            task_id=f"batch_{name}", webdata_conn_id=connection, **settings
        ).expand(urls=[[page, f"{page}00"] for page in pages])


webdata_scale()
