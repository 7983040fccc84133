# SPDX-License-Identifier: Apache-2.0
"""Asset events of completed checks and jobs: each starts the DAGs scheduled on it once, whoever registers it."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from airflow.assets import manager
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.asset import AssetDagRunQueue, AssetEvent
from airflow.models.base import Base
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.trigger import Trigger
from airflow.sdk import DAG, Asset, AssetAlias, AssetWatcher
from airflow.triggers.base import TriggerEvent
from airflow.utils.db import synchronize_log_template
from airflow.utils.sqlalchemy import prohibit_commit
from sqlalchemy import delete, event, func, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.errors import ContendedError
from airflow_provider_webdata.assets.job import job_asset
from airflow_provider_webdata.assets.monitor import monitor_asset
from airflow_provider_webdata.common.job_kinds import DELIVERED_KINDS
from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES
from airflow_provider_webdata.inbox_server.storage import asset_events
from airflow_provider_webdata.inbox_server.storage.asset_events import AssetEvents
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.inbox_server.storage.retention import prune_all
from airflow_provider_webdata.inbox_server.storage.tables import asset_event, delivery
from airflow_provider_webdata.triggers.events import WebDataMonitorCheckEventTrigger
from tests.support.waiting import wait_until
from tests.support.warm import Warm, airflow_environ

from .conftest import Database

CONN = "webdata_default"
MONITOR = "6f2b1a34-0c5d-4e8f-9a7b-1d2e3f405162"
OTHER = "00000000-0000-4000-8000-000000000002"
NAME = "Prices at Bean & Kettle"
SUMMARY = {"same": 3, "changed": 1, "new": 0, "removed": 0, "error": 0, "totalPages": 4}


def completed(check: str, monitor: str = MONITOR, *, conn_id: str = CONN, **envelope: Any) -> NewDelivery:
    """Return the delivery of a completed check; each has its own event id."""
    body = {
        "success": True,
        "type": "monitor.check.completed",
        "id": check,
        "webhookId": str(uuid.uuid4()),
        "data": [{"monitorId": monitor, "checkId": check, "status": "completed", "summary": SUMMARY}],
        **envelope,
    }
    return NewDelivery.from_body(conn_id, "k", json.dumps(body).encode(), datetime.now(timezone.utc))


def completed_job(kind: str, job: str, **envelope: Any) -> NewDelivery:
    """Return the delivery of a completed job."""
    body = {
        "success": True,
        "type": f"{kind}.completed",
        "id": job,
        "webhookId": str(uuid.uuid4()),
        "data": [],
        **envelope,
    }
    return NewDelivery.from_body(CONN, "k", json.dumps(body).encode(), datetime.now(timezone.utc))


def _id_of(extra: dict[str, Any]) -> str:
    payload = extra["payload"]
    return str(payload.get("check_id") or payload["job_id"])


class Airflow:
    """Airflow's tables beside the inbox's, and its DAGs."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.engine = database.engine()
        self.store = database.store()
        Base.metadata.create_all(self.engine)
        with Session(self.engine) as session:
            session.add(DagBundleModel(name="tests"))
            synchronize_log_template(session=session)
            session.commit()

    def schedule(self, *assets: Asset | list[Asset], paused: bool = False) -> None:
        """Store a serialized DAG for each asset or list of assets, as the DAG processor does."""
        from airflow.serialization.definitions.dag import SerializedDAG
        from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG

        dags = [
            DAG(
                f"on_{number}",
                schedule=asset if isinstance(asset, list) else [asset],
                is_paused_upon_creation=paused,
            )
            for number, asset in enumerate(assets)
        ]
        lazy = [LazyDeserializedDAG(data=DagSerialization.to_dict(dag)) for dag in dags]
        # Airflow adds watchers only to assets that it knows from an earlier parse.
        for _ in range(2):
            with Session(self.engine) as session:
                SerializedDAG.bulk_write_to_db("tests", None, lazy, session=session)
                for dag in lazy:
                    SerializedDagModel.write_dag(dag, "tests", session=session)
                session.commit()

    def events(self) -> AssetEvents:
        """Return what a server runs."""
        return AssetEvents(self.database.engine(), self.database.store())

    def checks(self) -> list[str]:
        """Return the check of each asset event, oldest first."""
        return [_id_of(extra) for extra in self.extras()]

    def extras(self) -> list[dict[str, Any]]:
        with Session(self.engine) as session:
            return list(session.scalars(select(AssetEvent.extra).order_by(AssetEvent.id)))

    def queued(self) -> set[str]:
        """Return the DAGs that the scheduler will start."""
        with Session(self.engine) as session:
            return set(session.scalars(select(AssetDagRunQueue.target_dag_id)))

    def burst(self) -> list[str]:
        """Return the ids of many checks; of few where a commit is slow."""
        return [f"c-{number}" for number in range(50 if self.database.kind == "sqlite" else 5)]

    def create_runs(self) -> None:
        """Create the runs that the scheduler creates in one loop, which end at once."""
        from airflow.serialization.serialized_objects import DagSerialization

        # The scheduler reads DAGs without their links, and leaves that to all that the process reads later.
        kept = patch.object(DagSerialization, "_load_operator_extra_links", True, create=True)
        with kept, Session(self.engine) as session, prohibit_commit(session) as guard:
            self._scheduler._create_dagruns_for_dags(guard, session)
        self.execute(update(DagRun).values(state="success"))

    def run_all(self, events: AssetEvents) -> None:
        """Register events and create runs in turn until neither does anything."""
        before = None
        while before != (before := self._counts()):
            events.register()
            self.create_runs()

    @cached_property
    def _scheduler(self) -> SchedulerJobRunner:
        return SchedulerJobRunner(job=Job(), executors=[])

    def _counts(self) -> list[int]:
        with Session(self.engine) as session:
            return [
                session.scalar(select(func.count()).select_from(table)) or 0 for table in (AssetEvent, DagRun)
            ]

    def runs(self, dag_id: str = "on_0") -> list[list[str]]:
        """Return the checks or jobs of each run of a DAG, oldest run first."""
        with Session(self.engine) as session:
            runs = session.scalars(select(DagRun).where(DagRun.dag_id == dag_id).order_by(DagRun.id))
            return [[_id_of(found.extra) for found in run.consumed_asset_events] for run in runs]

    def execute(self, statement: Any) -> None:
        with self.engine.begin() as connection:
            connection.execute(statement)


