# SPDX-License-Identifier: Apache-2.0
"""What the web says about a river, as a table."""

import pendulum
from airflow.sdk import ObjectStoragePath, dag, task

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator


@dag(schedule="@daily", start_date=pendulum.datetime(2026, 11, 1, tz="UTC"), catchup=False)
def river_watch():
    search = WebDataSearchOperator(
        task_id="search",
        query="river",
        limit=5,
        tbs="qdr:w",  # published in the last seven days
        returns="web",
    )

    @task.short_circuit
    def urls(results: list):
        return sorted(result["url"] for result in results)  # none: what follows is skipped

    scrape = WebDataBatchScrapeOperator(
        task_id="scrape",
        urls=urls(search.output),
        formats=["markdown"],
        save_to="{{ var.value.river_folder }}/{{ dag_run.run_after | ds }}.parquet",
        deferrable=True,
    )

    @task
    def show(written: dict):
        import pyarrow.parquet

        with ObjectStoragePath(written["path"]).open("rb") as file:
            table = pyarrow.parquet.read_table(file, columns=["title", "source_url", "markdown"])
        for page in table.to_pylist():
            words = (page["markdown"] or "").split()
            print(page["title"], page["source_url"], f"{len(words)} words")

    show(scrape.output)


river_watch()
