# SPDX-License-Identifier: Apache-2.0
"""DAGs that wait: each sensor in a DAG of its own, told by the run's configuration what to wait for."""

from __future__ import annotations

from airflow.sdk import dag

from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor

PATIENCE = 600


@dag(dag_id="e2e_check", schedule=None)
def check():
    WebDataMonitorCheckSensor(
        task_id="wait",
        monitor_id="{{ dag_run.conf['monitor'] }}",
        check_id="{{ dag_run.conf.get('check', '') }}",
        deferrable=True,
        timeout=PATIENCE,
        poke_interval=2,
    )


check()

for connection in ("webdata_default", "webdata_signed"):

    @dag(dag_id=f"e2e_delivery_to_{connection}", schedule=None)
    def delivery():
        WebDataWebhookSensor(
            task_id="wait",
            webdata_conn_id=connection,  # noqa: B023 - called at once
            key="{{ dag_run.conf['key'] }}",
            after="{{ dag_run.conf.get('after', '') }}",
            deferrable=True,
            timeout=PATIENCE,
        )

    delivery()