@pytest.fixture
def airflow(database: Database) -> Airflow:
    return Airflow(database)


@pytest.fixture
def sqlite_airflow(sqlite_database: Database) -> Airflow:
    return Airflow(sqlite_database)


@pytest.fixture
def statements() -> Iterator[Callable[[AssetEvents], list[str]]]:
    """Record the statements that a server executes from now on."""

    def record(events: AssetEvents) -> list[str]:
        seen: list[str] = []
        event.listen(
            events._engine, "before_cursor_execute", lambda *args: seen.append(args[2]), propagate=True
        )
        return seen

    return record


@pytest.mark.rule("event-check-completed", "event-check-completed-data")
def test_one_event_for_each_check(airflow: Airflow) -> None:
    airflow.schedule(monitor_asset(MONITOR))
    first = completed("c-1")
    # The service repeats a delivery, and sends another event of the same check.
    assert airflow.store.add([first, first]) == [True, False]
    events = airflow.events()
    airflow.run_all(events)
    airflow.store.add([completed("c-1"), completed("c-2"), completed("c-3", OTHER)])
    airflow.store.add([completed("c-4", conn_id="other")])
    events.register()
    airflow.events().register()

    assert airflow.checks() == ["c-1", "c-2"]
    assert airflow.queued() == {"on_0"}
    assert airflow.extras()[0]["payload"] == {
        "conn_id": CONN,
        "monitor_id": MONITOR,
        "check_id": "c-1",
        "check_status": "completed",
        "summary": SUMMARY,
        "via": "webhook",
        "delivery_id": 1,
        "page_url": f"/webdata-ui/monitors/monitor?conn_id={CONN}&monitor_id={MONITOR}&check_id=c-1",
    }


