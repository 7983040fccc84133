"""The provider's tasks in Airflow's tables: waits, started jobs, and results."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.asset import AssetEvent, AssetWatcherModel
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import String, and_, cast, func, select

from airflow_provider_webdata.states.jobs import ALL_JOB_KINDS, name_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sqlalchemy.orm import Session

WAITS_SHOWN = 50
"""Trigger arguments are encrypted: no more are decrypted for one page."""

_TRIGGERS = "airflow_provider_webdata.triggers."
_KINDS = {f"WebData{kind.title().replace('_', '')}Operator": kind for kind in ALL_JOB_KINDS}
_IDS = ("job_id", "monitor_id", "check_id")
_NOTES = ("explanation", "recording")
_LONGEST_RESULT = 2**16
_MOST_EVENTS = 200
_EVENT_DELAY = timedelta(hours=1)
"""For how long after a delivery the asset event that it made is looked for."""


class TaskName(NamedTuple):
    """A task instance, as Airflow names it."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


@dataclass(frozen=True)
class Wait:
    """The event that a deferred task waits for.

    :param task: the task.
    :param conn_id: its connection.
    :param what: as text.
    :param how: as text.
    :param since: when the wait began.
    :param until: deadline of the wait; None: Airflow's timeout applies.
    :param given: the trigger's arguments.
    """

    task: TaskName
    conn_id: str
    what: str
    how: str
    since: datetime
    until: datetime | None
    given: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class TaskFacts:
    """A task of the provider, or of something else.

    :param name: the task.
    :param state: Airflow's.
    :param operator: name of its class.
    :param conn_id: its connection; None: it is no task of the provider.
    :param operation: the kind of its job, if it has one.
    :param ids: `job_id`, `monitor_id` and `check_id`, as far as it has them.
    :param wait: what it waits for now.
    :param result: what it returned, where that is small.
    :param explanation: the service's answer to why its job failed.
    :param recording: the folder with the recording of its browser session.
    """

    name: TaskName
    state: str | None
    operator: str | None
    conn_id: str | None = None
    operation: str | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    wait: Wait | None = None
    result: Any = field(default=None, repr=False)
    explanation: str | None = field(default=None, repr=False)
    recording: str | None = None


def waiting_dags() -> dict[str, int]:
    """Return how many tasks of each DAG wait for the service now."""
    statement = (
        select(TaskInstance.dag_id, func.count())
        .join(Trigger, Trigger.id == TaskInstance.trigger_id)
        .where(Trigger.classpath.startswith(_TRIGGERS, autoescape=True))
        .group_by(TaskInstance.dag_id)
    )
    with create_session() as session:
        return dict(session.execute(statement).tuples().all())


def waits(dag_ids: Collection[str], offset: int = 0) -> list[Wait]:
    """Return what tasks wait for, the longest wait first."""
    statement = (
        _waiting()
        .where(TaskInstance.dag_id.in_(dag_ids))
        .order_by(Trigger.created_date, Trigger.id)
        .limit(WAITS_SHOWN)
        .offset(offset)
    )
    with create_session() as session:
        return _waits(session, statement)


def facts_of(name: TaskName) -> TaskFacts | None:
    """Return what is known of a task, None where there is no such task."""
    with create_session() as session:
        row = session.execute(
            select(TaskInstance.state, TaskInstance.operator).where(*_is(TaskInstance, name))
        ).first()
        return None if row is None else _facts(session, name, row.state, row.operator)


