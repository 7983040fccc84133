# SPDX-License-Identifier: Apache-2.0
"""Runs of the example DAGs by the scheduler, one after the other, with a report on each."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.support.errors import StackError
from tests.support.runs import follow, scheduled_run
from tests.support.standing_check import is_waited_for
from tests.support.waiting import PATIENCE, wait_until
from webdata_sandbox.control import SandboxControl

if TYPE_CHECKING:
    from tests.support.stack import Stack

CHECK_SECONDS = 60
"""Duration of a check by the sandbox's clock, which is advanced when a task waits for the check."""

SANDBOX_FLAGS = ("--check-seconds", str(CHECK_SECONDS))
PLAIN_DAGS = (
    "webdata_search",
    "webdata_monitor",
    "webdata_site_to_table",
    "webdata_checked_pages",
    "webdata_operations",
)
INCREMENTAL = "webdata_incremental_search"
DAGS = (*PLAIN_DAGS, INCREMENTAL, "webdata_wait", "webdata_on_check")
POOL = "webdata"
"""The pool that an example requires."""


def run_examples(stack: Stack) -> dict[str, str]:
    """Run every example with the scheduler; return the reports."""
    stack.wait_for_dags(DAGS)
    stack.api.add_pool(POOL, 8)
    # This DAG is event-driven: it must be unpaused before a check completes.
    stack.api.unpause("webdata_on_check")
    reports = {dag_id: _run(stack, dag_id) for dag_id in PLAIN_DAGS}
    reports[INCREMENTAL] = see_newest_month(stack)
    reports["webdata_wait"] = run_wait(stack)
    # "Check <id> of monitor ..."
    check_id = reports["webdata_wait"].split()[1]
    reports["webdata_on_check"] = see_event_driven_run(stack, check_id)
    return reports


def _run(stack: Stack, dag_id: str) -> str:
    """Let the scheduler run a DAG; return the report of its last task, `report`."""
    run_id = _started(stack, dag_id)
    follow(stack.api, dag_id, run_id, stack.say)
    return str(stack.api.xcom(dag_id, run_id, "report"))


def _started(stack: Stack, dag_id: str) -> str:
    run_id = scheduled_run(stack.api, dag_id)
    stack.say(f"{dag_id}: the scheduler created {run_id}")
    return run_id


def see_newest_month(stack: Stack) -> str:
    """Follow the last run of the catch-up, because all of the sandbox's pages are recent."""
    stack.api.unpause(INCREMENTAL)
    month = datetime.now(timezone.utc).strftime("%Y-%m")
    if not wait_until(lambda: _newest_run(stack)["run_after"].startswith(month), pause=0.5):
        raise StackError(f"{INCREMENTAL} did not catch up with {month} within {PATIENCE:.0f} s.")
    run_id = str(_newest_run(stack)["dag_run_id"])
    stack.say(
        f"{INCREMENTAL}: catch-up created {len(stack.api.runs(INCREMENTAL))} runs, the last is {run_id}"
    )
    follow(stack.api, INCREMENTAL, run_id, stack.say)
    return str(stack.api.xcom(INCREMENTAL, run_id, "report"))


def _newest_run(stack: Stack) -> dict[str, Any]:
    runs = stack.api.runs(INCREMENTAL)
    return runs[-1] if runs else {"run_after": ""}


def run_wait(stack: Stack) -> str:
    """Let the scheduler run the DAG that waits for a check, and end the check when the task waits."""
    sandbox = SandboxControl(stack.sandbox_url)
    run_id = _started(stack, "webdata_wait")

    def end_the_check(name: str, state: str) -> None:
        if (name, state) != ("wait_for_check", "deferred"):
            return
        # The triggerer polls once, then waits for the webhook.
        if not wait_until(lambda: is_waited_for(sandbox)):
            raise StackError(f"No task polled the check within {PATIENCE:.0f} s.")
        stack.say(
            "  the task is deferred and occupies no worker; the service finishes the check and reports it by webhook"
        )
        sandbox.advance(CHECK_SECONDS)
        for line in deliveries(sandbox):
            stack.say(f"  {line}")

    follow(stack.api, "webdata_wait", run_id, stack.say, on_change=end_the_check)
    states = {task["task_id"]: task["state"] for task in stack.api.task_instances("webdata_wait", run_id)}
    log = stack.api.log_lines("webdata_wait", run_id, "wait_for_check", 1)
    reported = [line.removeprefix("info ") for line in log if "reported by" in line]
    branch = next(name for name in ("report_changes", "report_nothing") if states[name] == "success")
    return "\n".join([*reported, str(stack.api.xcom("webdata_wait", run_id, branch))])


def deliveries(sandbox: SandboxControl) -> list[str]:
    """Return a line with the response statuses of each monitor delivery, without the secret part of its URL."""
    lines = []
    for delivery in sandbox.deliveries():
        if not delivery["event"].startswith("monitor."):
            continue
        path = urlsplit(delivery["url"]).path.rpartition("/")[0]
        statuses = ", ".join(str(attempt["statusCode"]) for attempt in delivery["attempts"])
        lines.append(f"{delivery['event']} -> POST {path}/...: {statuses}")
    return lines


def see_event_driven_run(stack: Stack, check_id: str) -> str:
    """Follow the runs that deliveries started, up to the run for the check."""
    dag_id = "webdata_on_check"
    followed: list[str] = []

    def new_runs() -> list[str]:
        runs = [str(run["dag_run_id"]) for run in stack.api.runs(dag_id)]
        return [run_id for run_id in runs if run_id not in followed]

    while wait_until(new_runs, pause=0.5):
        run_id = new_runs()[0]
        followed.append(run_id)
        stack.say(f"{dag_id}: the delivery started {run_id}")
        follow(stack.api, dag_id, run_id, stack.say)
        payloads = stack.api.xcom(dag_id, run_id, "report")
        if check_id in [payload["check_id"] for payload in payloads]:
            return "\n".join(
                f"monitor.check.completed: check {payload['check_id']} of monitor {payload['monitor_id']}"
                for payload in payloads
            )
    raise StackError(f"{dag_id} did not run for check {check_id} within {PATIENCE:.0f} s.")
