# SPDX-License-Identifier: Apache-2.0
"""DAGs scheduled on a monitor's and on jobs' asset alone: the API server registers the events, not a triggerer.

The monitor's id is in a file that the tests write first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_provider_webdata.assets.job import job_asset
from airflow_provider_webdata.assets.monitor import monitor_asset

KNOWN = Path(os.environ["AIRFLOW_HOME"]) / "monitors.json"

monitor = json.loads(KNOWN.read_text())["scheduled"]


@task
def seen(triggering_asset_events=None) -> list[dict[str, str]]:
    return [event.extra["payload"] for events in triggering_asset_events.values() for event in events]


@dag(dag_id="e2e_on_asset", schedule=[monitor_asset(monitor)], catchup=False)
def on_asset():
    seen()


@dag(dag_id="e2e_on_job", schedule=[job_asset("extract")], catchup=False)
def on_job():
    seen()


on_asset()
on_job()
