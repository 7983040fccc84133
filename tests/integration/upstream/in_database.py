# SPDX-License-Identifier: Apache-2.0
"""Faults of Airflow that show in its database: each is reproduced once, by Airflow's own code.

A separate process, whose Airflow home comes from the environment. It prints what was seen as JSON, by the name of the
report: true if the fault is still there, or the text of an unexpected error.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

from airflow.api_fastapi.core_api.datamodels.connections import ConnectionBody
from airflow.api_fastapi.core_api.routes.public import connections
from airflow.assets.manager import asset_manager
from airflow.executors.base_executor import BaseExecutor
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.listeners import hookimpl
from airflow.listeners.listener import get_listener_manager
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.connection import Connection
from airflow.models.dag import DagModel
from airflow.models.dagbag import DBDagBag
from airflow.models.dagbundle import DagBundleModel
from airflow.models.log import Log
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.models.trigger import Trigger, handle_event_submit
from airflow.models.xcom import XComModel
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, BaseHook
from airflow.sdk.execution_time.supervisor import InProcessTestSupervisor
from airflow.serialization.serialized_objects import LazyDeserializedDAG
from airflow.triggers.base import TaskSuccessEvent, TriggerEvent
from airflow.utils import db
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from fastapi import HTTPException
from sqlalchemy import select, text

from airflow_provider_webdata.inbox_server.db_manager import InboxDBManager
from tests.support.triggerer import supervisor_of
from webdata_sandbox.testing.execution_api import keep_execution_api

NOW = datetime.now(timezone.utc)


class Instance:
    """A task instance in a DAG run of a DAG with one task.

    :ivar id: its first id; a clear gives it another.
    """

    def __init__(self, dag_id: str, **fields: Any) -> None:
        with DAG(dag_id, schedule=None) as dag:
            EmptyOperator(task_id="only", retries=0)
        with create_session() as session:
            session.add(DagBundleModel(name=dag_id))
        with create_session() as session:
            session.add(DagModel(dag_id=dag_id, bundle_name=dag_id, fileloc="none", relative_fileloc="none"))
            session.flush()
            SerializedDagModel.write_dag(
                LazyDeserializedDAG.from_dag(dag), bundle_name=dag_id, session=session
            )
        with create_session() as session:
            self._dag: Any = SerializedDagModel.get(dag_id, session=session).dag
            run = self._dag.create_dagrun(
                run_id="run",
                run_after=NOW,
                run_type=DagRunType.MANUAL,
                triggered_by=DagRunTriggeredByType.TEST,
                state=DagRunState.RUNNING,
                start_date=NOW,
                session=session,
            )
            session.flush()
            (instance,) = run.get_task_instances(session=session)
            for name, value in fields.items():
                setattr(instance, name, value)
            self.id = instance.id

    def now(self, session: Any) -> TaskInstance:
        """Return the row of a session."""
        found = session.scalars(select(TaskInstance).where(TaskInstance.dag_id == self._dag.dag_id)).one()
        found.task = self._dag.get_task("only")
        return found


def triggerer() -> Any:
    """Store a triggerer; return its supervisor, without the process that runs triggers."""
    with create_session() as session:
        job = Job(job_type="TriggererJob")
        session.add(job)
        session.flush()
        session.refresh(job)
        session.expunge(job)
    return supervisor_of(job)


def trigger(**fields: Any) -> int:
    """Store a trigger; return its id."""
    with create_session() as session:
        path = "airflow.providers.standard.triggers.temporal.DateTimeTrigger"
        row = Trigger(classpath=path, kwargs={"moment": NOW + timedelta(days=1)})
        for name, value in fields.items():
            setattr(row, name, value)
        session.add(row)
        session.flush()
        return int(row.id)


def clear_or_retry() -> bool:
    """A clear leaves the number of attempts, which `retries` lowers, and the task's state."""
    failed = Instance("clear_or_retry", state="failed", try_number=1, max_tries=1)
    with create_session() as session:
        clear_task_instances([failed.now(session)], session)
    with create_session() as session:
        return failed.now(session).max_tries == 1


def killed_before_its_trigger() -> bool:
    """A round of the triggerer deletes the trigger of an ended task that it has not loaded yet."""
    waiting = trigger()
    Instance("killed_before", state="failed", trigger_id=waiting)
    supervisor = triggerer()
    # The end of a round, and the beginning of the next.
    Trigger.clean_unused()
    supervisor.load_triggers()
    return waiting not in {*(one.id for one in supervisor.creating_triggers), *supervisor.cancelling_triggers}


def on_kill_after_takeover() -> bool:
    """A triggerer cancels, as for a user, the trigger that another one has taken over."""
    late, other = triggerer(), triggerer()
    waiting = trigger(triggerer_id=other.job.id)
    Instance("takeover", state="deferred", trigger_id=waiting)
    late.running_triggers.add(waiting)
    late.load_triggers()
    return waiting in late.cancelling_triggers


class LooksUp:
    """A trigger that looks up a connection."""

    async def run(self) -> Any:
        try:
            await BaseHook.aget_connection("stored")
        except Exception as error:
            blocking = await asyncio.to_thread(BaseHook.get_connection, "stored")
            yield TriggerEvent((type(error).__name__, blocking.host))
        else:
            yield TriggerEvent(("", ""))


