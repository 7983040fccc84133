import pendulum
from airflow.sdk import DAG, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator

with DAG("river_news", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1)) as dag:
    search = WebDataSearchOperator(
        task_id="search", query="river", limit=5, scrape_options={"formats": ["markdown"]}, returns="web"
    )

    @task
    def show(pages: list):
        for page in pages:
            print(page["title"], page["url"], len((page.get("markdown") or "").split()), "words")

    show(search.output)
