# SPDX-License-Identifier: Apache-2.0
"""One task for each of the service's other operations, after a task that checks the remaining credits.

With `deferrable=True`, the tasks with jobs (crawl, agent) wait without a worker: by webhook if the connection can
receive deliveries, else by polling. A retry reconnects to the started job. If a user ends the task, the job is
canceled.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pendulum
from airflow.sdk import ObjectStoragePath, Param, dag, task

from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator

SHOP = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "description": {"type": "string"}},
    "required": ["title"],
}


@dag(
    dag_id="webdata_operations",
    schedule="@weekly",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    params={"folder": Param(f"file://{tempfile.gettempdir()}/webdata", type="string")},
    tags=["webdata", "example"],
)
def webdata_operations():
    # With fewer credits left, all downstream tasks are skipped.
    enough_credits = WebDataCreditUsageOperator(
        task_id="enough_credits", min_remaining=500, min_remaining_percent=1, on_low="skip"
    )

    scrape = WebDataScrapeOperator(
        task_id="scrape",
        url="https://shop.example/kettles",
        formats=["markdown", "links"],
        # Without this, the page may be up to two days old, from the service's cache.
        max_age=0,
    )

    crawl = WebDataCrawlOperator(
        task_id="crawl",
        url="https://docs.pipeline.example/",
        limit=10,
        include_paths=["^/$", "^/guide/.*"],
        scrape_options={"formats": ["markdown"]},
        save_to="{{ params.folder }}/{{ dag.dag_id }}/crawl/*.jsonl.gz",
        deferrable=True,
    )

    agent = WebDataAgentOperator(
        task_id="agent",
        prompt="What does Bean & Kettle sell?",
        urls=["https://shop.example/"],
        schema=SHOP,
        # A run that would need more fails, and is not billed.
        max_credits=100,
        deferrable=True,
    )

    interact = WebDataInteractOperator(
        task_id="interact",
        language="node",
        steps=[
            {"name": "open", "code": 'await page.goto("https://shop.example/")'},
            {"name": "read", "code": "console.log(await page.title())"},
        ],
    )

    @task
    def write_document(params: dict[str, Any]) -> str:
        """Write a sample file."""
        path = ObjectStoragePath(params["folder"]) / "webdata_operations" / "minutes.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "<html><head><title>Minutes</title></head><body><h1>Minutes</h1><p>Agreed.</p></body></html>"
        )
        return str(path)

    document = write_document()
    parse = WebDataParseOperator(task_id="parse", file=document, formats=["markdown"])

    @task
    def report(**found: Any) -> str:
        return "\n".join(
            [
                f"scrape: {found['scraped']['metadata']['title']}",
                f"crawl: {found['crawled']['count']} pages in {found['crawled']['path']}",
                f"agent: {found['answer']['data']}, {found['answer']['creditsUsed']} credits",
                f"interact: {found['seen']['steps'][-1]['stdout'].strip()}",
                f"parse: {found['parsed']['markdown'].splitlines()[0]}",
            ]
        )

    enough_credits >> [scrape, crawl, agent, interact, document]
    report(
        scraped=scrape.output,
        crawled=crawl.output,
        answer=agent.output,
        seen=interact.output,
        parsed=parse.output,
    )


webdata_operations()