def facts_of_run(dag_id: str, run_id: str, most: int) -> list[TaskFacts]:
    """Return the provider's tasks of a DAG run, in the order in which they started."""
    with create_session() as session:
        rows = session.execute(
            select(*_name_columns(TaskInstance), TaskInstance.state, TaskInstance.operator)
            .join(RenderedTaskInstanceFields, _its_rendered_fields())
            .where(TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
            .where(_rendered_text().contains('"webdata_conn_id"'))
            .order_by(TaskInstance.start_date, TaskInstance.task_id, TaskInstance.map_index)
            .limit(most)
        ).all()
        return [_facts(session, TaskName(*row[:4]), row.state, row.operator) for row in rows]


def starters_of(job_ids: Collection[str]) -> dict[str, TaskName]:
    """Return the tasks that pushed the ids of these jobs."""
    text = cast(XComModel.value, String)
    statement = select(*_name_columns(XComModel), text.label("text")).where(
        XComModel.key == "job_id", text.in_(texts := _stored_texts(job_ids))
    )
    with create_session() as session:
        return {texts[row.text]: TaskName(*row[:4]) for row in session.execute(statement)}


def dags_that_pushed(key: str, ids: Collection[str]) -> dict[str, set[str]]:
    """Return the DAGs whose tasks pushed ids to XCom, by id.

    :param key: of the XCom, such as `job_id`.
    """
    text = cast(XComModel.value, String)
    statement = (
        select(text.label("text"), XComModel.dag_id)
        .where(XComModel.key == key, text.in_(texts := _stored_texts(ids)))
        .distinct()
    )
    found: dict[str, set[str]] = {}
    if ids:
        with create_session() as session:
            for row in session.execute(statement):
                found.setdefault(texts[row.text], set()).add(row.dag_id)
    return found


def _stored_texts(ids: Collection[str]) -> dict[str, str]:
    """Return the ids by each text that an XCom may have in the database: JSON, or JSON of JSON."""
    return {text: one for one in ids for text in (json.dumps(one), json.dumps(json.dumps(one)))}


def runs_started_by(delivery_id: int, job_id: str | None, received_at: datetime) -> list[tuple[str, str]]:
    """Return DAG and run of what the asset events of a delivery started."""
    with create_session() as session:
        asset_ids = session.scalars(
            select(AssetWatcherModel.asset_id)
            .join(Trigger, Trigger.id == AssetWatcherModel.trigger_id)
            .where(Trigger.classpath.startswith(f"{_TRIGGERS}events.", autoescape=True))
        ).all()
        if not asset_ids:
            return []
        events = session.scalars(
            select(AssetEvent)
            .where(
                AssetEvent.asset_id.in_(asset_ids),
                AssetEvent.timestamp >= received_at,
                AssetEvent.timestamp <= received_at + _EVENT_DELAY,
            )
            .order_by(AssetEvent.timestamp)
            .limit(_MOST_EVENTS)
        ).all()
        return [
            (run.dag_id, run.run_id)
            for event in events
            if _is_of(event.extra, delivery_id, job_id)
            for run in event.created_dagruns
        ]


def _is_of(extra: Any, delivery_id: int, job_id: str | None) -> bool:
    payload = extra.get("payload") if isinstance(extra, dict) else None
    if not isinstance(payload, dict):
        return False
    return payload.get("delivery_id") == delivery_id or (
        job_id is not None and payload.get("check_id") == job_id
    )


def _waiting() -> Any:
    return (
        select(*_name_columns(TaskInstance), TaskInstance.trigger_timeout, Trigger)
        .join(Trigger, Trigger.id == TaskInstance.trigger_id)
        .where(Trigger.classpath.startswith(_TRIGGERS, autoescape=True))
    )


def _waits(session: Session, statement: Any) -> list[Wait]:
    return [_wait(TaskName(*row[:4]), row.Trigger, row.trigger_timeout) for row in session.execute(statement)]


def _wait(task: TaskName, trigger: Trigger, timeout: datetime | None) -> Wait:
    try:
        given = dict(trigger.kwargs)
    except Exception:  # noqa: BLE001
        # Encrypted with another key.
        given = {}
    until = timeout
    # Not a number, or one beyond the calendar.
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError, OSError):
        until = datetime.fromtimestamp(given["deadline"], timezone.utc)
    conn_id = str(given.get("webdata_conn_id", "unknown"))
    return Wait(
        task, conn_id, _what(trigger.classpath, given), _how(given), trigger.created_date, until, given
    )


def _what(classpath: str, given: Mapping[str, Any]) -> str:
    if not given:
        return "unknown: its arguments cannot be decrypted"
    if kind := given.get("kind"):
        return f"{name_of(kind) if kind in ALL_JOB_KINDS else kind} {given.get('job_id')}"
    if "criteria" in given:
        check = f"check {given['check_id']}" if given.get("check_id") else "the next check"
        return f"{check} of monitor {given.get('monitor_id')}"
    if classpath.endswith(".ResumeTrigger"):
        return "the moment that the service named for the result"
    names = {"key": "key", "job_id": "job", "monitor_id": "monitor", "events": "events"}
    limits = [f"{word} {_joined(given[name])}" for name, word in names.items() if given.get(name)]
    return f"a delivery ({', '.join(limits) or 'any'})"


