# SPDX-License-Identifier: Apache-2.0
"""What the sensor of a check and the operators that wait for one have in common."""

import inspect

from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator, WebDataRunMonitorOperator
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor


def test_operators_and_sensor_take_the_same():
    """What is said of one wait is said of the others."""
    shared = {"wait", "on_failed", "on_partial", "on_skipped", "include_pages"}
    sensor, create, run = (
        {
            name: given.default
            for name, given in inspect.signature(cls.__init__).parameters.items()
            if name in shared
        }
        for cls in (WebDataMonitorCheckSensor, WebDataCreateMonitorOperator, WebDataRunMonitorOperator)
    )
    assert sensor == create == {**run, "on_skipped": "wait"}
    assert run["on_skipped"] == "fail", "a check that was started by hand and skipped is a failure"
