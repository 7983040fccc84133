"""A sensor of literals waits without a worker, by Airflow's own scheduling and triggerer code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_webdata.tasks.retry_policy import HAS_RETRY_POLICIES
from tests.support.dag_runner import connection
from tests.support.warm import airflow_environ

SCRIPT = Path(__file__).with_name("scheduler_and_triggerer.py")


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="Airflow 3.2 tells a trigger nothing of its DAG run")
@pytest.mark.parametrize("when", ["early", "later"])
def test_deferred_by_the_scheduler(airflow, sandbox, service, warm, when):
    """What ended before the DAG run does not count, what ends before the trigger runs does."""
    monitor = service.monitor()
    before = service.check(monitor)
    environ = airflow_environ(airflow.home, AIRFLOW_CONN_WEBDATA_DEFAULT=connection(sandbox))
    start_check = f"{sandbox.url}/v2/monitor/{monitor}/run"
    argv = [str(SCRIPT), f"no_worker_{when}", monitor, start_check, when, sandbox.api_key]
    done = warm.run(argv, env=environ)
    outcome = next((line for line in done.stdout.splitlines() if line.startswith("OUTCOME ")), None)
    assert outcome, done.stdout[-2000:] + done.stderr[-4000:]
    told = json.loads(outcome.removeprefix("OUTCOME "))
    assert (told["state"], told["hostname"], told["pid"]) == ("deferred", "", None)
    assert told["next_method"] == "execute_complete"
    assert told["event"]["status"] == "done"
    assert told["event"]["check_id"] == told["check"] != before
