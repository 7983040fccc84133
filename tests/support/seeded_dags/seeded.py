# SPDX-License-Identifier: Apache-2.0
"""The DAGs whose runs `tests.support.seed` writes. They are paused, and need no run to be looked at."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.monitor.create import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes, Quality
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator

LAKE = "s3://lake/raw"
SHOPS = ("kettle filters", "espresso roast 250 g", "burr grinder", "milk frother")
FEEDS = ("rail", "bridges", "ports", "energy", "housing", "budget")


def daily(dag_id: str, *tags: str) -> DAG:
    return DAG(
        dag_id,
        schedule=timedelta(days=1),
        start_date=datetime(2025, 1, 1, tzinfo=timezone.utc),
        catchup=False,
        is_paused_upon_creation=True,
        tags=["seeded", *tags],
    )


with daily("competitor_prices", "commerce") as competitor_prices:
    enough_credits = WebDataCreditUsageOperator(task_id="enough_credits", min_remaining=500)
    find_offers = WebDataSearchOperator.partial(
        task_id="find_offers", limit=10, map_index_template="{{ task.query }}"
    ).expand(query=list(SHOPS))
    scrape_prices = WebDataBatchScrapeOperator(
        task_id="scrape_prices",
        urls=[f"https://kettleworld.example/p/{number}" for number in range(1, 37)],
        save_to=f"{LAKE}/competitor_prices/latest.jsonl",
        changes=Changes(f"{LAKE}/competitor_prices/state", emit="all"),
        quality=Quality(min_items=30, drop_vs_last=0.2, coverage={"json.price": 0.9}, blocked=0.1),
        deferrable=True,
    )
    load_prices = WebDataToTableOperator(
        task_id="load_prices",
        path=f"{LAKE}/competitor_prices/latest.jsonl",
        table="shop.competitor_prices",
        conn_id="warehouse",
    )
    (
        enough_credits
        >> find_offers
        >> scrape_prices
        >> load_prices
        >> EmptyOperator(task_id="refresh_dashboard")
    )

with daily("docs_rag_refresh", "search") as docs_rag_refresh:
    declare_monitor = WebDataCreateMonitorOperator(
        task_id="declare_monitor",
        name="Lakehouse docs",
        schedule="30 4 * * *",
        targets=[{"type": "crawl", "url": "https://docs.lakehouse.example/guide/"}],
        attach_webhook=False,
    )
    wait_for_check = WebDataMonitorCheckSensor(
        task_id="wait_for_check",
        monitor_id="{{ ti.xcom_pull('declare_monitor')['id'] }}",
        after="{{ data_interval_start }}",
        deferrable=True,
    )
    crawl_docs = WebDataCrawlOperator(
        task_id="crawl_docs",
        url="https://docs.lakehouse.example/",
        limit=41,
        save_to=f"{LAKE}/docs_rag/pages-*.parquet",
        changes=f"{LAKE}/docs_rag/state",
        deferrable=True,
    )
    declare_monitor >> wait_for_check >> crawl_docs >> EmptyOperator(task_id="embed_chunks")

with daily("news_digest", "editorial") as news_digest:
    search_news = WebDataBatchSearchOperator(
        task_id="search_news",
        queries=[f"{feed} construction news" for feed in FEEDS] * 2,
        sources=["news"],
        save_to=f"{LAKE}/news_digest/results.jsonl.gz",
        credit_limit=40,
    )
    scrape_articles = WebDataScrapeOperator.partial(
        task_id="scrape_articles", map_index_template="{{ task.url }}", retries=1
    ).expand(url=[f"https://{feed}-daily.example/latest" for feed in FEEDS])
    find_papers = WebDataSearchOperator(
        task_id="find_papers", query="fatigue of steel bridges", categories=["research"]
    )
    await_editor = WebDataWebhookSensor(
        task_id="await_editor", key="editor-approval", deferrable=True, timeout=28 * 3600
    )
    search_news >> scrape_articles >> find_papers >> await_editor >> EmptyOperator(task_id="send_digest")

with daily("supplier_catalog_crawl", "procurement") as supplier_catalog_crawl:
    map_catalog = WebDataMapOperator(task_id="map_catalog", url="https://parts-supply.example/", limit=5000)
    crawl_catalog = WebDataCrawlOperator(
        task_id="crawl_catalog",
        url="https://parts-supply.example/",
        limit=1200,
        delay=60,
        save_to=f"{LAKE}/supplier_catalog/pages.jsonl.gz",
        quality=Quality(min_items=200, on_fail="warn"),
        credit_limit=1500,
        wait_timeout=timedelta(hours=6),
        deferrable=True,
    )
    parse_price_list = WebDataParseOperator(task_id="parse_price_list", file=f"{LAKE}/inbox/price-list.pdf")
    wait_for_export = WebDataJobSensor(
        task_id="wait_for_export", kind="crawl", job_id="{{ params.export_job }}", deferrable=False
    )
    (
        map_catalog
        >> crawl_catalog
        >> [parse_price_list, wait_for_export]
        >> EmptyOperator(task_id="publish_catalog")
    )

with daily("company_research", "sales") as company_research:
    extract_profile = WebDataAgentOperator(
        task_id="extract_profile",
        prompt="When was Kettle World founded?",
        urls=["https://about.kettleworld.example/"],
        schema={
            "type": "object",
            "properties": {"name": {"type": "string"}, "founded": {"type": "integer"}},
            "required": ["name", "founded"],
        },
        on_invalid_result="keep",
        save_to=f"{LAKE}/company_research/profiles.csv",
        deferrable=True,
    )
    research_agent = WebDataAgentOperator(
        task_id="research_agent",
        prompt="Who leads Kettle World, and since when?",
        urls=["https://about.kettleworld.example/"],
        max_credits=200,
        deferrable=True,
    )
    read_register = WebDataInteractOperator(
        task_id="read_register",
        steps=[
            {"name": "open", "code": "await page.goto('https://register.example/')"},
            {"name": "search", "code": "await page.fill('#company', 'Kettle World')"},
        ],
    )
    scrape_press = WebDataScrapeOperator(
        task_id="scrape_press",
        url="https://about.kettleworld.example/press",
        retries=2,
        retry_delay=timedelta(hours=1),
    )
    extract_profile >> [research_agent, read_register, scrape_press] >> EmptyOperator(task_id="update_crm")
