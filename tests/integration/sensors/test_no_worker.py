# SPDX-License-Identifier: Apache-2.0
"""A sensor with literal arguments waits without a worker, by Airflow's own scheduling and triggerer code."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from tests.support.dag_runner import connection
from tests.support.waiting import wait_until
from tests.support.warm import airflow_environ

SCRIPT = Path(__file__).with_name("scheduler_and_triggerer.py")


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="A trigger does not know its DAG run on Airflow 3.2")
@pytest.mark.parametrize("when", ["early", "later"])
def test_deferred_by_the_scheduler(airflow, sandbox, service, warm, when):
    """A check counts that ended before the trigger ran, or later; one that ended before the DAG run does not."""
    monitor = service.monitor()
    before = service.check(monitor)
    service.control.clear_requests()
    run = f"/v2/monitor/{monitor}/run"
    early = [f"{sandbox.url}{run}", sandbox.api_key] if when == "early" else []
    later: list[str] = []

    def start_later() -> None:
        wait_until(lambda: service.control.requests(f"/v2/monitor/{monitor}/checks"))
        later.append(service.call("POST", run)["id"])

    starting = threading.Thread(target=start_later)
    if when == "later":
        starting.start()
    environ = airflow_environ(airflow.home, AIRFLOW_CONN_WEBDATA_DEFAULT=connection(sandbox))
    done = warm.run([str(SCRIPT), f"no_worker_{when}", monitor, *early], env=environ)
    line = next((line for line in done.stdout.splitlines() if line.startswith("OUTCOME ")), None)
    assert line, done.stdout[-2000:] + done.stderr[-4000:]
    outcome = json.loads(line.removeprefix("OUTCOME "))
    assert (outcome["state"], outcome["hostname"], outcome["pid"]) == ("deferred", "", None)
    assert outcome["next_method"] == "execute_complete"
    assert outcome["event"]["status"] == "done"
    if when == "later":
        starting.join()
    (check,) = later or [outcome["check"]]
    assert outcome["event"]["check_id"] == check != before
