# SPDX-License-Identifier: Apache-2.0
"""Event-driven DAGs on a real Airflow: one event for each completed check, also across the death of a triggerer."""

from __future__ import annotations

import json

from tests.e2e.airflow_tables import AirflowTables
from tests.e2e.conftest import DATABASES, known_monitors, on
from tests.e2e.killed_triggerer import EVENT_DRIVEN, KilledTriggerer
from tests.e2e.outside import Monitors, Sender, body_of, new_key
from tests.support.service import CHECK_COMPLETED
from tests.support.stack import Stack
from tests.support.waiting import wait_until


@on(*DATABASES)
def test_one_run_for_each_check_and_none_lost_or_repeated_by_a_killed_triggerer(
    stack: Stack, killed_triggerer: KilledTriggerer
) -> None:
    # Before the triggerer was killed, while it was dead, and afterwards.
    killed_triggerer.see_check()
    killed_triggerer.make_check()
    killed_triggerer.see_check()

    assert len(killed_triggerer.checks) == 3
    for dag_id in EVENT_DRIVEN:
        assert killed_triggerer.checks_of_events(dag_id) == killed_triggerer.checks
        runs = stack.api.runs(dag_id)
        assert (len(runs), {run["run_type"] for run in runs}) == (3, {"asset_triggered"})


@on(*DATABASES)
def test_one_run_for_each_check_without_a_triggerer(
    stack: Stack, tables: AirflowTables, monitors: Monitors, sender: Sender
) -> None:
    dag_id, monitor = "e2e_on_asset", known_monitors(stack)["scheduled"]
    stack.kill("triggerer")
    checks: list[str] = []
    for _ in range(3):
        check = monitors.run(monitor)
        checks.append(check)
        # The service repeats the delivery, and the inbox cannot recognize it.
        body = json.loads(monitors.deliveries(check)[CHECK_COMPLETED]["body"])
        del body["webhookId"]
        assert sender.deliver(new_key(), json.dumps(body).encode()) == "stored"
        ran = ["success"] * len(checks)
        assert wait_until(lambda ran=ran: tables.run_states(dag_id) == ran, pause=0.2), (
            checks,
            tables.run_states(dag_id),
        )
    # Five that complete together, and a job.
    for _ in range(5):
        body = json.loads(body_of(CHECK_COMPLETED, monitorId=monitor, status="completed"))
        checks.append(body["id"])
        assert sender.deliver(new_key(), json.dumps(body).encode()) == "stored"
    extract = body_of("extract.completed")
    sender.deliver(new_key(), extract)
    ran = ["success"] * len(checks)
    assert wait_until(lambda: tables.run_states(dag_id) == ran, pause=0.2), tables.run_states(dag_id)

    def jobs() -> list[list[str]]:
        runs = [run for run in stack.api.runs("e2e_on_job") if run["state"] == "success"]
        seen = [stack.api.xcom("e2e_on_job", run["dag_run_id"], "seen") for run in runs]
        return [[payload["job_id"] for payload in payloads] for payloads in seen]

    assert wait_until(lambda: [json.loads(extract)["id"]] in jobs(), pause=0.5), jobs()
    stack.launch("triggerer")

    runs = stack.api.runs(dag_id)
    assert {run["run_type"] for run in runs} == {"asset_triggered"}
    payloads = [stack.api.xcom(dag_id, run["dag_run_id"], "seen") for run in runs]
    assert sorted([payload["check_id"] for payload in seen] for seen in payloads) == sorted(
        [check] for check in checks
    )
    assert {payload["monitor_id"] for seen in payloads for payload in seen} == {monitor}