def test_the_asset_names_the_monitor(sqlite_airflow: Airflow) -> None:
    """By id and by name: deliveries of managed webhooks tell the name."""
    sqlite_airflow.schedule(monitor_asset(NAME), monitor_asset(MONITOR))
    sqlite_airflow.store.add(
        [
            completed("both", metadata={"dag_id": "d", "monitor": NAME}),
            completed("by name", OTHER, metadata={"monitor": NAME}),
            completed("by id", metadata={"monitor": "another"}),
            completed("neither", OTHER, metadata={"monitor": " "}),
            completed("nor", OTHER, metadata="text"),
        ]
    )
    sqlite_airflow.run_all(sqlite_airflow.events())
    assert sqlite_airflow.runs("on_0") == [["both"], ["by name"]]
    assert sqlite_airflow.runs("on_1") == [["both"], ["by id"]]


def test_the_longest_name_of_a_monitor(airflow: Airflow) -> None:
    name = "x" * 256
    airflow.schedule(monitor_asset(name))
    airflow.store.add([completed("c-1", metadata={"monitor": name})])
    airflow.run_all(airflow.events())
    assert airflow.runs() == [["c-1"]]


def test_a_replay_repeats_no_event(sqlite_airflow: Airflow) -> None:
    sqlite_airflow.schedule(monitor_asset(MONITOR))
    sqlite_airflow.store.add([completed("c-1")])
    sqlite_airflow.events().register()
    sqlite_airflow.store.replay([1])
    sqlite_airflow.run_all(sqlite_airflow.events())
    assert sqlite_airflow.runs() == [["c-1"]]


def _watched() -> Asset:
    trigger = WebDataMonitorCheckEventTrigger(CONN, MONITOR)
    return monitor_asset(MONITOR, watchers=[AssetWatcher(name="checked", trigger=trigger)])


UNREGISTERED: dict[str, Callable[[Airflow], None]] = {
    "no DAG": lambda _: None,
    "a watcher": lambda airflow: airflow.schedule(_watched()),
    "a paused DAG": lambda airflow: airflow.schedule(monitor_asset(MONITOR), paused=True),
    "a removed DAG": lambda airflow: (
        airflow.schedule(monitor_asset(MONITOR)),
        airflow.execute(update(DagModel).values(is_stale=True)),
    )[0],
    "an inactive asset": lambda airflow: (
        airflow.schedule(monitor_asset(MONITOR)),
        airflow.execute(delete(Base.metadata.tables["asset_active"])),
    )[0],
}


@pytest.mark.parametrize("arrange", UNREGISTERED.values(), ids=UNREGISTERED)
def test_no_event_without_a_dag_that_waits_for_it(
    sqlite_airflow: Airflow, arrange: Callable[[Airflow], None]
) -> None:
    arrange(sqlite_airflow)
    sqlite_airflow.store.add([completed("before")])
    events = sqlite_airflow.events()
    events.register()
    assert sqlite_airflow.checks() == []

    # What was received until then starts no DAG that is scheduled later.
    sqlite_airflow.execute(update(DagModel).values(is_stale=False, is_paused=False))
    sqlite_airflow.schedule(Asset(monitor_asset(MONITOR).uri))
    sqlite_airflow.store.add([completed("after")])
    events.register()
    assert sqlite_airflow.checks() == ["after"]


