# SPDX-License-Identifier: Apache-2.0
"""A triggered DAG run."""

from __future__ import annotations

from typing import Any

from tests.e2e.airflow_tables import AirflowTables
from tests.support.airflow_api import ENDED, AirflowAPI
from tests.support.waiting import wait_until


class Run:
    """A DAG run. Waits read Airflow's tables, since a request costs a hundred times as much."""

    def __init__(
        self, api: AirflowAPI, tables: AirflowTables, dag_id: str, conf: dict[str, Any] | None = None
    ) -> None:
        self._api = api
        self._tables = tables
        self.dag_id = dag_id
        self.id = api.trigger(dag_id, conf)

    def states(self) -> dict[str, str | None]:
        """Return the state of each task that is not mapped."""
        return self._tables.task_states(self.dag_id, self.id)

    def tasks(self) -> list[dict[str, Any]]:
        return self._api.task_instances(self.dag_id, self.id)

    def task(self, task_id: str) -> dict[str, Any]:
        return next(task for task in self.tasks() if task["task_id"] == task_id)

    def wait_for(self, task_id: str, *states: str) -> dict[str, Any]:
        """Return the task instance once it is in one of the states."""
        arrived = wait_until(lambda: self.states().get(task_id) in states, pause=0.1)
        task = self.task(task_id)
        assert arrived, f"still {task['state']}: {self.log(task)}"
        return task

    def wait_until_ended(self) -> str:
        """Return the run's state once it has ended."""
        ended = wait_until(lambda: self._tables.run_state(self.dag_id, self.id) in ENDED, pause=0.1)
        state = str(self._api.run(self.dag_id, self.id)["state"])
        assert ended, f"{self.dag_id} is still {state}"
        return state

    def succeed(self) -> None:
        """Return once the run has succeeded."""
        state = self.wait_until_ended()
        assert state == "success", [self.log(task) for task in self.tasks() if task["state"] == "failed"]

    def end(self, task_id: str = "wait") -> dict[str, Any]:
        """Return the task instance once it has succeeded."""
        task = self.wait_for(task_id, "success", "failed", "upstream_failed", "skipped")
        assert task["state"] == "success", self.log(task)
        return task

    def resumed_once(self, text: str, task_id: str = "wait") -> str:
        """Return the log of a task that waited and was resumed once, in its only try; it logs `text` then."""
        task = self.end(task_id)
        log = self.log(task)
        assert task["try_number"] == 1, log
        assert log.count(text) == 1, log
        # Not twice. A triggerer under load may close a trigger's log before this, its last line.
        assert log.count("Trigger fired event") <= 1, log
        return log

    def has_xcom(self, task_id: str, key: str) -> bool:
        return self._tables.has_xcom(self.dag_id, self.id, task_id, key)

    def xcom(self, task_id: str, key: str = "return_value") -> Any:
        return self._api.xcom(self.dag_id, self.id, task_id, key)

    def log(self, task: dict[str, Any]) -> str:
        lines = self._api.log_lines(
            self.dag_id, self.id, task["task_id"], max(task["try_number"], 1), task["map_index"]
        )
        return "\n".join(lines)
