# SPDX-License-Identifier: Apache-2.0
"""Many waiting jobs on two of each Airflow component, some of which are killed, then a check of the final counts.

No work may be lost or done twice: the service must have exactly one job per task, with the credits of its pages.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demo.examples import run_examples
from demo.pairs import TRIGGERERS
from demo.report import Report, listed
from demo.scale.stack import WORKERS, ScaleStack
from tests.support.errors import StackError
from tests.support.postgres import Postgres
from tests.support.stack import EXAMPLE_DAGS, HOMES, Say
from tests.support.waiting import wait_until
from webdata_sandbox.control import SandboxControl

DAG = "webdata_scale"
HOUR = 3600
# A crawl has one page and a batch two pages; a page costs one credit.
CREDITS = {"crawl": 1, "batch_scrape": 2}
PATIENCE = 1500.0
# Longer than the threshold for a triggerer's heartbeat, see `PairedStack`.
HANG = 25.0


def run_scale(jobs: int, flags: tuple[str, ...], say: Say) -> str:
    """Run jobs while components are killed, and return the report.

    :param jobs: number of jobs, a multiple of 4.
    :raises StackError: a count is wrong.
    """
    if jobs < 4 or jobs % 4:
        raise StackError(f"WEBDATA_SCALE_JOBS must be a multiple of 4 (given: {jobs})")
    os.environ["WEBDATA_SCALE_JOBS"] = str(jobs)
    with Postgres({"max_connections": "400"}) as postgres:
        stack = ScaleStack(
            HOMES / "scale",
            dag_folders=(EXAMPLE_DAGS, Path(__file__).parent / "dags"),
            sandbox_flags=flags,
            database_url=postgres.create_database("airflow"),
            say=say,
        )
        with stack:
            stack.wait_for_dags((DAG,))
            run_examples(stack)
            return _run_jobs(stack, jobs)


def _run_jobs(stack: ScaleStack, jobs: int) -> str:
    sandbox = SandboxControl(stack.sandbox_url)
    sandbox.set_site("scale.example", pages=1_000_000)
    stack.api.add_pool("webdata_scale", jobs)
    # Pages end only when the clock is advanced.
    sandbox.configure(page_seconds=HOUR, concurrency=jobs)
    before = {kind: {job["id"] for job in sandbox.jobs(kind)} for kind in CREDITS}
    sandbox.clear_requests()

    def new_jobs() -> dict[str, list[dict[str, Any]]]:
        return {
            kind: [job for job in sandbox.jobs(kind) if job["id"] not in before[kind]] for kind in CREDITS
        }

    def started() -> int:
        return sum(map(len, new_jobs().values()))

    began = time.monotonic()
    stack.api.unpause(DAG)
    run_id = stack.api.trigger(DAG)

    def states() -> Counter[str]:
        return Counter(str(task["state"]) for task in stack.api.task_instances(DAG, run_id))

    _until(lambda: started() >= jobs // 4, "a quarter of the jobs are started", stack, states)
    stack.kill(WORKERS[0])
    stack.say(f"  killed {WORKERS[0]} at {started()} jobs: {listed(states())}")
    stack.launch(WORKERS[0])
    _until(lambda: states()["deferred"] == jobs, "all tasks are deferred", stack, states)
    waiting = time.monotonic()
    stack.say(f"  {jobs} tasks are deferred after {waiting - began:.0f} s, and occupy no worker")
    memory = {name: _megabytes(stack, name) for name in TRIGGERERS}
    _hang(stack, TRIGGERERS[1])
    stack.kill(TRIGGERERS[0])
    stack.say(f"  killed {TRIGGERERS[0]}")
    killed = time.monotonic()
    sandbox.advance(2 * HOUR)
    stack.say("  the service completes all jobs and reports each one to an API server")
    _until(lambda: bool(states()["success"]), "the first task has its result", stack, states)
    stack.launch(TRIGGERERS[0])
    _until(
        lambda: stack.api.run(DAG, run_id)["state"] in ("success", "failed"),
        "the run has ended",
        stack,
        states,
    )
    ended = time.monotonic()

    sandbox.settle()
    report = Report()
    found = new_jobs()
    tasks = stack.api.task_instances(DAG, run_id)
    report.check("tasks", listed(Counter(str(task["state"]) for task in tasks)), f"{jobs} success")
    for kind, mine in found.items():
        report.check(f"{kind} jobs at the service", len(mine), jobs // 2)
        report.check("  of them completed", sum(job["status"] == "completed" for job in mine), jobs // 2)
        report.check(
            "  different requests",
            len({str(job["request"].get("url") or job["request"]["urls"]) for job in mine}),
            jobs // 2,
        )
    expected = sum(CREDITS[kind] * (jobs // 2) for kind in CREDITS)
    report.check("jobs cancelled", len(sandbox.requests(method="DELETE")), 0)
    # The team's balance is unsuitable, because an example's monitor may have run in the meantime.
    report.check("credits used", sum(job["spent"] for mine in found.values() for job in mine), expected)
    results = [stack.api.xcom(DAG, run_id, task["task_id"], map_index=task["map_index"]) for task in tasks]
    returned = {result["id"] for result in results}
    report.check("jobs whose result a task returned", len(returned), jobs)
    report.check(
        "  the same as at the service",
        returned == {job["id"] for mine in found.values() for job in mine},
        True,
    )
    report.check("pages returned", sum(len(result["data"]) for result in results), expected)
    completed = [
        item
        for item in sandbox.deliveries()
        if item["jobId"] in returned and item["event"].endswith(".completed")
    ]
    ports = Counter(urlsplit(item["url"]).port for item in completed if item["status"] == "delivered")
    report.check("webhooks delivered to each API server", sorted(ports.values()), [jobs // 2, jobs // 2])
    attempts = Counter(task["try_number"] for task in tasks)
    report.lines += [
        f"tasks by number of attempts: {dict(sorted(attempts.items()))}",
        f"all jobs started: {waiting - began:.0f} s; all results read: {ended - killed:.0f} s after the jobs' end",
        *(f"{name} while tasks waited: {size:.0f} MB" for name, size in memory.items()),
    ]
    return report.text()


def _until(
    condition: Callable[[], bool], what: str, stack: ScaleStack, states: Callable[[], Counter[str]]
) -> None:
    shown, shown_at = "", 0.0

    def reached() -> bool:
        nonlocal shown, shown_at
        if time.monotonic() - shown_at > 10 and (text := listed(states())) != shown:
            stack.say(f"    {text}")
            shown, shown_at = text, time.monotonic()
        return condition()

    if not wait_until(reached, PATIENCE, pause=2.0):
        raise StackError(f"Timed out after {PATIENCE:.0f} s, before {what}. Tasks: {listed(states())}")


def _hang(stack: ScaleStack, name: str) -> None:
    """Suspend a triggerer until Airflow considers it dead and reassigns its triggers; then resume it."""
    processes = stack.members(name)
    for process in processes:
        process.suspend()
    time.sleep(HANG)
    for process in processes:
        process.resume()
    stack.say(f"  {name} was suspended for {HANG:.0f} s and continues")
    # It must detect that its triggers now belong to the other triggerer.
    time.sleep(HANG / 2)


def _megabytes(stack: ScaleStack, name: str) -> float:
    return float(sum(process.memory_info().rss for process in stack.members(name))) / 2**20