def _how(given: Mapping[str, Any]) -> str:
    policy = given.get("policy")
    if not isinstance(policy, dict):
        return "by time" if "when" in given else "by webhook"
    wait_by, poll, safety = (policy.get(name) for name in ("wait_by", "poll_interval", "safety_poll"))
    if wait_by == "polling" or (wait_by == "auto" and given.get("reports") is False):
        return f"by polling every {poll:g} s" if isinstance(poll, (int, float)) else "by polling"
    webhook = f"by webhook, polling every {safety:g} s in case one is lost" if safety else "by webhook"
    return webhook if wait_by == "webhook" else f"{webhook}; by polling every {poll:g} s without one"


def _joined(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _facts(session: Session, name: TaskName, state: str | None, operator: str | None) -> TaskFacts:
    waiting = _waits(session, _waiting().where(*_is(TaskInstance, name)))
    rendered = _rendered(session, name)
    conn_id = rendered.get("webdata_conn_id")
    if conn_id is None and waiting:
        conn_id = waiting[0].conn_id
    if conn_id is None:
        return TaskFacts(name, state, operator)
    given = waiting[0].given if waiting else {}
    pushed = _pushed(session, name)
    notes = {key: pushed.pop(key, None) for key in _NOTES}
    kind = given.get("kind") or _KINDS.get(operator or "") or rendered.get("kind")
    found = {
        **{key: rendered[key] for key in _IDS if isinstance(rendered.get(key), str)},
        **pushed,
        **{key: given[key] for key in _IDS if isinstance(given.get(key), str)},
    }
    return TaskFacts(
        name,
        state,
        operator,
        str(conn_id),
        kind if kind in ALL_JOB_KINDS else None,
        {key: value for key, value in found.items() if value},
        waiting[0] if waiting else None,
        _result(session, name),
        **notes,
    )


def _rendered(session: Session, name: TaskName) -> dict[str, Any]:
    fields = session.scalar(
        select(RenderedTaskInstanceFields.rendered_fields)
        .join(TaskInstance, _its_rendered_fields())
        .where(*_is(TaskInstance, name))
    )
    return fields if isinstance(fields, dict) else {}


def _rendered_text() -> Any:
    return cast(RenderedTaskInstanceFields.rendered_fields, String)


def _pushed(session: Session, name: TaskName) -> dict[str, str]:
    keys = (*_IDS, *_NOTES)
    rows = session.execute(
        select(XComModel.key, XComModel.value).where(*_is(XComModel, name), XComModel.key.in_(keys))
    )
    pushed = {key: _decoded(value) for key, value in rows}
    return {key: value for key, value in pushed.items() if isinstance(value, str)}


def _result(session: Session, name: TaskName) -> Any:
    text = cast(XComModel.value, String)
    found = session.scalar(
        select(text).where(
            *_is(XComModel, name), XComModel.key == "return_value", func.length(text) <= _LONGEST_RESULT
        )
    )
    return None if found is None else _decoded(found)


def _decoded(value: Any) -> Any:
    # As JSON text in the database's JSON, or as the value itself.
    while isinstance(value, str):
        decoded = value
        with contextlib.suppress(ValueError):
            decoded = json.loads(value)
        if decoded == value:
            break
        value = decoded
    return value


def _name_columns(table: Any) -> list[Any]:
    return [getattr(table, part) for part in TaskName._fields]


def _is(table: Any, name: Iterable[Any]) -> list[Any]:
    return [column == part for column, part in zip(_name_columns(table), name, strict=True)]


def _its_rendered_fields() -> Any:
    table = RenderedTaskInstanceFields
    # From Airflow 3.4 on each attempt has its own.
    if hasattr(table, "task_instance_id"):
        return table.task_instance_id == TaskInstance.id
    return and_(*_is(table, _name_columns(TaskInstance)))
