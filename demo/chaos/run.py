"""Faults at random while deliveries and tasks continue; then a calm, and the books."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import psycopg2

from airflow_provider_webdata.sandbox.control import SandboxControl
from demo.books import Books
from demo.chaos.database import StarvedPostgres
from demo.chaos.faults import Fault, faults_of
from demo.chaos.load import DAG, Load
from demo.chaos.stack import ChaosStack
from tests.support.airflow_api import ENDED
from tests.support.errors import StackError
from tests.support.stack import HOMES, Say
from tests.support.waiting import wait_until

DATABASE = "airflow"
CALM = 900.0
"""Seconds for all pending work to end after the last fault."""
RUN_PAUSE = 30.0
# About 40 pages a second over the concurrent jobs, each page a delivery. With more than the inbox can store while its
# processes are killed, deliveries would pile up and be sent in the calm.
PAGE_SECONDS, PAGES_AT_ONCE = 0.5, 5


def run_chaos(minutes: float, seed: int, flags: tuple[str, ...], say: Say) -> str:
    """Let faults happen for some minutes; returns the report.

    Raises `StackError` if anything was lost, done twice, or billed twice.
    """
    say(f"seed {seed}")
    with StarvedPostgres({"max_connections": "150"}) as database:
        if not database.has_disk:
            say("the disk is never filled: that takes the right to mount a file system")
        stack = ChaosStack(
            HOMES / "chaos",
            dag_folders=(Path(__file__).parent / "dags",),
            sandbox_flags=flags,
            database_url=database.create_database(DATABASE),
            say=say,
        )
        with stack:
            stack.wait_for_dags((DAG,))
            stack.api.unpause(DAG)
            # One call may send many thousand deliveries that waited for the faults to end.
            sandbox = SandboxControl(stack.sandbox_url, timeout=3600)
            sandbox.set_site("chaos.example", pages=1_000_000)
            sandbox.configure(page_seconds=PAGE_SECONDS, concurrency=PAGES_AT_ONCE, credits=10**9)
            with Load(stack, RUN_PAUSE) as load:
                counts = _faults(stack, database, random.Random(seed), minutes * 60, sandbox)
                say("no more faults; what is under way may end")
                load.stop_feeding()
                _calm(stack, sandbox, load)
                load.stop_reading()
                return _books(stack, database, sandbox, load, counts).report()


def _faults(
    stack: ChaosStack,
    database: StarvedPostgres,
    chance: random.Random,
    seconds: float,
    sandbox: SandboxControl,
) -> Counter[str]:
    """Let faults happen, one or two at a time, and restart components that die; return the counts."""
    menu = faults_of(stack, database)
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        faults = chance.sample(menu, 1 if chance.random() < 0.75 else 2)
        if len({_subject(fault) for fault in faults}) < len(faults):
            continue
        lasting = max(chance.uniform(*fault.lasting) for fault in faults)
        # Some deliveries are stored whose acknowledgment is lost.
        sandbox.add_fault("lose_answer", times=chance.randint(1, 20))
        stack.say(f"  {' and '.join(fault.name for fault in faults)} for {lasting:.0f} s")
        with ExitStack() as happening:
            for fault in faults:
                happening.enter_context(fault.happen())
            time.sleep(lasting)
        counts.update(fault.name for fault in faults)
        _rest(stack, counts, chance.uniform(2.0, 15.0))
    return counts


def _rest(stack: ChaosStack, counts: Counter[str], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name in stack.revive():
            counts[f"{name} died of it"] += 1
        time.sleep(1)


def _subject(fault: Fault) -> str:
    return fault.name.partition(" ")[0]


def _calm(stack: ChaosStack, sandbox: SandboxControl, load: Load) -> None:
    def over() -> bool:
        stack.revive()
        try:
            states = Counter(run["state"] for run in stack.api.runs(DAG))
        except httpx.HTTPError:
            return False
        return sum(states[state] for state in ENDED) == len(load.runs)

    stack.revive()
    stack.wait_until_healthy()
    sandbox.clear_faults()
    # A delivery that was not accepted is due again after 60, 300, and 900 seconds.
    sandbox.advance(3 * 900.0)
    if not wait_until(over, CALM, pause=2.0):
        raise StackError(
            f"Not all of the {len(load.runs)} runs ended within {CALM:.0f} s after the last fault."
        )
    sandbox.advance(3 * 900.0)
    sandbox.settle()


def _books(
    stack: ChaosStack, database: StarvedPostgres, sandbox: SandboxControl, load: Load, counts: Counter[str]
) -> Books:
    books = Books()
    books.lines += [f"{name}: {count}" for name, count in sorted(counts.items())]
    _check_deliveries(books, database, sandbox, load)
    _check_tasks(books, stack, sandbox, load)
    return books


def _check_deliveries(books: Books, database: StarvedPostgres, sandbox: SandboxControl, load: Load) -> None:
    with closing(psycopg2.connect(database.address(DATABASE))) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, position, convert_from(body, 'UTF8') FROM webdata_inbox_delivery")
        rows = [(row_id, position, json.loads(body)["webhookId"]) for row_id, position, body in cursor]
    stored = Counter(webhook_id for _, _, webhook_id in rows)
    deliveries = sandbox.deliveries()
    states = Counter(delivery["status"] for delivery in deliveries)
    attempts = sum(len(delivery["attempts"]) for delivery in deliveries)
    acknowledged = {item["id"] for item in deliveries if item["status"] == "delivered"}
    books.lines += [
        f"deliveries: {len(deliveries)} in {attempts} attempts ({_told(states)})",
        f"deliveries stored: {len(rows)}",
    ]
    books.check("acknowledged and not stored", len(acknowledged - stored.keys()), 0)
    books.check("stored twice", sum(count > 1 for count in stored.values()), 0)
    books.check("stored and never sent", len(stored.keys() - {item["id"] for item in deliveries}), 0)
    books.check("positions twice or missing", len(rows) - len({row[1] for row in rows if row[1]}), 0)
    books.check("stored and not read", len({row[0] for row in rows} - load.read.keys()), 0)
    books.check("read twice", sum(count > 1 for count in load.read.values()), 0)


def _check_tasks(books: Books, stack: ChaosStack, sandbox: SandboxControl, load: Load) -> None:
    tasks = [
        (run_id, task)
        for run_id in load.runs
        for task in stack.api.task_instances(DAG, run_id)
        if task["task_id"] == "crawl"
    ]
    states = Counter(str(task["state"]) for _, task in tasks)
    jobs = [job for job in sandbox.jobs("crawl") if job["request"]["url"] in set(load.urls)]
    books.check("tasks", _told(states), f"{len(load.urls)} success")
    books.lines.append(
        f"tasks by number of attempts: {_told(Counter(str(task['try_number']) for _, task in tasks))}"
    )
    books.check("jobs at the service", len(jobs), len(load.urls))
    books.check("  of them for different pages", len({job["request"]["url"] for job in jobs}), len(load.urls))
    books.check("credits used", sum(job["spent"] for job in jobs), len(load.urls))
    results = [_result(stack, run_id, task) for run_id, task in tasks if task["state"] == "success"]
    books.check(
        "jobs whose result a task returned", len(set(results) & {job["id"] for job in jobs}), len(load.urls)
    )


def _result(stack: ChaosStack, run_id: str, task: dict[str, Any]) -> str:
    return str(stack.api.xcom(DAG, run_id, "crawl", map_index=task["map_index"])["id"])


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
