# SPDX-License-Identifier: Apache-2.0
"""Follow a DAG run as a person at the terminal would: each change of a task's state once, then the result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.support.airflow_api import ENDED, AirflowAPI
from tests.support.errors import StackError
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.stack import Say

TAIL = 15


def scheduled_run(api: AirflowAPI, dag_id: str) -> str:
    """Hand the DAG to the scheduler and return the id of the run that the scheduler creates."""
    api.unpause(dag_id)
    if not wait_until(lambda: bool(api.runs(dag_id)), pause=0.5):
        raise StackError(f"The scheduler made no run of {dag_id} within {PATIENCE:.0f} s.")
    return str(api.runs(dag_id)[0]["dag_run_id"])


def follow(
    api: AirflowAPI,
    dag_id: str,
    run_id: str,
    say: Say,
    on_change: Callable[[str, str], None] | None = None,
) -> None:
    """Return when the run has succeeded; raises `StackError` with the failed task's last log lines.

    `on_change` receives a task's name and state whenever the state changes.
    """
    deadline = time.monotonic() + PATIENCE
    seen: dict[str, str] = {}
    while True:
        outcome = api.run(dag_id, run_id)["state"]
        tasks = api.task_instances(dag_id, run_id)
        for task in sorted(tasks, key=lambda task: task["start_date"] or "9999"):
            name, state = _name(task), str(task["state"])
            if task["state"] and seen.get(name) != state:
                say(f"  {dag_id}.{name}: {state}")
                seen[name] = state
                if on_change is not None:
                    on_change(name, state)
        if outcome in ENDED:
            break
        if time.monotonic() > deadline:
            raise StackError(f"{dag_id} did not end within {PATIENCE:.0f} s; its tasks: {seen}")
        time.sleep(0.5)
    failed = [task for task in tasks if task["state"] == "failed"]
    if failed:
        raise StackError("\n".join(_what_happened(api, dag_id, run_id, task) for task in failed))
    if outcome != "success":
        raise StackError(f"{dag_id} failed; its tasks: {seen}")


def _what_happened(api: AirflowAPI, dag_id: str, run_id: str, task: dict[str, Any]) -> str:
    lines = api.log_lines(dag_id, run_id, task["task_id"], task["try_number"], task["map_index"])
    lines = [line for line in lines if "::group::" not in line and "::endgroup::" not in line]
    head = f"{dag_id}.{_name(task)} failed on try {task['try_number']}. Its last log lines:"
    return "\n".join([head, *(f"    {line}" for line in lines[-TAIL:])])


def _name(task: dict[str, Any]) -> str:
    index = task["map_index"]
    return str(task["task_id"]) if index < 0 else f"{task['task_id']}[{index}]"
