"""A DAG scheduled on a monitor's asset alone: the API server registers the events, and no triggerer is involved.

The monitor's id is in a file that the tests write first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_provider_webdata.assets.monitor import monitor_asset

KNOWN = Path(os.environ["AIRFLOW_HOME"]) / "monitors.json"

monitor = json.loads(KNOWN.read_text())["scheduled"]


@dag(dag_id="e2e_on_asset", schedule=[monitor_asset(monitor)], catchup=False)
def on_asset():
    @task
    def seen(triggering_asset_events=None) -> list[dict[str, str]]:
        return [event.extra["payload"] for events in triggering_asset_events.values() for event in events]

    seen()


on_asset()
