# SPDX-License-Identifier: Apache-2.0
"""Event-driven DAGs: one asset event for each check of a monitor, learned of in both ways that there are.

The monitor's id stands in a file that the tests write first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from airflow.sdk import Asset, AssetWatcher, dag, task

from airflow_provider_webdata.triggers.events import (
    WebDataMonitorCheckEventTrigger,
    WebDataWebhookEventTrigger,
)

KNOWN = Path(os.environ["AIRFLOW_HOME"]) / "monitors.json"

monitor = json.loads(KNOWN.read_text())["watched"]
triggers = {
    "check": WebDataMonitorCheckEventTrigger("webdata_default", monitor, poll_interval=2),
    "delivery": WebDataWebhookEventTrigger(
        "webdata_default", ["monitor.check.completed"], monitor_id=monitor
    ),
}
for what, trigger in triggers.items():
    asset = Asset(f"e2e_{what}", watchers=[AssetWatcher(name=what, trigger=trigger)])

    @dag(dag_id=f"e2e_on_{what}", schedule=[asset], catchup=False)
    def on_event():
        @task
        def seen(triggering_asset_events=None) -> list[dict[str, str]]:
            return [event.extra["payload"] for events in triggering_asset_events.values() for event in events]

        seen()

    on_event()
