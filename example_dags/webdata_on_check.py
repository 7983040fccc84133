"""Run once for every check that any monitor of the connection completes, with what the service reported of it.

Nothing runs and nothing waits in between: the triggerer reads the inbox, and each delivery becomes one event of the
asset, which schedules this DAG.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import Asset, AssetWatcher, dag, task

from airflow_provider_webdata.triggers.events import WebDataWebhookEventTrigger

log = logging.getLogger(__name__)

checks = Asset(
    name="webdata_checks",
    watchers=[
        AssetWatcher(
            name="check_completed",
            trigger=WebDataWebhookEventTrigger(
                webdata_conn_id="webdata_default", events=["monitor.check.completed"]
            ),
        )
    ],
)


@dag(
    dag_id="webdata_on_check",
    schedule=[checks],
    catchup=False,
    tags=["webdata", "example"],
)
def webdata_on_check():
    @task
    def report(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
        """Checks that complete at the same time may come together, as several events of one run."""
        payloads = [event.extra["payload"] for event in triggering_asset_events[checks]]
        for payload in payloads:
            log.info(
                "Check %s of monitor %s has completed: %s", payload["job_id"], payload["monitor_id"], payload
            )
        return payloads

    report()


webdata_on_check()