def dags_test_connections() -> bool:
    """A trigger finds a connection in the database only by the blocking lookup."""
    with create_session() as session:
        session.add(Connection(conn_id="stored", conn_type="http", host="example.com"))
    waiting = Instance("dags_test")
    keep_execution_api()
    event = InProcessTestSupervisor.run_trigger_in_process(
        trigger=LooksUp(), ti=SimpleNamespace(id=waiting.id)
    )
    return list(event.payload) == ["AirflowNotFoundException", "example.com"]


def executor_of(instance: TaskInstance) -> BaseExecutor:
    """Return an executor whose worker of a task instance has ended, and which has no other work."""
    executor = BaseExecutor()
    executor.success(instance.key)
    # Airflow 3.4 knows the attempts that an executor has run by their ids.
    if (coordinates := getattr(executor, "_task_coordinates", None)) is not None:
        from airflow.executors.workloads.types import TaskInstanceUuid

        coordinates[TaskInstanceUuid(instance.id)] = instance.key
    return executor


def resumed_before_worker_exit() -> bool:
    """A task that is queued or runs again when its former worker ends is failed."""
    failed = []
    again = {
        "resumed": {"state": "queued", "next_method": "execute_complete"},
        "runs_again": {"state": "running"},
        "rescheduled": {"state": "queued"},
    }
    for name, fields in again.items():
        instance = Instance(name, queued_by_job_id=1, try_number=1, **fields)
        with create_session() as session:
            executor = executor_of(instance.now(session))
            given = {"executor": executor, "job_id": 1, "scheduler_dag_bag": DBDagBag(), "session": session}
            SchedulerJobRunner.process_executor_events(**given)
        with create_session() as session:
            logged = session.scalars(select(Log.event).where(Log.dag_id == name)).all()
            failed.append("state mismatch" in logged and instance.now(session).state == "failed")
    return any(failed)


class Allows:
    """An auth manager for a user who may read every connection."""

    def is_authorized_connection(self, **_: Any) -> bool:
        return True


def form_without_port() -> bool:
    """Test sends the port 0 for a connection without one, which is refused as another destination."""
    os.environ["AIRFLOW__CORE__TEST_CONNECTION"] = "Enabled"
    with create_session() as session:
        session.add(Connection(conn_id="no_port", conn_type="sqlite", host="/tmp/none.db", password="kept"))
    fields = {"host": "/tmp/none.db", "port": 0, "password": "***"}
    body = ConnectionBody(connection_id="no_port", conn_type="sqlite", **fields)
    parameters = inspect.signature(connections.test_connection).parameters
    given = {
        name: value for name, value in (("user", None), ("auth_manager", Allows())) if name in parameters
    }
    try:
        connections.test_connection(body, **given)
    except HTTPException as error:
        return error.status_code == 400 and "port" in str(error.detail)
    return False


def listeners_before_commit() -> bool:
    """A listener hears of an asset event that is rolled back."""
    heard = []

    class Listener:
        @hookimpl
        def on_asset_changed(self, asset: Any) -> None:
            heard.append(asset.uri)

    get_listener_manager().add_listener(Listener())
    with create_session() as session:
        asset = AssetModel(name="upstream", uri="upstream://asset", group="asset")
        session.add(asset)
        session.commit()
        sink: list[Callable[[], None]] = []
        asset_manager.register_asset_change(asset=asset, session=session, callback_sink=sink)
        session.rollback()
        assert not session.scalars(select(AssetEvent.id).where(AssetEvent.asset_id == asset.id)).all()
    return bool(heard)


def success_event_encodes_twice() -> bool:
    """The XCom of a task that its trigger ends is text in JSON, where a worker's is a value."""
    waiting = Instance("success_event", state="deferred")
    with create_session() as session:
        event = TaskSuccessEvent(xcoms={"answer": {"pages": 2}})
        handle_event_submit(event, task_instance=waiting.now(session), session=session)
    with create_session() as session:
        found = session.scalar(select(XComModel.value).where(XComModel.dag_id == "success_event"))
    return found == json.dumps({"pages": 2})


def check_migrations_names_no_manager() -> bool:
    """The error of `airflow db check-migrations` names Airflow's revisions only, which are equal."""
    with create_session() as session:
        session.execute(text(f"UPDATE {InboxDBManager.version_table_name} SET version_num = 'old'"))
    try:
        db.check_migrations(1)
    except TimeoutError as error:
        return "webdata" not in str(error).lower() and "InboxDBManager" not in str(error)
    return False


FAULTS: tuple[Callable[[], bool], ...] = (
    clear_or_retry,
    killed_before_its_trigger,
    on_kill_after_takeover,
    dags_test_connections,
    resumed_before_worker_exit,
    form_without_port,
    listeners_before_commit,
    success_event_encodes_twice,
    check_migrations_names_no_manager,
)


def seen(fault: Callable[[], bool]) -> bool | str:
    """Return whether a fault is still there, or the text of an unexpected error."""
    try:
        return fault()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    print("SEEN", json.dumps({fault.__name__: seen(fault) for fault in FAULTS}))
