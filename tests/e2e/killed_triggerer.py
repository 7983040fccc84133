# SPDX-License-Identifier: Apache-2.0
"""A triggerer that is killed while tasks wait and event-driven DAGs watch a monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.airflow_tables import AirflowTables
from tests.e2e.outside import Monitors, Sender, body_of, new_key
from tests.e2e.run import Run
from tests.support.stack import Stack
from tests.support.waiting import wait_until

# DAG: its asset, and the payload's field that names the check.
EVENT_DRIVEN = {"e2e_on_check": ("e2e_check", "check_id"), "e2e_on_delivery": ("e2e_delivery", "job_id")}


class KilledTriggerer:
    """The death of a triggerer, what happened meanwhile, and the runs that it must not harm.

    :ivar checks: the checks of the watched monitor, oldest first.
    :ivar while_dead: the states of the two waiting tasks before the triggerer was started again.
    """

    def __init__(
        self,
        stack: Stack,
        tables: AirflowTables,
        start: Callable[..., Run],
        monitors: Monitors,
        watched: str,
    ) -> None:
        self._stack, self._tables, self._monitors, self._watched = stack, tables, monitors, watched
        self.key = new_key()
        self.polled = monitors.create("polled", webhook=False)
        self.by_webhook = start("e2e_delivery_to_webdata_default", {"key": self.key})
        self.by_polling = start("e2e_check", {"monitor": self.polled})
        self.polled_check = ""
        self.checks: list[str] = []
        self.while_dead: list[str | None] = []
        self._cursors: dict[str, list[Any]] = {}

    def kill_and_restart(self, sender: Sender) -> None:
        """Kill the triggerer, let the waits' ends and a check of the watched monitor happen, and start it again."""
        for dag_id, (asset, _) in EVENT_DRIVEN.items():
            self._stack.api.start_watching(dag_id)
            found = wait_until(lambda asset=asset: bool(self._stack.api.places(asset)), pause=0.5)
            assert found, f"no triggerer watches {asset}"
        runs = (self.by_webhook, self.by_polling)
        for run in runs:
            run.wait_for("wait", "deferred")
        self._monitors.wait_until_watched(self.polled)
        self.make_check()
        self.see_check()

        self._stack.kill("triggerer")
        assert sender.deliver(self.key, body_of("crawl.completed")) == "stored"
        self.polled_check = self._monitors.run(self.polled)
        self.make_check()
        self.while_dead = [run.states()["wait"] for run in runs]
        self._stack.launch("triggerer")

    def make_check(self) -> None:
        """Run a check of the watched monitor."""
        self._cursors = {asset: self._stack.api.places(asset) for asset, _ in EVENT_DRIVEN.values()}
        self.checks.append(self._monitors.run(self._watched))

    def see_check(self) -> None:
        """Return once the DAGs have run for the last check, and each watcher has stored its cursor behind it."""
        for dag_id, (asset, _) in EVENT_DRIVEN.items():
            ran = ["success"] * len(self.checks)
            assert wait_until(lambda dag=dag_id, ran=ran: self._tables.run_states(dag) == ran, pause=0.2), (
                dag_id,
                self.checks,
                self.checks_of_events(dag_id),
                self._tables.run_states(dag_id),
            )
            assert self.checks_of_runs(dag_id) == self.checks
            before = self._cursors[asset]
            moved = wait_until(
                lambda asset=asset, before=before: self._stack.api.places(asset) != before, pause=0.5
            )
            assert moved, f"{asset} stores no cursor"

    def checks_of_events(self, dag_id: str) -> list[str]:
        """Return the check of each event that Airflow stored for the DAG's asset, oldest first."""
        name, field = EVENT_DRIVEN[dag_id]
        assets = self._stack.api.call("GET", "/assets", params={"name_pattern": name})["assets"]
        (asset,) = (asset for asset in assets if asset["name"] == name)
        params = {"asset_id": asset["id"], "order_by": "timestamp"}
        events = self._stack.api.call("GET", "/assets/events", params=params)["asset_events"]
        return [event["extra"]["payload"][field] for event in events]

    def checks_of_runs(self, dag_id: str) -> list[str]:
        """Return the checks that the DAG's runs were triggered by and have seen, oldest run first."""
        _, field = EVENT_DRIVEN[dag_id]
        runs = [run["dag_run_id"] for run in self._stack.api.runs(dag_id) if run["state"] == "success"]
        return [payload[field] for run in runs for payload in self._stack.api.xcom(dag_id, run, "seen")]
