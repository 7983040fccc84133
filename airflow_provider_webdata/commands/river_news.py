"""News about a river: a daily search, and a task for each page it finds."""

import pendulum
from airflow.sdk import dag, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator


@dag(schedule="@daily", start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False)
def river_news():
    search = WebDataSearchOperator(
        task_id="search",
        query="river",
        limit=5,
        tbs="qdr:w",  # published in the last seven days
        scrape_options={"formats": ["markdown"]},
        returns="web",
    )

    @task
    def show(page: dict):
        words = (page.get("markdown") or "").split()
        print(page["title"], page["url"], f"{len(words)} words")

    show.expand(page=search.output)


river_news()