def test_events_wait_for_a_dag_file_that_cannot_be_imported(airflow: Airflow) -> None:
    """Airflow then counts its DAGs as removed, and their assets as inactive."""
    airflow.schedule(monitor_asset(MONITOR))
    airflow.execute(update(DagModel).values(is_stale=True, has_import_errors=True))
    airflow.execute(delete(Base.metadata.tables["asset_active"]))
    airflow.store.add([completed("c-1"), completed("c-2")])
    events = airflow.events()
    airflow.run_all(events)
    assert airflow.checks() == []

    airflow.execute(update(DagModel).values(is_stale=False, has_import_errors=False))
    airflow.schedule(monitor_asset(MONITOR))
    airflow.run_all(events)
    assert airflow.runs() == [["c-1"], ["c-2"]]


def uncontended(action: Callable[[], Any]) -> None:
    while True:
        with contextlib.suppress(ContendedError):
            action()
            return


def test_two_servers_concurrently(airflow: Airflow) -> None:
    airflow.schedule(monitor_asset(MONITOR))
    checks = [f"c-{number}" for number in range(15)]
    servers = [airflow.events() for _ in range(3)]
    failures: list[BaseException] = []

    def serve(events: AssetEvents) -> None:
        try:
            for check in checks:
                # Each of them gets each delivery, in a copy that the inbox cannot recognize. Who waits too long for
                # a lock tries again, as senders and the thread do.
                uncontended(lambda check=check: events._store.add([completed(check)]))
                uncontended(events.register)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=serve, args=(events,)) for events in servers]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        uncontended(airflow.create_runs)
    assert failures == []
    airflow.run_all(airflow.events())
    assert sorted(airflow.runs()) == sorted([check] for check in checks)


DYING = """
import os, signal, sys
from sqlalchemy import create_engine
from airflow.assets import manager
from airflow.utils.orm_event_handlers import setup_event_handlers
from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES
from airflow_provider_webdata.inbox_server.storage import asset_events
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore

engine = create_engine(sys.argv[1])
setup_event_handlers(engine)
events = asset_events.AssetEvents(engine, DeliveryStore(engine))
register = manager.asset_manager.register_asset_change

def die(**arguments):
    register(**arguments)
    os.kill(os.getpid(), signal.SIGKILL)

manager.asset_manager.register_asset_change = die
events.register()
"""


def test_a_server_killed_between_the_delivery_and_the_event(
    airflow: Airflow, warm: Warm, tmp_path: Path
) -> None:
    airflow.schedule(monitor_asset(MONITOR))
    airflow.store.add([completed("c-1"), completed("c-2")])
    url = airflow.engine.url.render_as_string(hide_password=False)
    killed = warm.run(["-c", DYING, url], env=airflow_environ(tmp_path))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert airflow.checks() == []
    airflow.run_all(airflow.events())
    assert airflow.runs() == [["c-1"], ["c-2"]]


