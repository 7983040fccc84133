# SPDX-License-Identifier: Apache-2.0
"""Search for pages, declare a monitor for them, run a check, and branch on what changed.

With `deferrable=True`, the wait holds no worker: the service reports the end of the check to Airflow's inbox, and the
triggerer resumes the task. The connection needs a webhook URL and a webhook secret; without them, the triggerer polls.
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.sdk import dag, task

from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator, WebDataRunMonitorOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor


@dag(
    dag_id="webdata_wait",
    schedule="@daily",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    # Two concurrent runs could both find no monitor of that name.
    max_active_runs=1,
    tags=["webdata", "example"],
)
def webdata_wait():
    search = WebDataSearchOperator(
        task_id="search",
        query="site:shop.example coffee",
        limit=5,
        returns="web",
    )

    @task
    def pages_to_watch(results: list[dict[str, Any]]) -> list[str]:
        # Sorted, so that another ranking does not change the monitor.
        return sorted(result["url"] for result in results)

    keep_monitor = WebDataCreateMonitorOperator(
        task_id="keep_monitor",
        name="Coffee at Bean & Kettle",
        # This DAG runs the checks; the service adds one per week.
        schedule={"cron": "0 3 * * 0", "timezone": "UTC"},
        targets=[{"type": "scrape", "urls": pages_to_watch(search.output)}],
        goal="Tell me when a price changes or a product is sold out.",
        # The operator attaches the webhook, with the URL and secret of the connection.
    )

    run_check = WebDataRunMonitorOperator(
        task_id="run_check",
        monitor_id=keep_monitor.output["monitor_id"],
    )

    wait_for_check = WebDataMonitorCheckSensor(
        task_id="wait_for_check",
        monitor_id=keep_monitor.output["monitor_id"],
        check_id=run_check.output["check_id"],
        include_pages="changed",
        deferrable=True,
        timeout=3600,
    )

    @task.branch
    def what_changed(check: dict[str, Any]) -> str:
        return "report_changes" if check["pages"] else "report_nothing"

    @task
    def report_changes(check: dict[str, Any]) -> str:
        # A changed page has a judgment with its reason; a new page has none.
        return "\n".join(
            f"{page['status']}: {page['url']} {(page.get('judgment') or {}).get('reason', '')}".rstrip()
            for page in check["pages"]
        )

    @task
    def report_nothing(check: dict[str, Any]) -> str:
        return f"nothing new on {check['summary']['totalPages']} pages"

    check = wait_for_check.output
    what_changed(check) >> [report_changes(check), report_nothing(check)]


webdata_wait()
