# SPDX-License-Identifier: Apache-2.0
"""Declare a monitor: change this file, and the next run updates the monitor at the service.

The name identifies the monitor. The first run creates it. Later runs update only the fields that differ; if none does,
a run sends one request.
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.sdk import dag, task

from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator


@dag(
    dag_id="webdata_monitor",
    schedule="@daily",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    # Two concurrent runs could both find no monitor of that name.
    max_active_runs=1,
    tags=["webdata", "example"],
)
def webdata_monitor():
    keep_monitor = WebDataCreateMonitorOperator(
        task_id="keep_monitor",
        name="Prices at Bean & Kettle",
        # The service's own schedule, independent of the DAG's.
        schedule={"cron": "0 */6 * * *", "timezone": "UTC"},
        targets=[{"type": "scrape", "urls": ["https://shop.example/plans", "https://shop.example/kettles"]}],
        # With a goal, the service judges each changed page and reports only meaningful changes.
        goal="Tell me when a price changes or a product is sold out.",
        if_exists="update",
    )

    @task
    def report(monitor: dict[str, Any]) -> str:
        return "\n".join(
            [
                f"{monitor['name']} ({monitor['id']}) is {monitor['status']}",
                f"next check: {monitor['nextRunAt']}",
                f"credits a month, at most: {monitor['estimatedCreditsPerMonth']}",
            ]
        )

    report(keep_monitor.output)


webdata_monitor()
