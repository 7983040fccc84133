"""Every operator for monitors on a real Airflow."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.sandbox.control import SandboxControl
from tests.e2e.conftest import Run
from tests.support.stack import Stack


@pytest.mark.rule("monitor-status", "monitor-list", "monitor-delete", "monitor-run")
def test_a_monitor_is_created_run_paused_listed_and_deleted(stack: Stack, sandbox: SandboxControl) -> None:
    stack.wait_for_dags(["e2e_monitor_life"])
    run = Run(stack, "e2e_monitor_life")

    assert run.wait_until_ended() == "success"

    monitor = run.xcom("create")["id"]
    assert run.xcom("run")["monitorId"] == monitor
    assert run.xcom("pause")["status"] == "paused"
    assert [(found["id"], found["status"]) for found in run.xcom("paused")] == [(monitor, "paused")]
    assert run.xcom("left") == []
    calls = [(request["method"], request["status"]) for request in sandbox.requests("/v2/monitor.*")]
    assert [calls.count((method, 200)) for method in ("POST", "PATCH", "DELETE")] == [2, 1, 1]
