"""Event-driven DAGs on a real Airflow: one event for each completed check, also across the death of a triggerer."""

from __future__ import annotations

from typing import Any

from tests.e2e import conftest
from tests.e2e.conftest import known_monitors
from tests.e2e.outside import Monitors
from tests.support.stack import Stack
from tests.support.waiting import wait_until

DATABASES = conftest.DATABASES

# DAG: the payload's field that names the check.
EVENT_DRIVEN = {"e2e_on_check": "check_id", "e2e_on_delivery": "job_id"}
ASSETS = {"e2e_on_check": "e2e_check", "e2e_on_delivery": "e2e_delivery"}


def checks_of_events(stack: Stack, dag_id: str) -> list[str]:
    """The check of each event that Airflow stored for the DAG's asset, oldest first."""
    assets = stack.api.call("GET", "/assets", params={"name_pattern": ASSETS[dag_id]})["assets"]
    (asset,) = (asset for asset in assets if asset["name"] == ASSETS[dag_id])
    params = {"asset_id": asset["id"], "order_by": "timestamp"}
    events = stack.api.call("GET", "/assets/events", params=params)["asset_events"]
    return [event["extra"]["payload"][EVENT_DRIVEN[dag_id]] for event in events]


def checks_of_runs(stack: Stack, dag_id: str) -> list[str]:
    """The checks that the DAG's runs were made for and have seen, oldest run first."""
    runs = [run for run in stack.api.runs(dag_id) if run["state"] == "success"]
    seen: list[list[dict[str, Any]]] = [stack.api.xcom(dag_id, run["dag_run_id"], "seen") for run in runs]
    return [payload[EVENT_DRIVEN[dag_id]] for payloads in seen for payload in payloads]


def test_one_run_for_each_check_and_none_lost_or_repeated_by_a_killed_triggerer(
    stack: Stack, monitors: Monitors
) -> None:
    monitor = known_monitors(stack)["watched"]
    for dag_id, asset in ASSETS.items():
        stack.api.start_watching(dag_id)
        assert wait_until(lambda asset=asset: bool(stack.api.places(asset))), f"{asset} is not watched"
    checks: list[str] = []
    places: dict[str, list[Any]] = {}

    def make() -> None:
        places.update({asset: stack.api.places(asset) for asset in ASSETS.values()})
        checks.append(monitors.run(monitor))

    def see() -> None:
        """Return once the DAGs have run for the last check, and each watcher has kept its place behind it."""
        for dag_id, asset in ASSETS.items():
            arrived = wait_until(lambda d=dag_id: checks_of_runs(stack, d) == checks, pause=0.5)
            assert arrived, (dag_id, checks, checks_of_events(stack, dag_id), checks_of_runs(stack, dag_id))
            assert wait_until(lambda a=asset: stack.api.places(a) != places[a]), f"{asset} keeps no place"

    make()
    see()
    make()
    see()
    stack.kill("triggerer")
    # Nobody watches while this check is made.
    make()
    stack.launch("triggerer")
    see()
    make()
    see()

    for dag_id in ASSETS:
        assert checks_of_events(stack, dag_id) == checks
        runs = stack.api.runs(dag_id)
        assert (len(runs), {run["run_type"] for run in runs}) == (len(checks), {"asset_triggered"})
