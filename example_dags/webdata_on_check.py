"""Run once for every completed check of the monitor that `webdata_wait` declares.

Nothing runs and nothing waits in between: the API server that receives the delivery registers one event of the
monitor's asset, which schedules this DAG. Without a webhook, the asset needs a watcher; see docs/waiting.md.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import dag, task

from airflow_provider_webdata.assets.monitor import monitor_asset

log = logging.getLogger(__name__)

checks = monitor_asset("Coffee at Bean & Kettle")


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
                "Check %s of monitor %s has completed: %s",
                payload["check_id"],
                payload["monitor_id"],
                payload,
            )
        return payloads

    report()


webdata_on_check()
