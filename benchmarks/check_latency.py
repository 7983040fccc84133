# SPDX-License-Identifier: Apache-2.0
"""Time from sending the delivery of a completed check until Airflow has created the DAG run for it.

One DAG is scheduled on a monitor's asset, whose events the API server registers. The asset of the other one has a
watcher in the triggerer. The scheduler creates the runs of both. The last row has the time of the API server for a
thousand deliveries of checks that start no DAG.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import httpx
from sqlalchemy import Engine, create_engine, text

from airflow_provider_webdata.inbox_server.storage.asset_events import AssetEvents
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from benchmarks.airflow_files.check_dags.on_check import SCHEDULED, WATCHED
from benchmarks.load import PAYLOAD
from tests.support.postgres import Postgres
from tests.support.service import CONNECTION_ID, SECRET_HEADER
from tests.support.stack import Stack
from tests.support.waiting import wait_until

CHECKS = 10
MAX_PAUSE = 2.0
DELIVERIES = 1000
DAGS = {"on_scheduled": ("the API server", SCHEDULED), "on_watched": ("the triggerer", WATCHED)}


def run() -> list[dict[str, object]]:
    """Return a row per method of registering events, and one for deliveries that start no DAG."""
    with watching_stack() as (stack, engine):
        rows = [_row(stack, engine, dag_id) for dag_id in DAGS]
        rows.append(_row_of_deliveries_without_dag(engine))
    return rows


@contextmanager
def watching_stack() -> Iterator[tuple[Stack, Engine]]:
    """Start an Airflow on PostgreSQL with DAGs that run for checks; yield it and an engine for its database."""
    with tempfile.TemporaryDirectory() as folder, Postgres() as server:
        url = server.create_database("airflow")
        dags = Path(__file__).parent / "airflow_files" / "check_dags"
        with Stack(Path(folder), dag_folders=(dags,), database_url=url, say=lambda _: None) as stack:
            _start_watching(stack)
            engine = create_engine(url)
            yield stack, engine
            engine.dispose()


def _start_watching(stack: Stack) -> None:
    """Unpause the DAGs; return when the triggerer watches the asset."""
    stack.wait_for_dags(tuple(DAGS))
    stack.api.unpause("on_scheduled")
    stack.api.start_watching("on_watched")
    if not wait_until(lambda: bool(stack.api.places("watched_checks")), pause=0.5):
        raise RuntimeError("the triggerer does not watch the asset")


def _row(stack: Stack, engine: Engine, dag_id: str) -> dict[str, object]:
    registered_by, monitor = DAGS[dag_id]
    times = sorted(_times(stack, engine, dag_id, monitor))
    return {
        "events are registered by": registered_by,
        "median ms": round(statistics.median(times)),
        "most ms": round(times[-1]),
    }


def _times(stack: Stack, engine: Engine, dag_id: str, monitor: str) -> list[float]:
    times = []
    runs = text("SELECT count(*) FROM dag_run WHERE dag_id = :dag_id")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for number in range(CHECKS):
            time.sleep(random.uniform(0, MAX_PAUSE))
            start = time.perf_counter()
            response = httpx.post(
                f"{stack.airflow_url}/webdata/inbox/{CONNECTION_ID}/benchmark",
                content=body_of(monitor),
                headers={SECRET_HEADER: stack.webhook_secret},
            )
            response.raise_for_status()
            while connection.execute(runs, {"dag_id": dag_id}).scalar_one() <= number:
                time.sleep(0.005)
            times.append(1000 * (time.perf_counter() - start))
    return times


def _row_of_deliveries_without_dag(engine: Engine) -> dict[str, object]:
    events = AssetEvents(engine, DeliveryStore(engine))
    events.register()
    now = datetime.now(timezone.utc)
    bodies = [body_of(str(uuid.uuid4())) for _ in range(DELIVERIES)]
    new = [NewDelivery.from_body(CONNECTION_ID, None, body, now) for body in bodies]
    start = time.perf_counter()
    events.notice(new)
    spent = 1000 * (time.perf_counter() - start)
    return {
        "events are registered by": f"none: {DELIVERIES:,} deliveries that start no DAG",
        "median ms": round(spent, 1),
    }


def body_of(monitor: str) -> bytes:
    """Return the body of the delivery of a new completed check."""
    check = str(uuid.uuid4())
    data = {"monitorId": monitor, "checkId": check, "status": "completed", "summary": {}}
    return json.dumps({**PAYLOAD, "id": check, "webhookId": str(uuid.uuid4()), "data": [data]}).encode()