def test_a_failure_is_retried(
    sqlite_airflow: Airflow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(asset_events, "INTERVAL", 0.05)
    registered: list[str] = []
    register = manager.asset_manager.register_asset_change

    def fail_first(**arguments: Any) -> Any:
        registered.append(arguments["extra"]["payload"]["check_id"])
        if len(registered) < 3:
            raise OperationalError("INSERT", {}, sqlite3.OperationalError("database is locked"))
        return register(**arguments)

    monkeypatch.setattr(manager.asset_manager, "register_asset_change", fail_first)
    sqlite_airflow.schedule(monitor_asset(MONITOR))
    sqlite_airflow.store.add([completed("c-1")])
    events = sqlite_airflow.events()
    events.start()
    assert wait_until(lambda: sqlite_airflow.checks() == ["c-1"])
    assert wait_until(lambda: "again" in caplog.text)
    events.close()
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    words = (
        "Asset events of completed checks and jobs are delayed, and start no DAGs yet: the database is locked"
    )
    assert warnings == [f"{words} by another transaction (WD-050)"]


def test_an_event_that_cannot_be_registered_is_set_aside(
    sqlite_airflow: Airflow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others continue. A replay after the cause is fixed starts the DAG."""
    register = manager.asset_manager.register_asset_change

    def refuse(**arguments: Any) -> Any:
        found = register(**arguments)
        if arguments["extra"]["payload"]["check_id"] == "refused":
            raise RuntimeError("a listener's secret")
        return found

    sqlite_airflow.schedule(monitor_asset(MONITOR))
    sqlite_airflow.store.add([completed("refused"), completed("c-2"), completed(" ", " ")])
    with monkeypatch.context() as patch:
        patch.setattr(manager.asset_manager, "register_asset_change", refuse)
        sqlite_airflow.run_all(sqlite_airflow.events())
    assert sqlite_airflow.runs() == [["c-2"]]
    assert sqlite_airflow.store.without_event(CONN) == [1]
    [error] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert error.startswith(
        f"The completed check of monitor {MONITOR} refused of connection {CONN} starts no DAG: "
    )
    assert error.endswith("run `airflow webdata inbox replay 1`.")
    assert "secret" not in error

    sqlite_airflow.store.replay([1])
    sqlite_airflow.run_all(sqlite_airflow.events())
    assert sqlite_airflow.runs() == [["c-2"], ["refused"]]
    assert sqlite_airflow.store.without_event(CONN) == []


def test_an_event_without_scheduled_asset_blocks_no_later_one(
    sqlite_airflow: Airflow, statements: Callable[[AssetEvents], list[str]]
) -> None:
    """The events of a renamed monitor continue under the new name, and a server does not lock for the old ones."""

    def checked(*checks: str, name: str) -> None:
        sqlite_airflow.store.add([completed(check, metadata={"monitor": name}) for check in checks])
        sqlite_airflow.run_all(events)

    events = sqlite_airflow.events()
    old, new = monitor_asset("old"), monitor_asset("new")
    sqlite_airflow.schedule(old, new)
    sqlite_airflow.store.add([completed(f"old-{n}", metadata={"monitor": "old"}) for n in range(3)])
    events.register()
    sqlite_airflow.execute(update(DagModel).where(DagModel.dag_id == "on_0").values(is_paused=True))
    checked("new-0", "new-1", name="new")
    assert sqlite_airflow.runs("on_1") == [["new-0"], ["new-1"]]

    seen = statements(events)
    events.register()
    assert [statement for statement in seen if not statement.startswith("SELECT")] == []

    sqlite_airflow.execute(update(DagModel).values(is_paused=False))
    sqlite_airflow.run_all(events)
    assert sqlite_airflow.runs("on_0") == [["old-0"], ["old-1"], ["old-2"]]


def test_work_does_not_grow_with_the_queue(
    airflow: Airflow, statements: Callable[[AssetEvents], list[str]]
) -> None:
    """A queue of distinct monitors with one name delays no other monitor, and no body is read."""
    airflow.schedule(monitor_asset(NAME), monitor_asset(OTHER))
    events = airflow.events()

    def queue(count: int) -> None:
        monitors = [str(uuid.uuid4()) for _ in range(count)]
        named = {"metadata": {"monitor": NAME}}
        airflow.store.add([completed(f"of {monitor}", monitor, **named) for monitor in monitors])
        events.register()

    def start(check: str) -> list[str]:
        airflow.execute(delete(AssetDagRunQueue).where(AssetDagRunQueue.target_dag_id == "on_1"))
        airflow.store.add([completed(check, OTHER)])
        seen.clear()
        events.register()
        return list(seen)

    queue(3)
    seen = statements(events)
    few = start("o-1")
    queue(2 * asset_events.ROUND)
    many = start("o-2")
    assert many == few
    assert not any("delivery.body" in statement for statement in many)
    assert airflow.checks()[1:] == ["o-1", "o-2"]


def test_values_that_a_database_rejects_cost_no_event(airflow: Airflow) -> None:
    airflow.schedule(monitor_asset(MONITOR))
    body = completed("c-1").body.replace(b'"changed": 1', b'"changed": 1e999, "note": "a\\u0000b"')
    airflow.store.add([NewDelivery.from_body(CONN, "k", body, datetime.now(timezone.utc))])
    airflow.events().register()
    [extra] = airflow.extras()
    assert extra["payload"]["summary"] == {**SUMMARY, "changed": None, "note": "a\ufffdb"}


@pytest.mark.rule("event-monitor-page-data")
def test_the_asset_of_meaningful_checks(sqlite_airflow: Airflow) -> None:
    """Page deliveries tell the judgments. A check whose pages were not all delivered may be meaningful."""

    def page(check: str, number: int, *, is_meaningful: bool, status: str = "changed") -> NewDelivery:
        url = f"https://a.example/{number}"
        facts = {"url": url, "status": status, "isMeaningful": is_meaningful}
        data = {"monitorId": MONITOR, "checkId": check, **facts}
        return completed(check, type="monitor.page", data=data)

    def check(name: str, status: str = "completed", **counts: int) -> NewDelivery:
        data = {"monitorId": MONITOR, "checkId": name, "status": status, "summary": {**SUMMARY, **counts}}
        return completed(name, data=[data], metadata={"monitor": NAME})

    sqlite_airflow.schedule(
        monitor_asset(MONITOR, only_if_meaningful=True),
        monitor_asset(NAME, only_if_meaningful=True),
        monitor_asset(NAME),
    )
    sqlite_airflow.store.add([page("replayed page", 1, is_meaningful=False)])
    sqlite_airflow.store.replay([1])
    sqlite_airflow.store.add(
        [
            check("replayed page", changed=2),
            page("meaningful", 1, is_meaningful=True),
            page("meaningful", 2, is_meaningful=False, status="new"),
            check("meaningful", changed=1, new=1),
            page("noise", 1, is_meaningful=False),
            page("noise", 2, is_meaningful=True, status="same"),
            check("noise", changed=1),
            page("lost page", 1, is_meaningful=False),
            check("lost page", changed=1, new=1),
            check("no change", changed=0),
            check("failed", "failed", changed=1),
        ]
    )
    sqlite_airflow.run_all(sqlite_airflow.events())
    meaningful = [["replayed page"], ["meaningful"], ["lost page"]]
    assert sqlite_airflow.runs("on_0") == sqlite_airflow.runs("on_1") == meaningful
    names = ["replayed page", "meaningful", "noise", "lost page", "no change", "failed"]
    assert sqlite_airflow.runs("on_2") == [[name] for name in names]


def test_checks_that_nothing_judges(airflow: Airflow) -> None:
    airflow.schedule(monitor_asset(MONITOR, only_if_meaningful=True))
    airflow.store.add([completed("first")])
    airflow.events().register()
    assert asset_events.unjudged_assets(airflow.engine, CONN) == [MONITOR]
    facts = {"url": "https://a.example/", "status": "changed", "isMeaningful": True}
    page = {"monitorId": MONITOR, "checkId": "second", **facts}
    airflow.store.add([completed("second", type="monitor.page", data=page), completed("second")])
    airflow.events().register()
    assert asset_events.unjudged_assets(airflow.engine, CONN) == []


@pytest.mark.parametrize("bytes_of_rest", [0, INLINE_BODY_BYTES])
def test_facts_are_those_of_the_body_whatever_its_size(sqlite_airflow: Airflow, bytes_of_rest: int) -> None:
    sqlite_airflow.schedule(monitor_asset(NAME), job_asset("crawl"))
    labels = {"monitor": NAME, "rest": "x" * (bytes_of_rest // 2)}
    rest = {"rest": "x" * bytes_of_rest}
    sqlite_airflow.store.add(
        [
            completed("c-1", metadata=labels, **rest),
            completed_job("crawl", "j-1", metadata=labels, data=[{"creditsUsed": 7}], **rest),
        ]
    )
    sqlite_airflow.events().register()
    check, job = (extra["payload"] for extra in sqlite_airflow.extras())
    assert (check["check_status"], check["summary"]) == ("completed", SUMMARY)
    assert (job["credits_used"], job["metadata"]) == (7, labels)


@pytest.mark.rule("event-job-completed", "event-extract", "event-agent")
def test_one_event_for_each_completed_job(airflow: Airflow) -> None:
    airflow.schedule(*map(job_asset, DELIVERED_KINDS), job_asset("crawl", "other"))
    names = {"dag_id": "d", "task_id": "t"}
    airflow.store.add(
        [
            delivery
            for kind in DELIVERED_KINDS
            for delivery in (
                completed_job(kind, f"{kind}-1", metadata=names, data=[{"creditsUsed": 7, "data": "x"}]),
                # The service repeats the event with another id, and reports other events.
                completed_job(kind, f"{kind}-1"),
                completed_job(kind, f"{kind}-2"),
                completed_job(kind, f"{kind}-3", type=f"{kind}.failed", success=False),
                completed_job(kind, f"{kind}-4", type="completed"),
            )
        ]
    )
    airflow.run_all(airflow.events())
    assert {kind: airflow.runs(f"on_{number}") for number, kind in enumerate(DELIVERED_KINDS)} == {
        kind: [[f"{kind}-1"], [f"{kind}-2"]] for kind in DELIVERED_KINDS
    }
    assert airflow.runs("on_4") == []
    assert airflow.extras()[0]["payload"] == {
        "conn_id": CONN,
        "status": "done",
        "kind": "crawl",
        "job_id": "crawl-1",
        "job_status": "completed",
        "credits_used": 7,
        "metadata": names,
        "via": "webhook",
        "delivery_id": 1,
        "page_url": "/webdata-ui/inbox?id=1",
    }


def test_a_burst_has_one_run_for_each_check(airflow: Airflow) -> None:
    """Also while other DAGs wait for a second asset or an alias, and through a pause."""
    never = [Asset("never"), AssetAlias("never"), Asset.ref(name="never"), Asset.ref(uri="x://never")]
    airflow.schedule(monitor_asset(MONITOR), *([monitor_asset(MONITOR), other] for other in never))
    checks = airflow.burst()
    airflow.store.add([completed(check) for check in checks[:-2]])
    events = airflow.events()
    events.register()
    assert airflow.checks() == checks[:1]
    airflow.execute(update(DagModel).values(is_paused=True))
    events.register()
    airflow.execute(update(DagModel).values(is_paused=False))
    airflow.store.add([completed(check) for check in checks[-2:]])
    airflow.run_all(events)
    assert airflow.runs() == [[check] for check in checks]
    assert airflow.runs("on_1") == []


def test_each_check_of_a_burst_through_a_watcher_reaches_one_run(airflow: Airflow) -> None:
    """Airflow joins events of a burst. Those that it leaves behind are in the run for the next event."""
    airflow.schedule(_watched())
    checks = airflow.burst()
    with Session(airflow.engine) as session:
        (trigger_id,) = session.scalars(select(Trigger.id))
        for check in [*checks, "next"]:
            if check == "next":
                airflow.create_runs()
            Trigger.submit_event(trigger_id, TriggerEvent({"check_id": check}), session=session)
            session.commit()
    airflow.create_runs()
    assert [check for run in airflow.runs() for check in run] == [*checks, "next"]


def test_listeners_are_notified_after_the_commit(
    sqlite_airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(
        manager.AssetManager, "notify_asset_changed", lambda **_: seen.append(sqlite_airflow.checks())
    )
    sqlite_airflow.schedule(monitor_asset(MONITOR))
    sqlite_airflow.store.add([completed("c-1")])
    sqlite_airflow.events().register()
    assert seen == [["c-1"]]


def test_deliveries_that_start_no_dag_cost_no_query(
    sqlite_airflow: Airflow, statements: Callable[[AssetEvents], list[str]]
) -> None:
    sqlite_airflow.schedule(monitor_asset(MONITOR))
    events = sqlite_airflow.events()
    events.register()
    seen = statements(events)
    page = completed("c", type="monitor.page")
    for number in range(1000):
        events.notice([completed(f"c-{number}", OTHER), completed("c", conn_id="other"), page])
    assert not events._woken.is_set()
    assert seen == []
    events.notice([page, completed("c-1")])
    assert events._woken.is_set()


def test_the_set_of_scheduled_assets_is_read_again(
    sqlite_airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = sqlite_airflow.events()
    events.register()
    events.notice([completed("c-1")])
    assert not events._woken.is_set()
    monkeypatch.setattr(events, "_outdated_at", 0.0)
    events.notice([completed("c-1", type="monitor.page")])
    assert not events._woken.is_set()
    events.notice([completed("c-1")])
    assert events._woken.is_set()


def test_a_backlog_is_processed_in_rounds(sqlite_airflow: Airflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asset_events, "ROUND", 2)
    sqlite_airflow.schedule(monitor_asset(MONITOR))
    checks = [f"c-{number}" for number in range(5)]
    sqlite_airflow.store.add([completed(check) for check in checks])
    sqlite_airflow.run_all(sqlite_airflow.events())
    assert sqlite_airflow.runs() == [[check] for check in checks]


def test_registrations_are_bounded_and_pass_over_waiting_monitors(
    sqlite_airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitors = [str(uuid.UUID(int=number)) for number in range(7)]
    sqlite_airflow.schedule(*map(monitor_asset, monitors))
    events = sqlite_airflow.events()
    counts: list[int] = []
    event.listen(events._engine, "commit", lambda _: counts.append(len(sqlite_airflow.checks())))
    for _ in range(2):
        sqlite_airflow.store.add([completed(f"{uuid.uuid4()}", monitor) for monitor in monitors])
        events.register()
    # The first three still wait for their runs.
    ready = [f"on_{number}" for number in range(3, 7)]
    sqlite_airflow.execute(delete(AssetDagRunQueue).where(AssetDagRunQueue.target_dag_id.in_(ready)))
    monkeypatch.setattr(asset_events, "ROUND", 2)
    counts.clear()
    events.register()
    assert [*counts, len(sqlite_airflow.checks())] == [7, 9, 11, 11]


def test_an_event_whose_delivery_was_deleted_blocks_no_later_one(airflow: Airflow) -> None:
    airflow.schedule(monitor_asset(MONITOR))
    airflow.store.add([completed("c-1"), completed("c-2"), completed("c-3")])
    events = airflow.events()
    events.register()
    airflow.execute(delete(delivery).where(delivery.c.job_id == "c-2"))
    airflow.create_runs()
    rounds = iter(range(10))
    with patch.object(
        events, "_register_next", lambda: next(rounds) >= 0 and AssetEvents._register_next(events)
    ):
        airflow.run_all(events)
    assert airflow.runs() == [["c-1"], ["c-3"]]


def test_marks_are_pruned_with_their_deliveries(sqlite_airflow: Airflow) -> None:
    sqlite_airflow.schedule(monitor_asset(MONITOR))
    sqlite_airflow.store.add([completed("c-1")])
    sqlite_airflow.events().register()
    marks = select(asset_event.c.job_id)
    with sqlite_airflow.engine.connect() as connection:
        assert list(connection.scalars(marks)) == ["c-1"]
    prune_all(sqlite_airflow.store, datetime.now(timezone.utc) + timedelta(minutes=1))
    with sqlite_airflow.engine.connect() as connection:
        assert list(connection.scalars(marks)) == []
