# SPDX-License-Identifier: Apache-2.0
"""This package's tasks in Airflow's tables: waits, arguments, XComs, and logged states."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from airflow.utils.state import TaskInstanceState
from sqlalchemy import String, and_, cast, func, label, or_, select, tuple_
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.records import record_of
from airflow_provider_webdata.airflow_db.spent import stored_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from airflow_provider_webdata.states.task_record import TaskRecord

_TRIGGERS = "airflow_provider_webdata.triggers."
OPERATOR_PREFIX = "WebData"
"""Prefix of the names of this package's operators. A load has no connection to the service, and a task whose templates
cannot be rendered has no rendered fields."""
_MAX_XCOM = 2**16
_MAX_HAPPENED = 100
STARTED = ("job_id", "check_id")
"""Keys of the XComs of a task that started a job or a check."""


class TaskName(NamedTuple):
    """The key of a task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


class StoredWait(NamedTuple):
    """A task that waits for one of this package's triggers.

    :param task: the task.
    :param classpath: path of the trigger.
    :param arguments: the trigger's arguments; empty if they cannot be decrypted.
    :param since: start of the wait.
    :param until: Airflow's timeout for the wait, if any.
    """

    task: TaskName
    classpath: str
    arguments: dict[str, Any]
    since: datetime
    until: datetime | None


class StoredTask(NamedTuple):
    """A task instance, of this package or any other.

    :param name: key of the task instance.
    :param state: Airflow's state.
    :param operator: class name of the operator.
    :param label: rendered `map_index_template` of a mapped task, if any.
    :param started: start time; None before the start.
    :param ended: end time; None before the end.
    :param arguments: rendered template fields.
    :param wait: current wait of the task, if any.
    :param pushed: small XComs of the task, by key.
    :param record: what the task remembers, if it was read.
    """

    name: TaskName
    state: str | None
    operator: str | None
    label: str | None
    started: datetime | None
    ended: datetime | None
    arguments: dict[str, Any]
    wait: StoredWait | None
    pushed: dict[str, Any]
    record: TaskRecord | None = None


class Happened(NamedTuple):
    """An event in the life of a task.

    :param at: time of the event.
    :param event: one of Airflow's task states, or `sent`.
    :param attempt: number of the attempt, from 1.
    """

    at: datetime
    event: str
    attempt: int = 1


def waiting_dags() -> set[str]:
    """Return the DAGs whose tasks wait for the service now, in a triggerer."""
    statement = (
        select(TaskInstance.dag_id)
        .join(Trigger, Trigger.id == TaskInstance.trigger_id)
        .where(Trigger.classpath.startswith(_TRIGGERS, autoescape=True))
        .distinct()
    )
    with Session(airflow_engine()) as session:
        return set(session.scalars(statement))


def waits_until(end: datetime, dag_ids: Collection[str], limit: int) -> list[StoredWait]:
    """Return waits of these DAGs that Airflow ends before a time, the first to end first, or never.

    The trigger arguments of each must be decrypted.
    """
    timeout = TaskInstance.trigger_timeout
    statement = (
        _waiting()
        .where(TaskInstance.dag_id.in_(dag_ids), or_(timeout < end, timeout.is_(None)))
        # Databases sort NULL first or last.
        .order_by(timeout.is_(None), timeout, Trigger.created_date, Trigger.id)
        .limit(limit)
    )
    with Session(airflow_engine()) as session:
        return _waits(session, statement)


def stored_task(name: TaskName, keys: Collection[str]) -> StoredTask | None:
    """Return a task instance with these XComs, or None if it does not exist."""
    with Session(airflow_engine()) as session:
        row = session.execute(task_rows().where(is_task(TaskInstance, name))).first()
        if row is None:
            return None
        waiting = _waits(session, _waiting().where(is_task(TaskInstance, name)))
        pushed = pushed_by(session, [name], keys)
        stored = stored_task_of(row, waiting[0] if waiting else None, pushed.get(name, {}))
    return stored._replace(record=record_of(name))


