# SPDX-License-Identifier: Apache-2.0
"""Query plans: an index serves each search, so that its time does not grow with the number of deliveries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from airflow.utils.orm_event_handlers import setup_event_handlers
from sqlalchemy import Engine, create_engine, event

from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.support.many_deliveries import fill

CONN = "webdata_default"
ROWS = 20_000
BASE = 1_700_000_000_000_000
LATE = datetime.fromtimestamp(BASE / 10**6, timezone.utc) + timedelta(seconds=ROWS - 100)

KEY, JOB, MONITOR, DAG, PAGE, EVENT, FEED = (
    "correlation_key", "job_id", "monitor_id", "dag_id", "page_hash", "event", "conn_id_position",
)  # fmt: skip
NEAR_THE_END = BASE + (ROWS - 300) * 10**6
SEARCHES: list[tuple[str, DeliveryFilter, set[str]]] = [
    ("key", DeliveryFilter(keys=("key-7",)), {KEY}),
    ("unknown key", DeliveryFilter(keys=("none",)), {KEY}),
    ("keys", DeliveryFilter(keys=tuple(f"key-{n}" for n in range(0, 4000, 400))), {KEY}),
    ("job", DeliveryFilter(job_ids=("job-7",)), {JOB}),
    ("unknown job", DeliveryFilter(job_ids=("none",)), {JOB}),
    ("monitor", DeliveryFilter(monitor_ids=("monitor-7",)), {MONITOR}),
    ("DAG", DeliveryFilter(dag_ids=("dag-7",)), {DAG}),
    ("unknown DAG", DeliveryFilter(dag_ids=("none",)), {DAG}),
    ("DAG and event", DeliveryFilter(dag_ids=("dag-7",), events=("monitor.page",)), {DAG}),
    ("page", DeliveryFilter(page_urls=("https://a.example/7",)), {PAGE}),
    ("unknown page", DeliveryFilter(page_urls=("https://a.example/none",)), {PAGE}),
    ("since, monitor", DeliveryFilter(monitor_ids=("monitor-7",), received_after=LATE), {MONITOR}),
    ("job and event", DeliveryFilter(job_ids=("job-7",), events=("monitor.page",)), {JOB}),
    (
        "key or job or monitor",
        DeliveryFilter(keys=("key-7",), job_ids=("job-8",), monitor_ids=("monitor-7",)),
        {KEY, JOB, MONITOR},
    ),
    ("event", DeliveryFilter(events=("monitor.check.completed",)), {EVENT}),
    ("same event of another operation", DeliveryFilter(events=("crawl.page",)), {EVENT}),
    ("unknown events", DeliveryFilter(events=("completed", "crawl.failed")), {EVENT}),
    ("since, event", DeliveryFilter(events=("check.completed",), received_after=LATE), {EVENT}),
    ("since", DeliveryFilter(received_after=LATE), {FEED}),
    ("until", DeliveryFilter(received_before=LATE), {FEED}),
    ("all", DeliveryFilter(), {FEED}),
]


def plans_of(engine: Engine, work: Callable[..., object], *arguments: Any) -> str:
    """Return the database's plans for the statements on deliveries that `work` executes."""
    explain = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}[engine.dialect.name]
    executed: list[tuple[str, Any]] = []

    def note(*call: Any) -> None:
        executed.append(call[2:4])

    event.listen(engine, "before_cursor_execute", note)
    work(*arguments)
    event.remove(engine, "before_cursor_execute", note)
    with engine.connect() as connection:
        return "\n".join(
            str(row[-1])
            for statement, values in executed
            if "FROM webdata_inbox_delivery" in statement
            for row in connection.exec_driver_sql(f"{explain} {statement}", values)
        )


def indexes_in(plan: str) -> set[str]:
    return set(re.findall(r"idx_webdata_inbox_delivery_(\w+)", plan)) - {"pending"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[DeliveryStore, Engine]]:
    """A database with many deliveries, which these tests only read."""
    url = f"sqlite:///{tmp_path_factory.mktemp('plans')}/inbox.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").create_database("inbox_plans")
    engine = create_engine(url)
    setup_event_handlers(engine)
    metadata.create_all(engine)
    fill(engine, CONN, ROWS, BASE)
    yield DeliveryStore(engine), engine
    engine.dispose()


def test_each_search_has_its_index(filled: tuple[DeliveryStore, Engine]) -> None:
    store, engine = filled
    for name, wanted, indexes in SEARCHES:
        plans = {
            "from the oldest": plans_of(engine, store.read, CONN, wanted, 0, 200),
            "from a cursor": plans_of(engine, store.read, CONN, wanted, NEAR_THE_END, 200),
            "newest": plans_of(engine, store.newest, CONN, wanted, 200),
            "newest before": plans_of(engine, store.newest, CONN, wanted, 200, NEAR_THE_END),
            "newest of all connections": plans_of(engine, store.newest, None, wanted, 200),
        }
        for how, plan in plans.items():
            about = f"{name}, {how}:\n{plan}"
            since = {"received_at"} if wanted.received_after or wanted.received_before else set()
            assert indexes_in(plan) >= indexes or indexes_in(plan) == since, about
            # Any index that begins with the connection finds the connections.
            assert indexes_in(plan) <= indexes | since or how == "newest of all connections", about
            assert "Seq Scan" not in plan, about
            assert not re.search(r"SCAN webdata_inbox_delivery(?! USING (COVERING )?INDEX)", plan), about


def test_other_statements_have_an_index(filled: tuple[DeliveryStore, Engine]) -> None:
    store, engine = filled
    plans = [
        (FEED, plans_of(engine, store.changes, NEAR_THE_END, {CONN})),
        (FEED, plans_of(engine, store.last_received, CONN)),
        ("received_at", plans_of(engine, store.prune, LATE - timedelta(days=1000))),
        ("pending", plans_of(engine, store.has_news, NEAR_THE_END)),
    ]
    for index, plan in plans:
        assert f"idx_webdata_inbox_delivery_{index}" in plan, plan
        assert "Seq Scan on webdata_inbox_delivery" not in plan, plan
