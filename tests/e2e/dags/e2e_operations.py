# SPDX-License-Identifier: Apache-2.0
"""DAGs of the long jobs, told by the run's configuration what to do, and of what else has no example DAG."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import dag, task

from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor

PATIENCE = 600
SHOP = {"type": "object", "properties": {"title": {"type": "string"}}}
PAGES = ["https://shop.example/kettles", "https://shop.example/grinders"]

# Each kind of job: its operator and a small task for it.
JOBS: dict[str, tuple[type, dict[str, Any]]] = {
    "crawl": (WebDataCrawlOperator, {"url": "https://river.example/", "limit": 3}),
    "batch_scrape": (WebDataBatchScrapeOperator, {"urls": PAGES}),
    "agent": (
        WebDataAgentOperator,
        {"prompt": "What is for sale?", "urls": ["https://shop.example/"], "schema": SHOP},
    ),
}
# How its end is reported: by webhook (the safety poll is far away), by polling alone, or to a worker that waits.
HOWS: dict[str, dict[str, Any]] = {
    "webhook": {"wait_timeout": PATIENCE, "deferrable": True},
    "polling": {
        "poll_interval": 2,
        "wait_timeout": PATIENCE,
        "attach_webhook": False,
        "deferrable": True,
    },
    "worker": {
        "poll_interval": 2,
        "wait_timeout": PATIENCE,
        "attach_webhook": False,
        "deferrable": False,
    },
}
for kind, (operator, request) in JOBS.items():
    for how, settings in HOWS.items():

        @dag(dag_id=f"e2e_{kind}_by_{how}", schedule=None)
        def job():
            operator(task_id="wait", **request, **settings)  # noqa: B023 - called at once

        job()

    @dag(dag_id=f"e2e_sensed_{kind}", schedule=None)
    def sensed():
        start = operator(task_id="start", wait_for_completion=False, **request)  # noqa: B023 - called at once
        WebDataJobSensor(
            task_id="wait",
            kind=kind,  # noqa: B023 - called at once
            job_id=start.output,
            poke_interval=2,
            timeout=PATIENCE,
            deferrable=True,
        )

    sensed()


@dag(dag_id="e2e_crawl_with_a_limit", schedule=None)
def crawl_with_a_limit():
    """A task whose limit passes while it is deferred."""
    operator, request = JOBS["crawl"]
    operator(task_id="wait", **request, **{**HOWS["polling"], "wait_timeout": timedelta(seconds=45)})


crawl_with_a_limit()


# The worker dies while it waits for the answer that names the job; the retry must not start a second one.
for kind in ("crawl", "batch_scrape"):
    operator, request = JOBS[kind]
    if kind == "crawl":
        # A job is also found by what it is for.
        request = {**request, "url": "{{ dag_run.conf['url'] }}"}

    @dag(dag_id=f"e2e_killed_{kind}", schedule=None)
    def killed():
        operator(  # noqa: B023 - called at once
            task_id="wait",
            webdata_conn_id="{{ dag_run.conf['connection'] }}",
            poll_interval=2,
            wait_timeout=PATIENCE,
            deferrable=True,
            retries=1,
            retry_delay=timedelta(seconds=1),
            **request,  # noqa: B023 - called at once
        )

    killed()


@dag(dag_id="e2e_job_to_file", schedule=None)
def job_to_file():
    """A job whose pages go to a file, which another task reads."""
    crawl = WebDataCrawlOperator(
        task_id="crawl",
        url="https://river.example/",
        limit=5,
        scrape_options={"formats": ["markdown"]},
        save_to="{{ dag_run.conf['path'] }}",
        deferrable=True,
        poll_interval=2,
    )

    @task
    def read(found: dict[str, Any]) -> dict[str, Any]:
        import json

        from airflow.sdk import ObjectStoragePath

        with ObjectStoragePath(found["path"]).open() as file:
            pages = [json.loads(line) for line in file]
        return {"pages": len(pages), "urls": sorted(page["metadata"]["sourceURL"] for page in pages)}

    read(crawl.output)


job_to_file()


@dag(dag_id="e2e_short_operations", schedule=None)
def short_operations():
    """What the example DAGs do not show."""
    WebDataBatchSearchOperator(
        task_id="searches",
        queries=["river", "kettle", "river"],
        limit=3,
        save_to="{{ dag_run.conf['path'] }}",
    )
    scrape = WebDataScrapeOperator(task_id="scrape", url="https://shop.example/kettles")
    # On the page of that scrape, and with code that fails: the browser is closed all the same.
    WebDataInteractOperator(
        task_id="on_the_page",
        scrape_id=scrape.output["scrape_id"],
        language="node",
        steps=["console.log(await page.title())"],
    )
    WebDataInteractOperator(
        task_id="failing_code",
        language="node",
        steps=['await page.goto("https://shop.example/")', 'throw new Error("no such button")'],
    )
    guard = WebDataCreditUsageOperator(task_id="guard", min_remaining=10**9, on_low="skip")
    guarded = WebDataScrapeOperator(task_id="guarded", url="https://shop.example/plans")
    guard >> guarded
    WebDataScrapeOperator(
        task_id="nowhere", url="https://shop.example/plans", save_to="unknown://b/x.jsonl", retries=3
    )


short_operations()
