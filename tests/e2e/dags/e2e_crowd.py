# SPDX-License-Identifier: Apache-2.0
"""Many tasks that wait for the same check, with literal arguments: they start in the triggerer.

Literals are known when this file is read; the monitor's id stands in a file that the tests write first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from airflow.sdk import dag

from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor

KNOWN = Path(os.environ["AIRFLOW_HOME"]) / "monitors.json"
# Airflow (3.3.2) itself may stop where some 200 start at once: see "When something goes wrong" in docs/waiting.md.
CROWD = 12

monitor = json.loads(KNOWN.read_text())["crowd"]


@dag(dag_id="e2e_crowd", schedule=None, max_active_tasks=CROWD)
def crowd():
    for number in range(CROWD):
        WebDataMonitorCheckSensor(
            task_id=f"wait_{number}",
            monitor_id=monitor,
            deferrable=True,
            timeout=1200,
        )


crowd()
