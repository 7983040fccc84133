"""The sensors' arguments: templated ids, and the same defaults as those of the operators that wait."""

from __future__ import annotations

import inspect

from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.tasks.monitors.check_operator import WaitsForCheck


def test_operators_and_sensor_take_the_same():
    """What is said of one wait is said of the others."""
    shared = {
        "wait",
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
