"""DAGs that wait: each sensor in a DAG of its own, told by the run's configuration what to wait for."""

from __future__ import annotations

from airflow.sdk import dag

from airflow_provider_webdata.options import Wait
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor

PATIENCE = 600

# How a check is learned of: by webhook alone (the safety poll is far away), by polling, or, where the delivery
# is lost, by the safety poll.
HOWS = {
    "webhook": Wait(by="webhook", safety_poll=1500),
    "polling": Wait(by="polling", poll_interval=2),
    "safety": Wait(by="webhook", safety_poll=4),
}
for how, wait in HOWS.items():

    @dag(dag_id=f"e2e_check_by_{how}", schedule=None)
    def check():
        WebDataMonitorCheckSensor(
            task_id="wait",
            monitor_id="{{ dag_run.conf['monitor'] }}",
            check_id="{{ dag_run.conf.get('check', '') }}",
            deferrable=True,
            timeout=PATIENCE,
            wait=wait,  # noqa: B023 - called at once
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
