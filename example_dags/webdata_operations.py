"""One task for each of the service's other operations, behind a guard that first checks the credits.

The jobs (crawl, extract, agent) wait without a worker: by webhook where the connection can receive deliveries, else by
polling. Each is started once, however often its task is tried, and is cancelled if a user ends the task.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pendulum
from airflow.sdk import ObjectStoragePath, Param, dag, task

from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.extract import WebDataExtractOperator
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
    # With fewer credits left, everything below is skipped.
    enough_credits = WebDataCreditUsageOperator(
        task_id="enough_credits", min_remaining=500, min_remaining_percent=1, on_low="skip"
    )

    scrape = WebDataScrapeOperator(
        task_id="scrape",
        url="https://shop.example/kettles",
        formats=["markdown", "links"],
        # Else the page may be up to two days old: the service's cache is asked first.
        max_age=0,
    )

    crawl = WebDataCrawlOperator(
        task_id="crawl",
        url="https://docs.pipeline.example/",
        limit=10,
        include_paths=["^/$", "^/guide/.*"],
        scrape_options={"formats": ["markdown"]},
        output="{{ params.folder }}/{{ dag.dag_id }}/{{ run_id | replace(':', '_') }}/crawl.jsonl.gz",
        deferrable=True,
    )

    extract = WebDataExtractOperator(
        task_id="extract", via="scrape", urls=["https://shop.example/"], schema=SHOP, deferrable=True
    )

    agent = WebDataAgentOperator(
        task_id="agent",
        prompt="What does Bean & Kettle sell?",
        urls=["https://shop.example/"],
        schema=SHOP,
        # The run fails, without a charge, when it would need more.
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
        """Stands for a file that came from elsewhere."""
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
                f"extract: {found['extracted']['data']}",
                f"agent: {found['answer']['data']}, {found['answer']['creditsUsed']} credits",
                f"interact: {found['seen']['steps'][-1]['stdout'].strip()}",
                f"parse: {found['parsed']['markdown'].splitlines()[0]}",
            ]
        )

    enough_credits >> [scrape, crawl, extract, agent, interact, document]
    report(
        scraped=scrape.output,
        crawled=crawl.output,
        extracted=extract.output,
        answer=agent.output,
        seen=interact.output,
        parsed=parse.output,
    )


webdata_operations()