def happened_to(name: TaskName) -> list[Happened]:
    """Return the logged states of a task and the start of its job, oldest first."""
    with Session(airflow_engine()) as session:
        logged = session.execute(
            select(Log.dttm, Log.event, Log.try_number)
            .where(is_task(Log, name), Log.event.in_([state.value for state in TaskInstanceState]))
            .order_by(Log.dttm.desc())
            .limit(_MAX_HAPPENED)
        ).all()
        sent = session.scalar(
            select(func.min(XComModel.timestamp)).where(is_task(XComModel, name), XComModel.key.in_(STARTED))
        )
    found = [Happened(row.dttm, row.event, row.try_number or 1) for row in logged if row.dttm]
    if sent is not None:
        found.append(Happened(sent, "sent", max((one.attempt for one in found), default=1)))
    return sorted(found)


def past_xcoms(name: TaskName, keys: Collection[str], most: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the task's XComs in the DAG's latest runs up to the task's own, oldest run first.

    :param keys: keys of the XComs.
    :param most: maximum number of runs.
    """
    found: dict[str, dict[str, Any]] = {}
    own = select(DagRun.run_after).where(DagRun.dag_id == name.dag_id, DagRun.run_id == name.run_id)
    with Session(airflow_engine()) as session:
        rows = session.execute(
            select(XComModel.run_id, XComModel.key, XComModel.value)
            .join(XComModel.dag_run)
            .where(DagRun.run_after <= own.scalar_subquery())
            .where(
                XComModel.dag_id == name.dag_id,
                XComModel.task_id == name.task_id,
                XComModel.map_index == name.map_index,
                XComModel.key.in_(keys),
                _xcom_length() <= _MAX_XCOM,
            )
            .order_by(DagRun.run_after.desc(), DagRun.id.desc())
            .limit(most * len(keys))
        )
        for row in rows:
            found.setdefault(row.run_id, {})[row.key] = _decoded(row.value)
    return list(found.items())[:most][::-1]


def starters_of(
    job_ids: Collection[str], keys: Collection[str] = ("job_id",), operator: str | None = None
) -> dict[str, TaskName]:
    """Return the newest tasks that pushed these job ids to XCom, by job id.

    :param keys: keys of the XComs; `check_id` for tasks that started a check, `monitor_id` for those of a monitor.
    :param operator: class name of the tasks' operator. Default: any.
    """
    text = cast(XComModel.value, String)
    statement = (
        select(*name_columns(XComModel), text.label("text"))
        .where(XComModel.key.in_(keys), text.in_(texts := _stored_texts(job_ids)))
        .order_by(XComModel.timestamp)
    )
    if operator is not None:
        statement = statement.join(TaskInstance, is_task(TaskInstance, name_columns(XComModel))).where(
            TaskInstance.operator == operator
        )
    with Session(airflow_engine()) as session:
        return {texts[row.text]: TaskName(*row[:4]) for row in session.execute(statement)}


def _stored_texts(ids: Collection[str]) -> dict[str, str]:
    """Return the ids by their possible texts in the database: JSON, or doubly encoded JSON."""
    return {text: one for one in ids for text in (json.dumps(one), json.dumps(json.dumps(one)))}


def _waiting() -> Any:
    return (
        select(*name_columns(TaskInstance), TaskInstance.trigger_timeout, Trigger)
        .join(Trigger, Trigger.id == TaskInstance.trigger_id)
        .where(Trigger.classpath.startswith(_TRIGGERS, autoescape=True))
    )


def _waits(session: Session, statement: Any) -> list[StoredWait]:
    return [
        StoredWait(
            TaskName(*row[:4]),
            row.Trigger.classpath,
            _arguments(row.Trigger),
            row.Trigger.created_date,
            row.trigger_timeout,
        )
        for row in session.execute(statement)
    ]


def _arguments(trigger: Trigger) -> dict[str, Any]:
    try:
        return dict(trigger.kwargs)
    except Exception:  # noqa: BLE001
        # Encrypted with another key.
        return {}


def task_rows() -> Any:
    """Return the statement that selects task instances, of this package or any other."""
    return select(
        *name_columns(TaskInstance),
        TaskInstance.state,
        TaskInstance.operator,
        label("label", TaskInstance.rendered_map_index),
        TaskInstance.start_date,
        TaskInstance.end_date,
        RenderedTaskInstanceFields.rendered_fields,
    ).outerjoin(RenderedTaskInstanceFields, _its_rendered_fields())


def is_ours() -> Any:
    """Return the condition that a row of `task_rows` belongs to a task of this package."""
    return or_(
        cast(RenderedTaskInstanceFields.rendered_fields, String).contains('"webdata_conn_id"'),
        TaskInstance.operator.startswith(OPERATOR_PREFIX, autoescape=True),
    )


def is_row_of_ours(row: Any) -> bool:
    """Return whether a row that meets `is_ours`, which finds the text in nested values too, is of this package."""
    return bool(_rendered(row).get("webdata_conn_id")) or (row.operator or "").startswith(OPERATOR_PREFIX)


def _rendered(row: Any) -> dict[str, Any]:
    return row.rendered_fields if isinstance(row.rendered_fields, dict) else {}


def stored_task_of(row: Any, wait: StoredWait | None, pushed: dict[str, Any]) -> StoredTask:
    """Return the task of a row of `task_rows`."""
    name, times = TaskName(*row[:4]), (row.start_date, row.end_date)
    return StoredTask(name, row.state, row.operator, row.label, *times, _rendered(row), wait, pushed)


def pushed_by(
    session: Session, names: Collection[TaskName], keys: Collection[str]
) -> dict[TaskName, dict[str, Any]]:
    """Return small XComs by task and key."""
    # The sets let the database use its index; of a task with many map indexes, only the named ones are read.
    sets = (column.in_({name[at] for name in names}) for at, column in enumerate(name_columns(XComModel)))
    rows = session.execute(
        select(*name_columns(XComModel), XComModel.key, XComModel.value).where(
            *sets,
            tuple_(*name_columns(XComModel)).in_([*names]),
            XComModel.key.in_(keys),
            _xcom_length() <= _MAX_XCOM,
        )
    )
    pushed: dict[TaskName, dict[str, Any]] = {}
    for row in rows:
        value = _decoded(row.value)
        if row.key == "credits" and isinstance(value, str):
            # Without its credits, the page shows the rest.
            with contextlib.suppress(Exception):
                value = stored_value(row)
        pushed.setdefault(TaskName(*row[:4]), {})[row.key] = value
    return pushed


def _xcom_length() -> Any:
    return func.length(cast(XComModel.value, String))


def _decoded(value: Any) -> Any:
    # The database's JSON contains either the value or its JSON text.
    while isinstance(value, str):
        decoded = value
        with contextlib.suppress(ValueError):
            decoded = json.loads(value)
        if decoded == value:
            break
        value = decoded
    return value


def name_columns(table: Any) -> list[Any]:
    """Return the columns with the key of a task instance."""
    return [getattr(table, part) for part in TaskName._fields]


def is_task(table: Any, name: Iterable[Any]) -> Any:
    """Return the condition that a row belongs to a task instance.

    :param name: the parts of its key, which may be columns.
    """
    return and_(*(column == part for column, part in zip(name_columns(table), name, strict=True)))


def _its_rendered_fields() -> Any:
    table = RenderedTaskInstanceFields
    # Since Airflow 3.4, each attempt has its own rendered fields.
    if hasattr(table, "task_instance_id"):
        return table.task_instance_id == TaskInstance.id
    return is_task(table, name_columns(TaskInstance))
