import pendulum
from airflow.sdk import DAG, task

from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator

with DAG("one_page", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1)) as dag:
    scrape = WebDataScrapeOperator(task_id="scrape", url="https://example.com", formats=["markdown"])

    @task
    def show(page: dict):
        print(page["metadata"].get("title"), len((page.get("markdown") or "").split()), "words")

    show(scrape.output)
