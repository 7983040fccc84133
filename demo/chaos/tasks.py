# SPDX-License-Identifier: Apache-2.0
"""What the tasks started, what the service billed for it, and what the tasks' records say."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.states.task_record import read_stored
from demo.chaos.load import DAG, JOBS_PER_RUN, monitor_of, page_of, query_of, run_id_of
from demo.report import Report, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.chaos.load import Load
    from demo.chaos.stack import ChaosStack
    from webdata_sandbox.control import SandboxControl

JOB_KINDS = ("crawl", "batch_scrape", "agent")
"""Kinds of the tasks' jobs, which are their task ids."""
CALLS = {"search": (2, 1), "batch_search": (2, 3), "scrape": (1, 1)}
"""Credits of a call, and number of calls, by the id of the task."""
PRICES = {"crawl": 1, "batch_scrape": 1, "agent": 22, "check": 1, "interact": 2} | {
    task: price for task, (price, _) in CALLS.items()
}
"""Credits of what one call of a task costs, which a call of unknown cost may have cost."""
_ACCEPTED = (None, 200)
"""Statuses of calls that the service billed; None: its client did not wait for the response."""


def check_tasks(report: Report, stack: ChaosStack, sandbox: SandboxControl, load: Load) -> None:
    """Check that each task succeeded, started one thing, and counted all that the service billed."""
    number = len(load.runs)
    tasks = [(run, task) for run in load.runs for task in stack.api.task_instances(DAG, run)]
    report.check("tasks that did not succeed", listed(Counter(_failed(tasks))), "")
    attempts = Counter(str(task["try_number"]) for _, task in tasks)
    report.lines.append(f"tasks by number of attempts: {listed(attempts)}")
    billed: dict[str, Counter[str]] = {}
    expected = {
        "crawl": number * JOBS_PER_RUN // 2,
        "batch_scrape": number * JOBS_PER_RUN // 2,
        "agent": number,
    }
    ours = {*load.urls, *(page_of(one) for one in range(1, number + 1))}
    for kind in JOB_KINDS:
        jobs = {job["id"]: job for job in sandbox.jobs(kind) if _page_of(job) in ours}
        report.check(f"{kind}: jobs at the service", len(jobs), expected[kind])
        report.check("  of them for different pages", len({*map(_page_of, jobs.values())}), expected[kind])
        done = (pair for pair in tasks if pair[1]["task_id"] == kind and pair[1]["state"] == "success")
        found = {_result(stack, run, task) for run, task in done}
        report.check("  whose result a task returned", len(found & jobs.keys()), expected[kind])
        billed[kind] = Counter({kind: sum(job["spent"] for job in jobs.values())})
    monitors, checks = _monitors(sandbox, number)
    report.check(
        "monitor: monitors of different names", listed(Counter(map(str, monitors.values()))), f"{number} 1"
    )
    manual = Counter(check["monitorId"] for check in checks if check["trigger"] == "manual")
    report.check(
        "check: monitors by number of checks", listed(Counter(map(str, manual.values()))), f"{number} 1"
    )
    billed["check"] = Counter({"check": sum(check["actualCredits"] or 0 for check in checks)})
    sessions = sandbox.sessions()
    report.lines.append(f"interact: sessions: {len(sessions)}")
    billed["interact"] = Counter({"interact": sum(session["creditsBilled"] for session in sessions)})
    for kind, (price, least) in CALLS.items():
        calls = _calls(load, kind)
        report.check(f"{kind}: runs with all calls", sum(calls[run] >= least for run in load.runs), number)
        report.lines.append(f"  calls that were repeated: {calls.total() - least * number}")
        billed[kind] = Counter({run: count * price for run, count in calls.items()})
    _check_records(report, stack, billed)


def _check_records(report: Report, stack: ChaosStack, billed: dict[str, Counter[str]]) -> None:
    """Check that the records count what was billed: of tasks whose calls are known one by one, each record."""
    statement = "SELECT run_id, task_id, value FROM task_state_store WHERE dag_id = 'webdata_chaos' AND key = 'webdata'"
    records = [(run, task, read_stored(json.loads(value))) for run, task, value in stack.query(statement)]
    told: dict[str, Counter[str]] = {task: Counter() for task in billed}
    unknown: dict[str, Counter[str]] = {task: Counter() for task in billed}
    for run, task, record in records:
        if task in told:
            key, credits = run if task in CALLS else task, record.credits
            for entry in (*credits.open.values(), *credits.lost.values(), *credits.settled.values()):
                told[task][key] += entry.used + entry.reserved  # type: ignore[assignment]
                unknown[task][key] += entry.unknown
    for task, bills in billed.items():
        report.lines.append(
            f"{task}: credits billed: {bills.total():g}, counted: {told[task].total():g}, "
            f"calls of unknown cost: {unknown[task].total()}"
        )
        price = PRICES[task]
        missing = (bills[key] - told[task][key] - price * unknown[task][key] for key in bills)
        report.check("  billed and not counted", sum(max(0, one) for one in missing), 0)
    ended = sum(record.is_final for _, _, record in records)
    report.check("records of tasks that have not ended", len(records) - ended, 0)


def _failed(tasks: list[tuple[str, Any]]) -> Iterator[str]:
    for _, task in tasks:
        if task["state"] != "success":
            yield f"{task['task_id']} {task['state']}"


def _monitors(sandbox: SandboxControl, number: int) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Return the number of the runs' monitors by name, and their checks."""
    state = sandbox.state()
    names = {monitor_of(one) for one in range(1, number + 1)}
    ours = {monitor["id"]: monitor["name"] for monitor in state["monitors"] if monitor["name"] in names}
    return Counter(ours.values()), [check for check in state["checks"] if check["monitorId"] in ours]


def _calls(load: Load, kind: str) -> Counter[str]:
    """Return the number of billed calls of a kind by run."""
    counts: Counter[str] = Counter()
    runs = {page_of(one): run_id_of(one) for one in range(1, len(load.runs) + 1)}
    queries = {query_of(one): run_id_of(one) for one in range(1, len(load.runs) + 1)}
    for call in load.calls.values():
        body = call["body"]
        if call["status"] not in _ACCEPTED:
            continue
        if kind == "scrape":
            run = runs.get(body.get("url"))
        else:
            query = body.get("query", "")
            run = queries.get(query[:-2] if kind == "batch_search" else query)
        if run is not None:
            counts[run] += 1
    return counts


def _page_of(job: dict[str, Any]) -> str:
    """Return the page of a task's job; the pages of a larger batch are those of no task."""
    request = job["request"]
    return str(request["url"] if "url" in request else (request.get("urls") or [""])[0])


def _result(stack: ChaosStack, run_id: str, task: dict[str, Any]) -> str:
    return str(stack.api.xcom(DAG, run_id, task["task_id"], map_index=task["map_index"])["id"])
