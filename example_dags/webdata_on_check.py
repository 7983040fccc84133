# SPDX-License-Identifier: Apache-2.0
"""Run once for each completed check of the monitor that `webdata_wait` declares.

No task waits for the check: the API server that receives the delivery registers one event of the monitor's asset, which
schedules this DAG. Without a webhook, the asset needs a watcher; see docs/event_driven.md.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import dag, task

from airflow_provider_webdata.assets.monitor import monitor_asset
from airflow_provider_webdata.hooks.webdata import WebDataHook

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
        """Return the payloads of the run's events: one, unless the DAG is scheduled on more assets."""
        payloads = []
        for event in triggering_asset_events[checks]:
            payload = event.extra["payload"]
            payloads.append(payload)
            log.info("Check %s of monitor %s has completed", payload["check_id"], payload["monitor_id"])
            with WebDataHook(payload["conn_id"]) as hook:
                for page in hook.changed_pages(event):
                    log.info("%s: %s", page.status, page.url)
        return payloads

    report()


webdata_on_check()
