# SPDX-License-Identifier: Apache-2.0
"""Facts of tasks: late waits, earlier runs, and the same statements on PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from airflow import settings
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.base import Base
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance, uuid7
from msgspec.structs import replace
from sqlalchemy import create_engine, insert, select, update
from sqlalchemy.orm import scoped_session, sessionmaker

from airflow_provider_webdata.airflow_db.spent import reporting_dags, runs_since, spent
from airflow_provider_webdata.airflow_db.tasks import (
    Happened,
    TaskName,
    past_xcoms,
    starters_of,
    waiting_dags,
)
from airflow_provider_webdata.airflow_db.troubled_tasks import troubled_tasks
from airflow_provider_webdata.airflow_db.woken import runs_started, task_states
from airflow_provider_webdata.states.credits import Credits, Entry
from airflow_provider_webdata.states.task_record import Started, TaskRecord
from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger
from airflow_provider_webdata.ui.pages.task import _description
from airflow_provider_webdata.ui.quality import KEYS, quality_of
from airflow_provider_webdata.ui.tasks import late_waits, summary_of
from tests.integration.commands.test_costs import database, told
from tests.support.airflow_rows import START, XCOMS, add_task, columns_of
from tests.support.airflow_versions import NEEDS_MEMORY
from tests.support.postgres import Postgres

__all__ = ["database"]

OURS = {"webdata_conn_id": "market"}


def add_wait(session: Any, dag_id: str, map_index: int, deadline: Any) -> None:
    """Add a mapped task that waits for a delivery."""
    trigger = WebDataWebhookTrigger("market", key=f"key-{map_index}", deadline=deadline).serialize()[1]
    add_task(
        *(session, dag_id, "wait"),
        operator="WebDataWebhookSensor",
        state="deferred",
        rendered=OURS,
        map_index=map_index,
        trigger=["webhook.WebDataWebhookTrigger", trigger],
    )


@pytest.mark.parametrize(
    ("attempt", "text"),
    [(1, "Sent the crawl"), (2, "Sent the crawl, or found that of an earlier attempt")],
)
def test_a_retry_may_have_found_its_job(attempt: int, text: str) -> None:
    summary: Any = SimpleNamespace(operation="crawl")
    assert _description(Happened(START, "sent", attempt), summary, resumed=False) == text


def test_the_reason_of_the_last_of_many_mapped_tasks(database: None) -> None:
    """XComs of the others, however many, do not displace it."""
    last, reason = 6000, {"message": "The page was not found"}
    with settings.Session() as session:
        add_task(session, "many", "take", operator="WebDataScrapeOperator", rendered=OURS, map_index=0)
        failed: dict[str, Any] = {"state": "failed", "rendered": OURS, "xcoms": {"failure": reason}}
        add_task(session, "many", "take", operator="WebDataScrapeOperator", map_index=last, **failed)
        run_id = session.scalar(select(DagRun.id).where(DagRun.dag_id == "many"))
        names = {"dag_id": "many", "run_id": "run", "task_id": "take"}
        pool = {"pool": "default_pool", "pool_slots": 1}
        pushed = {"key": "failure", "value": {}, "timestamp": START}
        instances, xcoms = [], []
        for index in range(1, last):
            instance = {**names, "id": uuid7(), "map_index": index, "region_index": index}
            instances.append(columns_of(TaskInstance.__table__, {**instance, **pool}))
            owner = {"task_instance_id": instance["id"], "dag_run_id": run_id}
            xcoms.append(columns_of(XCOMS, {**names, "map_index": index, **owner, **pushed}))
        session.execute(insert(TaskInstance.__table__), instances)
        session.execute(insert(XCOMS), xcoms)
        session.commit()
    (task,), _ = troubled_tasks(START, "incomplete", ("failure",), 9)
    assert task.stored.pushed == {"failure": reason}


def test_large_facts_of_earlier_runs_are_not_read(database: None) -> None:
    values = ({"items": 1}, {"items": 1, "failed": ["x" * 2**16]})
    with settings.Session() as session:
        for index, value in enumerate(values):
            add_task(session, "past", "t", operator="S", map_index=index, xcoms={"quality": value})
        session.commit()
    names = [TaskName("past", "run", "t", index) for index in range(len(values))]
    found = [past_xcoms(name, ("quality",), 9) for name in names]
    assert found == [[("run", {"quality": {"items": 1}})], []]


def test_a_task_is_compared_with_its_last_runs(database: None) -> None:
    """Each fact has its course, in the order of the runs, also where one was rejected or cleared later."""
    now = {"blocked": {"challenge": 2}, "coverage": {"json.price": 0.5}, "credits_per_item": 1.25}
    bounds = {"min_items": 15}
    runs: dict[str, dict[str, Any]] = {
        "manual__2026-01-03": {
            "quality": {"items": 30, **now, **bounds},
            "changes": {"new": 4, "changed": 0},
        },
        "manual__2026-01-01": {"quality": {"items": 10, "blocked": {}, "coverage": {"json.price": 1}}},
        "manual__2026-01-02": {"quality_rejected": {"items": 20, "coverage": {"json.price": 0.25}}},
    }
    with settings.Session() as session:
        for run_id, xcoms in runs.items():
            after = timedelta(days=int(run_id[-1]))
            add_task(session, "c", "t", operator="S", rendered=OURS, run_id=run_id, after=after, xcoms=xcoms)
        session.commit()
    facts = summary_of(TaskName("c", "manual__2026-01-03", "t"))
    assert facts is not None
    quality = quality_of(facts, lambda: past_xcoms(facts.name, KEYS, 30))
    assert quality is not None
    assert re.findall(r"<title>([^<]*)</title>", quality.chart) == [
        "2026-01-01: 10 items",
        "2026-01-02: 20 items",
        "2026-01-03: 30 items",
    ]
    # No condition failed.
    assert quality.least == 15
    assert quality.chart.count('<line class="limit"') == 1
    assert quality.has_rejected
    assert {one.name: one.value for one in quality.measurements} == {
        "Substitute pages": 2,
        "Credits per item": 1.25,
        "New": 4,
        "Changed": 0,
    }
    coverage = quality.coverage[0]
    assert (coverage.name, coverage.value) == ("json.price", 0.5)
    assert re.findall(r' height="([\d.]+)"/>', coverage.course) == ["20.0", "5.0", "10.0"]
    newest = quality_of(facts, lambda: past_xcoms(facts.name, KEYS, 1))
    assert newest is not None
    assert (newest.chart, newest.coverage[0].course) == ("", "")


@pytest.fixture
def on_postgresql(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    engine = create_engine(postgres.create_database(f"facts_{request.function.__name__}"[:60]))
    Base.metadata.create_all(engine)
    sessions = scoped_session(sessionmaker(engine, expire_on_commit=False))
    monkeypatch.setattr(settings, "engine", engine)
    monkeypatch.setattr(settings, "Session", sessions)
    yield
    sessions.remove()
    engine.dispose()


def test_late_waits(database: None) -> None:
    """A late wait is found among any number of others. Triggers and deadlines are as they are stored."""
    now = datetime.now(timezone.utc)
    with settings.Session() as session:
        for number in range(60):
            minutes = -30 if number == 59 else 30
            deadline = (now + timedelta(minutes=minutes)).timestamp()
            add_wait(session, "many", number, deadline)
        session.commit()
    (late,) = late_waits(["many"])
    assert (late.task.map_index, late.is_late, late.until) == (59, True, now - timedelta(minutes=30))
    assert late_waits(["other"]) == []


def check_started_runs() -> None:
    """Check that the run of a check is found among those of any number of later ones."""
    received = START - timedelta(hours=3)
    with settings.Session() as session:
        add_task(session, "on_check", "report", operator="PythonOperator")
        run = session.scalar(select(DagRun).where(DagRun.dag_id == "on_check"))
        for uri, run_of in (("webdata://market/monitors/m-1", run), ("s3://bucket/m-1", None)):
            asset = AssetModel(name=uri, uri=uri)
            session.add(asset)
            session.flush()
            event = AssetEvent(asset_id=asset.id, extra={"payload": {"check_id": "c-1"}}, timestamp=START)
            event.created_dagruns = [run_of] if run_of else []
            session.add(event)
        session.flush()
        later = START + timedelta(hours=1)
        assert event.asset_id
        others = [
            {"asset_id": event.asset_id - 1, "timestamp": later, "source_map_index": -1, "extra": extra}
            for extra in (
                {"payload": {"check_id": f"c-{number}", "delivery_id": number}} for number in range(9, 1099)
            )
        ]
        others[0]["extra"] = {"payload": "text"}
        session.execute(insert(AssetEvent.__table__), others)
        ids = session.scalars(select(AssetEvent.id).where(AssetEvent.timestamp == later))
        session.execute(
            insert(DagRun.consumed_asset_events.property.secondary),
            [{"dag_run_id": run.id, "event_id": one_id} for one_id in ids],
        )
        session.commit()
    found = runs_started(received, START, delivery_ids={1098})
    assert [(run.run_id, run.delivery_id) for run in found] == [("run", 1098)]
    assert [run[:3] for run in runs_started(received, received, check_ids={"c-1"})] == [
        ("on_check", "run", "queued")
    ]
    assert runs_started(received, received, check_ids={"c-2"}, delivery_ids={7}) == []


def test_runs_that_an_event_of_the_inbox_started(database: None) -> None:
    """The inbox registers it without a watcher, later if earlier events wait for their runs."""
    check_started_runs()


def test_runs_that_an_event_started_on_postgresql(on_postgresql: None) -> None:
    check_started_runs()


def of_killed() -> tuple[TaskRecord, TaskRecord]:
    """Return the records of a task whose job is known, and of one whose request had no answer."""
    lost = Credits(lost={"/crawl": Entry(round="0", reserved=5, unknown=1)})
    started = Started(kind="crawl", key="k", id="job-9", sent_at=START)
    settled = Entry(round="0", by_operation={"crawl": 3}, by_connection={"market": 3})
    known = TaskRecord(
        max_tries=0, phase="known", started=started, credits=Credits(settled={"crawl/job-9": settled})
    )
    requested = TaskRecord(max_tries=0, phase="requested", started=replace(started, id=None), credits=lost)
    return known, requested


def add_killed(session: Any) -> None:
    """Add tasks that a user has ended, one before a triggerer had its trigger; Airflow has deleted their XComs."""
    known, requested = of_killed()
    crawl: dict[str, Any] = {"operator": "WebDataCrawlOperator", "rendered": OURS}
    add_task(session, "killed", "known", state="failed", record=known, **crawl)
    add_task(session, "killed", "requested", state="failed", record=requested, **crawl)
    final = replace(known, is_final=True, phase="published")
    # What it has pushed, the record has, too.
    add_task(session, "killed", "final", record=final, xcoms={"credits": told(crawl=3)}, **crawl)
    session.commit()


def check_killed() -> None:
    since = START - timedelta(hours=1)
    sums = {one.key["task_id"]: (one.used, one.unknown) for one in spent("task", since, dag_ids=["killed"])}
    # Both tasks report one job.
    assert sums == {"known": (0, 0), "requested": (0, 1), "final": (3, 0)}
    assert reporting_dags(since) >= {"killed"}
    left = {}
    for task_id in ("known", "requested", "final"):
        summary = summary_of(TaskName("killed", "run", task_id))
        assert summary is not None
        left[task_id] = summary.left and summary.left.id
        assert summary.ids.get("job_id") == (None if task_id == "requested" else "job-9")
    assert left == {"known": "job-9", "requested": None, "final": None}


@NEEDS_MEMORY
def test_tasks_that_were_killed(database: None) -> None:
    with settings.Session() as session:
        add_killed(session)
    check_killed()


@NEEDS_MEMORY
def test_tasks_that_were_killed_on_postgresql(on_postgresql: None) -> None:
    with settings.Session() as session:
        add_killed(session)
    check_killed()


def test_statements_on_postgresql(on_postgresql: None) -> None:
    """Its JSON has no text of its own, and it compares no value with one of another type."""
    lacks = [{"kind": "no_results", "number": 3, "of": 3}]
    with settings.Session() as session:

        def add(task_id: str, state: str, run_id: str = "run", minutes: int = 0, **more: Any) -> None:
            add_task(
                session,
                "shop",
                task_id,
                operator="WebDataCrawlOperator",
                state=state,
                run_id=run_id,
                after=timedelta(minutes=minutes),
                **more,
            )

        add("crawl", "failed", rendered=OURS, xcoms={"failure": {"message": "gone"}, "job_id": "job-1"})
        add("mended", "failed")
        add("mended", "success", "later", 1, rendered=OURS)
        # The run of a later date has succeeded before: a backfill failed.
        add("backfill", "failed", "past", 9)
        add("backfill", "success", "present", 10, rendered=OURS)
        session.execute(
            update(TaskInstance)
            .where(TaskInstance.task_id == "backfill", TaskInstance.state == "success")
            .values(end_date=START + timedelta(minutes=13))
        )
        add("scrape", "success", rendered=OURS, xcoms={"incomplete": lacks, "credits": told(crawl=4)})
        add("other", "running", rendered=OURS, xcoms={"job_id": 5, "check_id": "check-1"})
        # Of another provider.
        add_task(session, "shop", "plain", operator="PythonOperator", state="failed", rendered={"a": OURS})
        session.commit()
    found, has_more = troubled_tasks(START, "incomplete", ("incomplete", "failure"), 10)
    assert not has_more
    assert {one.stored.name.task_id: (one.stored.pushed, one.has_recovered) for one in found} == {
        "crawl": ({"failure": {"message": "gone"}}, False),
        "mended": ({}, True),
        "backfill": ({}, False),
        "scrape": ({"incomplete": lacks}, False),
    }
    assert not troubled_tasks(START + timedelta(days=1), "incomplete", (), 10)[0]
    assert troubled_tasks(START, "incomplete", (), 1)[1]
    for earliest, used in ((START - timedelta(hours=1), 4), (START + timedelta(days=1), 0)):
        assert sum(one.used for one in spent("dag", earliest, dag_ids=["shop"])) == used
        assert reporting_dags(earliest) == ({"shop"} if used else set())
    assert reporting_dags(START - timedelta(hours=1), START - timedelta(minutes=30)) == set()
    assert runs_since(["shop", "none"], START) == {"shop": 4}
    assert runs_since(["shop"], START + timedelta(seconds=30)) == {"shop": 3}
    assert starters_of(["job-1", "job-2"]) == {"job-1": TaskName("shop", "run", "crawl")}
    assert starters_of(["job-1"], operator="WebDataAgentOperator") == {}
    assert starters_of(["check-1"], ("check_id",)) == {"check-1": TaskName("shop", "run", "other")}
    assert late_waits(["shop"]) == []
    assert runs_started(START, START, delivery_ids={1}, check_ids={"job-1"}) == []
    assert task_states([TaskName("shop", "run", "other"), TaskName("shop", "run", "none")]) == {
        TaskName("shop", "run", "other"): "running"
    }
    assert waiting_dags() == set()
