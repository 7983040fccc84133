"""What the sensors take: every argument documented, ids templated, and nothing heavy imported for it."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor
from airflow_provider_webdata.tasks.deferral import WaitingTask
from airflow_provider_webdata.tasks.monitors.check_operator import WaitsForCheck
from airflow_provider_webdata.tasks.sensor import SinceSensor, WebDataSensor


@pytest.mark.parametrize(
    "task",
    [
        WebDataMonitorCheckSensor,
        WebDataWebhookSensor,
        WebDataJobSensor,
        WebDataSensor,
        SinceSensor,
        WaitsForCheck,
        WaitingTask,
    ],
)
def test_every_keyword_is_documented(task):
    text = inspect.getdoc(task)
    for name in inspect.signature(task.__init__).parameters if "__init__" in vars(task) else ():
        if name != "self":
            assert f":param {name}:" in text, name


@pytest.mark.parametrize(
    ("sensor", "templated"),
    [
        (WebDataMonitorCheckSensor, {"webdata_conn_id", "monitor_id", "check_id", "after"}),
        (WebDataWebhookSensor, {"webdata_conn_id", "key", "events", "job_id", "monitor_id", "after"}),
        (
            WebDataJobSensor,
            {"webdata_conn_id", "kind", "job_id", "output_url", "save_media", "max_error_ratio"},
        ),
    ],
)
def test_templated(sensor, templated):
    assert set(sensor.template_fields) == templated


def test_operators_and_sensor_take_the_same():
    """What is said of one wait is said of the others."""
    shared = {
        "wait_by",
        "poll_interval",
        "safety_poll",
        "on_failed",
        "on_partial",
        "on_skipped",
        "include_pages",
    }
    sensor = inspect.signature(WebDataMonitorCheckSensor.__init__).parameters
    operator = inspect.signature(WaitsForCheck.__init__).parameters
    assert {name: sensor[name].default for name in shared} == {
        name: operator[name].default for name in shared
    }


HEAVY = ("httpx", "pydantic", "sqlalchemy", "starlette", "msgspec")


@pytest.mark.parametrize("module", ["sensors.monitor", "sensors.webhook", "operators.monitor"])
def test_a_dag_file_imports_nothing_heavy(module):
    code = (
        "import sys, airflow.sdk as sdk\n"
        "sdk.DAG, sdk.BaseOperator, sdk.BaseSensorOperator\n"
        "before = set(sys.modules)\n"
        f"import airflow_provider_webdata.{module}\n"
        "rooms = [f'airflow_provider_webdata.{room}' for room in ('api', 'hooks', 'inbox', 'triggers')]\n"
        "new = set(sys.modules) - before\n"
        f"added = [m for m in new if m.split('.')[0] in {HEAVY!r} or m.startswith(tuple(rooms))]\n"
        "assert not added, added\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
