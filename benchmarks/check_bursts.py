# SPDX-License-Identifier: Apache-2.0
"""Runs of a DAG for checks that complete together, by method of registering events and number of checks.

An event without a separate run is in the run for the next event.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
from sqlalchemy import Engine, text

from benchmarks.check_latency import DAGS, body_of, watching_stack
from tests.support.service import CONNECTION_ID, SECRET_HEADER
from tests.support.stack import Stack

BURSTS = (5, 50, 500)
SENDERS = 8
QUIET = 20.0
"""Seconds without a new run after which a burst has ended."""

_RUNS = text(
    "SELECT count(*) FROM dagrun_asset_event JOIN dag_run ON dag_run.id = dag_run_id "
    "WHERE dag_id = :dag_id GROUP BY dag_run.id ORDER BY dag_run.id"
)


def run() -> list[dict[str, object]]:
    """Return a row per method of registering events and burst."""
    with watching_stack() as (stack, engine):
        engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        return [_row(stack, engine, dag_id, burst) for dag_id in DAGS for burst in BURSTS]


def _row(stack: Stack, engine: Engine, dag_id: str, burst: int) -> dict[str, object]:
    registered_by, monitor = DAGS[dag_id]
    before = len(_events_by_run(engine, dag_id))
    start = time.monotonic()
    with httpx.Client(base_url=stack.airflow_url, headers={SECRET_HEADER: stack.webhook_secret}) as client:

        def deliver(body: bytes) -> None:
            client.post(f"/webdata/inbox/{CONNECTION_ID}/benchmark", content=body).raise_for_status()

        with ThreadPoolExecutor(SENDERS) as senders:
            list(senders.map(deliver, [body_of(monitor) for _ in range(burst)]))
        counts: list[int] = []
        changed = time.monotonic()
        while sum(counts) < burst and time.monotonic() - changed < QUIET:
            time.sleep(0.1)
            now = _events_by_run(engine, dag_id)[before:]
            if now != counts:
                counts, changed = now, time.monotonic()
        # The next check collects the remaining events, so that the next burst starts without them.
        missing = burst - sum(counts)
        if missing:
            deliver(body_of(monitor))
            time.sleep(QUIET)
    return {
        "events are registered by": registered_by,
        "checks": burst,
        "runs": len(counts),
        "most events in a run": max(counts, default=0),
        "events without a run": missing,
        "seconds": round(changed - start, 1),
    }


def _events_by_run(engine: Engine, dag_id: str) -> list[int]:
    with engine.connect() as connection:
        return list(connection.scalars(_RUNS, {"dag_id": dag_id}))
