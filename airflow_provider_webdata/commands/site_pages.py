import pendulum
from airflow.sdk import DAG, task

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator

with DAG("site_pages", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1)) as dag:
    crawl = WebDataCrawlOperator(
        task_id="crawl", url="https://example.com", limit=5, scrape_options={"formats": ["markdown"]}
    )

    @task
    def show(result: dict):
        for page in result["data"]:
            print(page["metadata"].get("title"), len((page.get("markdown") or "").split()), "words")

    show(crawl.output)
