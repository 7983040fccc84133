# SPDX-License-Identifier: Apache-2.0
"""Random faults while deliveries and tasks continue, then a recovery, and a check of the final counts."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import httpx

from demo.chaos.database import StarvedPostgres
from demo.chaos.faults import Fault, faults_of
from demo.chaos.load import DAG, EVENT_DAGS, Load
from demo.chaos.stack import COMPLETED, ChaosStack
from demo.chaos.tasks import check_tasks
from demo.report import Report, listed
from tests.support.airflow_api import ENDED
from tests.support.errors import StackError
from tests.support.stack import HOMES, Say
from tests.support.waiting import wait_until
from webdata_sandbox.control import SandboxControl

DATABASE = "airflow"
CALM = 1800.0
"""Maximum seconds until all pending work has ended after the last fault."""
RUN_PAUSE = 75.0
# About 40 pages per second for all concurrent jobs, with a delivery per page. At a higher rate, the inbox could not
# store all deliveries while its processes are killed, and the rest would be sent after the faults.
PAGE_SECONDS, PAGES_AT_ONCE = 0.5, 5


def run_chaos(minutes: float, seed: int, flags: tuple[str, ...], say: Say, *, sqlite: bool = False) -> str:
    """Inject faults for some minutes; return the report.

    :raises StackError: work was lost, done twice, or billed twice.
    """
    say(f"seed {seed}")
    with nullcontext() if sqlite else StarvedPostgres({"max_connections": "150"}) as database:
        if database is not None and not database.has_disk:
            say("the disk is never filled, because this process may not mount a file system")
        stack = ChaosStack(
            HOMES / "chaos",
            dag_folders=(Path(__file__).parent / "dags",),
            sandbox_flags=flags,
            database_url="" if database is None else database.create_database(DATABASE),
            say=say,
        )
        with stack:
            stack.wait_for_dags((DAG, *EVENT_DAGS))
            for dag_id in (DAG, *EVENT_DAGS):
                stack.api.unpause(dag_id)
            # One call may send thousands of deliveries that waited for the end of the faults.
            sandbox = SandboxControl(stack.sandbox_url, timeout=3600)
            sandbox.set_site("chaos.example", pages=1_000_000)
            # Long enough that some attempts end while they wait for the response.
            sandbox.add_fault(
                "delay", path="/v2/(search|scrape|interact|monitor/[^/]+/run)$", times=None, seconds=2
            )
            sandbox.configure(
                page_seconds=PAGE_SECONDS, concurrency=PAGES_AT_ONCE, credits=10**9, free_runs=0
            )
            with Load(stack, sandbox, RUN_PAUSE) as load:
                counts = _faults(stack, database, random.Random(seed), minutes * 60, sandbox)
                say("no more faults; waiting for the running work")
                load.stop_feeding()
                _calm(stack, sandbox, load)
                load.stop_reading()
                return _report(stack, sandbox, load, counts).text()


def _faults(
    stack: ChaosStack,
    database: StarvedPostgres | None,
    chance: random.Random,
    seconds: float,
    sandbox: SandboxControl,
) -> Counter[str]:
    """Inject one or two faults at a time, and restart components that die; return the counts."""
    available = faults_of(stack, database)
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        faults = chance.sample(available, 1 if chance.random() < 0.75 else 2)
        if len({_subject(fault) for fault in faults}) < len(faults):
            continue
        duration = max(chance.uniform(*fault.seconds) for fault in faults)
        # The acknowledgments of some stored deliveries are lost.
        sandbox.add_fault("lose_answer", times=chance.randint(1, 20))
        with ExitStack() as injected:
            names = [injected.enter_context(fault.inject()) or fault.name for fault in faults]
            stack.say(f"  {' and '.join(names)} for {duration:.0f} s")
            time.sleep(duration)
        counts.update(names)
        _rest(stack, counts, chance.uniform(2.0, 15.0))
    return counts


def _rest(stack: ChaosStack, counts: Counter[str], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name in stack.revive():
            counts[f"{name} died as a consequence"] += 1
        time.sleep(1)


def _subject(fault: Fault) -> str:
    return fault.name.partition(" ")[0]


def _calm(stack: ChaosStack, sandbox: SandboxControl, load: Load) -> None:
    def is_finished() -> bool:
        stack.revive()
        try:
            states = Counter(run["state"] for run in stack.api.runs(DAG))
        except httpx.HTTPError:
            return False
        ended = sum(states[state] for state in ENDED) == len(load.runs)
        return ended and not stack.query("SELECT 1 FROM webdata_asset_event WHERE state = 'queued' LIMIT 1")

    _wait_until_healthy(stack)
    sandbox.clear_faults()
    # An unacknowledged delivery is retried after 60, 300, and 900 seconds.
    sandbox.advance(3 * 900.0)
    if not wait_until(is_finished, CALM, pause=2.0):
        raise StackError(
            f"Not all of the {len(load.runs)} runs ended, or not all asset events were registered, within {CALM:.0f} s "
            "after the last fault."
        )
    sandbox.advance(3 * 900.0)
    sandbox.settle()
    wait_until(lambda: not stack.has_unregistered_events(), CALM, pause=2.0)
    wait_until(lambda: not stack.query("SELECT 1 FROM asset_dag_run_queue LIMIT 1"), CALM, pause=2.0)


def _wait_until_healthy(stack: ChaosStack) -> None:
    end = time.monotonic() + CALM
    stack.revive()
    while True:
        try:
            return stack.wait_until_healthy()
        except StackError:  # noqa: PERF203 - each try takes seconds
            # A component may die some time after the fault that caused it.
            if time.monotonic() > end or not stack.revive():
                raise


def _report(stack: ChaosStack, sandbox: SandboxControl, load: Load, counts: Counter[str]) -> Report:
    report = Report()
    report.lines += [f"{name}: {count}" for name, count in sorted(counts.items())]
    _check_deliveries(report, stack, sandbox, load)
    _check_events(report, stack)
    check_tasks(report, stack, sandbox, load)
    return report


def _check_deliveries(report: Report, stack: ChaosStack, sandbox: SandboxControl, load: Load) -> None:
    rows = [
        (row_id, position, json.loads(bytes(body))["webhookId"])
        for row_id, position, body in stack.query("SELECT id, position, body FROM webdata_inbox_delivery")
    ]
    stored = Counter(webhook_id for _, _, webhook_id in rows)
    deliveries = sandbox.deliveries()
    states = Counter(delivery["status"] for delivery in deliveries)
    attempts = sum(len(delivery["attempts"]) for delivery in deliveries)
    acknowledged = {item["id"] for item in deliveries if item["status"] == "delivered"}
    report.lines += [
        f"deliveries: {len(deliveries)} in {attempts} attempts ({listed(states)})",
        f"deliveries stored: {len(rows)}",
    ]
    report.check("acknowledged and not stored", len(acknowledged - stored.keys()), 0)
    report.check("stored twice", sum(count > 1 for count in stored.values()), 0)
    report.check("stored and never sent", len(stored.keys() - {item["id"] for item in deliveries}), 0)
    report.check("positions twice or missing", len(rows) - len({row[1] for row in rows if row[1]}), 0)
    report.check("stored and not read", len({row[0] for row in rows} - load.read.keys()), 0)
    report.check("read twice", sum(count > 1 for count in load.read.values()), 0)


def _check_events(report: Report, stack: ChaosStack) -> None:
    """Check that each completed job has exactly one asset event in a separate run."""
    jobs = {job for (job,) in stack.query(f"SELECT job_id FROM webdata_inbox_delivery WHERE {COMPLETED}")}
    events = Counter(_job_of(extra) for (extra,) in stack.query("SELECT extra FROM asset_event"))
    runs = stack.query(
        "SELECT dag_run_id, extra FROM dagrun_asset_event JOIN asset_event ON asset_event.id = event_id"
    )
    seen = Counter(_job_of(extra) for _, extra in runs)
    report.lines.append(f"completed jobs that were reported: {len(jobs)}")
    report.check("  asset events", events.total(), len(jobs))
    report.check("  jobs without an event", len(jobs - events.keys()), 0)
    report.check("  jobs whose event is in no run", len(jobs - seen.keys()), 0)
    report.check("  jobs whose event is in several runs", sum(count > 1 for count in seen.values()), 0)
    report.check("  runs with several events", len(runs) - len({run for run, _ in runs}), 0)


def _job_of(extra: Any) -> str:
    found = json.loads(extra) if isinstance(extra, str) else extra
    return str(found["payload"]["job_id"])
