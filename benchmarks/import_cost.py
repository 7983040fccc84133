# SPDX-License-Identifier: Apache-2.0
"""Cost of importing this package in a DAG file and in every Airflow process, in ms in addition to Airflow's import."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from tools.metadata import modules_of

RUNS = 11

ROOMS = [
    module.removeprefix("airflow_provider_webdata.")
    for module in modules_of("operators", "transfers", "sensors")
]

IMPORTS = {
    "search operator, over airflow.sdk": (
        "from airflow.sdk import DAG, BaseOperator",
        "from airflow_provider_webdata.operators.search import WebDataSearchOperator",
    ),
    "one monitor operator, over airflow.sdk": (
        "from airflow.sdk import DAG, BaseOperator",
        "from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator",
    ),
    "all operators and sensors, over airflow.sdk": (
        "from airflow.sdk import DAG, BaseOperator, BaseSensorOperator",
        f"for name in {ROOMS!r}:\n    exec('from airflow_provider_webdata.' + name + ' import *')",
    ),
    "hook, over airflow.sdk": (
        "from airflow.sdk import DAG, BaseHook, BaseOperator",
        "from airflow_provider_webdata.hooks.webdata import WebDataHook",
    ),
    "monitor sensor, over airflow.sdk": (
        "from airflow.sdk import DAG, BaseOperator, BaseSensorOperator",
        "from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor",
    ),
    "webhook sensor, over airflow.sdk": (
        "from airflow.sdk import DAG, BaseOperator, BaseSensorOperator",
        "from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor",
    ),
    "plugin module, over airflow.plugins_manager": (
        "import airflow.plugins_manager",
        "import airflow_provider_webdata.plugin",
    ),
    "for comparison: BashOperator of the standard provider": (
        "from airflow.sdk import DAG, BaseOperator",
        "from airflow.providers.standard.operators.bash import BashOperator",
    ),
    "for comparison: DateTimeSensorAsync of the standard provider": (
        "from airflow.sdk import DAG, BaseOperator, BaseSensorOperator",
        "from airflow.providers.standard.sensors.date_time import DateTimeSensorAsync",
    ),
    "for comparison: EmailOperator of the SMTP provider": (
        "from airflow.sdk import DAG, BaseOperator",
        "from airflow.providers.smtp.operators.smtp import EmailOperator",
    ),
}


def run() -> list[dict[str, object]]:
    """Return a row per import: the median and the spread of its cost in ms."""
    rows: list[dict[str, object]] = []
    # Compiling takes longer than importing, and an installer may compile only some packages.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for name, (before, measured) in IMPORTS.items():
        code = (
            f"{before}\nimport time\nstart = time.perf_counter()\n{measured}\n"
            "print((time.perf_counter() - start) * 1000)"
        )
        times = []
        for _ in range(1 + RUNS):
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            times.append(float(done.stdout.split()[-1]))
        # The first one compiles.
        del times[0]
        rows.append(
            {
                "import": name,
                "median ms": round(statistics.median(times), 1),
                "least ms": round(min(times), 1),
                "most ms": round(max(times), 1),
            }
        )
    return rows
