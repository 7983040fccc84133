# SPDX-License-Identifier: Apache-2.0
"""A monitor from its creation to its deletion, by every operator that there is for it."""

from __future__ import annotations

from airflow.sdk import chain, dag

from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataDeleteMonitorOperator,
    WebDataListMonitorsOperator,
    WebDataRunMonitorOperator,
    WebDataUpdateMonitorOperator,
)

NAME = "life of a monitor"


@dag(dag_id="e2e_monitor_life", schedule=None)
def monitor_life():
    create = WebDataCreateMonitorOperator(
        task_id="create",
        name=NAME,
        schedule={"cron": "0 6 * * *", "timezone": "UTC"},
        targets=[{"type": "scrape", "urls": ["https://shop.example/kettles"]}],
    )
    monitor = {"monitor_id": "{{ ti.xcom_pull(task_ids='create', key='monitor_id') }}"}
    chain(
        create,
        WebDataRunMonitorOperator(task_id="run", **monitor),
        WebDataUpdateMonitorOperator(task_id="pause", status="paused", **monitor),
        WebDataListMonitorsOperator(task_id="paused", status="paused", name_pattern=NAME),
        WebDataDeleteMonitorOperator(task_id="delete", **monitor),
        WebDataListMonitorsOperator(task_id="left", name_pattern=NAME),
    )


monitor_life()
