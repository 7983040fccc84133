"""What the sensors take: ids templated, and the same arguments as the operators that wait."""

from __future__ import annotations

import inspect

import pytest

from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor
from airflow_provider_webdata.tasks.monitors.check_operator import WaitsForCheck


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
