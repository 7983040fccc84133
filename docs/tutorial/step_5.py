# SPDX-License-Identifier: Apache-2.0
"""What the web said about a river on each day, as a table; and what has changed on two pages about it."""

import pendulum
from airflow.providers.standard.operators.latest_only import LatestOnlyOperator
from airflow.sdk import CronDataIntervalTimetable, ObjectStoragePath, dag, task

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator, WebDataRunMonitorOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator


@dag(
    # A run for each day, which knows its day; a plain "@daily" has runs without one.
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=pendulum.datetime(2026, 11, 19, tz="UTC"),  # the first day that you want
    catchup=True,
    max_active_runs=1,  # two concurrent runs could create two monitors
)
def river_watch():
    search = WebDataSearchOperator(
        task_id="search",
        query="river",
        limit=5,
        tbs="{{ macros.webdata.tbs(dag_run) }}",
        returns="web",
    )

    @task.short_circuit
    def urls(results: list):
        return sorted(result["url"] for result in results)  # none: what follows is skipped

    scrape = WebDataBatchScrapeOperator(
        task_id="scrape",
        urls=urls(search.output),
        formats=["markdown"],
        save_to="{{ var.value.river_folder }}/"
        "{{ (dag_run.data_interval_start or dag_run.run_after) | ds }}.parquet",
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

    keep_monitor = WebDataCreateMonitorOperator(
        task_id="keep_monitor",
        name="River watch",
        schedule={"cron": "0 5 * * *"},  # the service's own
        targets=[
            {
                "type": "scrape",
                "urls": ["https://weather.example/levels", "https://weather.example/warnings"],
            }
        ],
        goal="Tell me when the river rises or a warning is given.",
    )

    check = WebDataRunMonitorOperator(
        task_id="check",
        monitor_id=keep_monitor.output["monitor_id"],
        wait_for_completion=True,
        include_pages="changed",
        deferrable=True,
    )

    @task
    def tell(check: dict):
        for page in check["pages"]:
            print(page["status"], page["url"], (page.get("judgment") or {}).get("reason", ""))

    # A run for a past day has nothing to check: pages show what they contain today.
    LatestOnlyOperator(task_id="latest_only") >> keep_monitor
    tell(check.output)


river_watch()
