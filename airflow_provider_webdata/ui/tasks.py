"""The provider's tasks in Airflow's tables: waits, started jobs, and results."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from airflow.models.asset import AssetEvent, AssetWatcherModel
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from sqlalchemy import String, and_, cast, func, label, select

from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.costs.spent import stored_value
from airflow_provider_webdata.states.jobs import name_of
from airflow_provider_webdata.ui.previews import total

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sqlalchemy.orm import Session

    from airflow_provider_webdata.common.job_kinds import JobKind

WAITS_SHOWN = 50
"""Maximum number of waits on a page. The trigger arguments of each must be decrypted."""

_TRIGGERS = "airflow_provider_webdata.triggers."
_KINDS = {f"WebData{kind.title().replace('_', '')}Operator": kind for kind in ALL_JOB_KINDS}
_IDS = ("job_id", "monitor_id", "check_id")
_SUBJECTS = ("name", "query", "url", "prompt")
_UNDONE = ("notBegun", "overCreditLimit", "changes")
_FACTS = (
    *_IDS,
    *_UNDONE,
    *("credits", "creditsUsed", "path", "count", "bytes"),
    *("validation", "quality", "qualityRejected", "preview"),
)
"""Keys of the XComs that the pages show, in addition to the return value."""
_DIGITS = 10
_LONGEST_XCOM = 2**16
_LONGEST_OF_RUN = 2**13
_MOST_XCOMS = 5000
_MOST_HAPPENED = 100
_MOST_EVENTS = 200
_EVENT_DELAY = timedelta(hours=1)
"""Maximum delay between a delivery and its asset event."""


class TaskName(NamedTuple):
    """The key of a task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


def map_index_of(text: str) -> int:
    """Parse the index of a mapped task. Return -1 for other text."""
    return int(text) if text.isdecimal() and len(text) < _DIGITS else -1


@dataclass(frozen=True)
class Wait:
    """The event that a deferred task waits for.

    :param task: the task.
    :param conn_id: its connection.
    :param what: the event, as text.
    :param how: the way of waiting, such as `by webhook`.
    :param since: start of the wait.
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
    """A task instance, of this provider or any other.

    :param name: key of the task instance.
    :param state: Airflow's state.
    :param operator: class name of the operator.
    :param label: rendered `map_index_template` of a mapped task, or its index; empty if not mapped.
    :param started: start time; None before the start.
    :param ended: end time; None before the end.
    :param conn_id: connection of the task; None for tasks of other providers.
    :param operation: kind of the task's job, if any.
    :param ids: known ones of `job_id`, `monitor_id`, and `check_id`.
    :param subject: name, query, URL, or prompt in the task's arguments; empty if none.
    :param wait: current wait of the task, if any.
    :param pushed: small XComs of the task, by key.
    """

    name: TaskName
    state: str | None
    operator: str | None
    label: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    conn_id: str | None = None
    operation: JobKind | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    subject: str = ""
    wait: Wait | None = None
    pushed: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def credits(self) -> float | None:
        """Credits reported by the task."""
        credits = self.pushed.get("credits")
        used = credits.get("used") if isinstance(credits, dict) else self.fact("creditsUsed")
        return used if is_number(used) else None

    @property
    def count(self) -> float | None:
        """Number of results that the task reported or returned."""
        count = self.fact("count")
        if count is None:
            count = total(self.pushed.get("return_value"))
        return count if is_number(count) else None

    def fact(self, key: str) -> Any:
        """Return an XCom, else the value of that key in the return value, else None."""
        result = self.pushed.get("return_value")
        return self.pushed.get(key, result.get(key) if isinstance(result, dict) else None)


class Happened(NamedTuple):
    """An event in the life of a task.

    :param at: time of the event.
    :param event: one of Airflow's task states, or `sent`.
    :param attempt: number of the attempt, from 1.
    """

    at: datetime
    event: str
    attempt: int = 1


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def sum_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known values; None if none is known, or an integer is too large for a float."""
    known = [value for value in values if value is not None]
    try:
        return sum(known) if known else None
    except OverflowError:
        return None


def waiting_dags() -> dict[str, int]:
    """Return the number of tasks that wait for the service now, by DAG."""
    statement = (
        select(TaskInstance.dag_id, func.count())
        .join(Trigger, Trigger.id == TaskInstance.trigger_id)
        .where(Trigger.classpath.startswith(_TRIGGERS, autoescape=True))
        .group_by(TaskInstance.dag_id)
    )
    with create_session() as session:
        return dict(session.execute(statement).tuples().all())


def waits(dag_ids: Collection[str], offset: int = 0) -> list[Wait]:
    """Return a page of waits, the longest first."""
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
    """Return the facts of a task, or None if it does not exist."""
    with create_session() as session:
        row = session.execute(_tasks().where(*_is(TaskInstance, name))).first()
        if row is None:
            return None
        waiting = _waits(session, _waiting().where(*_is(TaskInstance, name)))
        keys = (*_FACTS, "return_value")
        pushed = _pushed(session, keys, *_is(XComModel, name))
        return _facts(row, waiting[0] if waiting else None, pushed.get(name, {}))


def facts_of_run(dag_id: str, run_id: str, most: int) -> list[TaskFacts]:
    """Return the provider's tasks of a DAG run in the order of their start, and mapped ones by index."""
    with create_session() as session:
        rows = session.execute(
            _tasks()
            .where(TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
            .where(cast(RenderedTaskInstanceFields.rendered_fields, String).contains('"webdata_conn_id"'))
            .order_by(TaskInstance.start_date, TaskInstance.task_id, TaskInstance.map_index)
            .limit(most)
        ).all()
        # In other tasks' fields, the text may be in a nested value.
        rows = [row for row in rows if _rendered(row).get("webdata_conn_id")]
        if not rows:
            return []
        waits = _waiting().where(TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
        waiting = {wait.task: wait for wait in _waits(session, waits.limit(WAITS_SHOWN))}
        names = [TaskName(*row[:4]) for row in rows]
        keys = (*_IDS, *_UNDONE, "credits", "creditsUsed", "count", "return_value")
        shown = (
            XComModel.dag_id == dag_id,
            XComModel.run_id == run_id,
            XComModel.task_id.in_({name.task_id for name in names}),
            XComModel.map_index.in_({name.map_index for name in names}),
        )
        pushed = _pushed(session, keys, *shown, longest=_LONGEST_OF_RUN)
        return [
            _facts(row, waiting.get(name), pushed.get(name, {}))
            for name, row in zip(names, rows, strict=True)
        ]


def happened_to(name: TaskName) -> list[Happened]:
    """Return the logged states of a task and the start of its job, oldest first."""
    with create_session() as session:
        logged = session.execute(
            select(Log.dttm, Log.event, Log.try_number)
            .where(*_is(Log, name), Log.event.in_([state.value for state in TaskInstanceState]))
            .order_by(Log.dttm.desc())
            .limit(_MOST_HAPPENED)
        ).all()
        sent = session.scalar(
            select(func.min(XComModel.timestamp)).where(
                *_is(XComModel, name), XComModel.key.in_(("job_id", "check_id"))
            )
        )
    found = [Happened(row.dttm, row.event, row.try_number or 1) for row in logged if row.dttm]
    if sent is not None:
        found.append(Happened(sent, "sent", max((one.attempt for one in found), default=1)))
    return sorted(found)


def past_facts(name: TaskName, keys: Collection[str], most: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the task's XComs in the DAG's newest runs, oldest run first.

    :param keys: keys of the XComs.
    :param most: maximum number of runs.
    """
    found: dict[str, dict[str, Any]] = {}
    with create_session() as session:
        rows = session.execute(
            select(XComModel.run_id, XComModel.key, XComModel.value)
            .join(XComModel.dag_run)
            .where(
                XComModel.dag_id == name.dag_id,
                XComModel.task_id == name.task_id,
                XComModel.map_index == name.map_index,
                XComModel.key.in_(keys),
                _xcom_length() <= _LONGEST_XCOM,
            )
            .order_by(DagRun.run_after.desc(), DagRun.id.desc())
            .limit(most * len(keys))
        )
        for row in rows:
            found.setdefault(row.run_id, {})[row.key] = _decoded(row.value)
    return list(found.items())[:most][::-1]


def starters_of(job_ids: Collection[str]) -> dict[str, TaskName]:
    """Return the tasks that pushed these job ids to XCom, by job id."""
    text = cast(XComModel.value, String)
    statement = select(*_name_columns(XComModel), text.label("text")).where(
        XComModel.key == "job_id", text.in_(texts := _stored_texts(job_ids))
    )
    with create_session() as session:
        return {texts[row.text]: TaskName(*row[:4]) for row in session.execute(statement)}


def dags_that_pushed(key: str, ids: Collection[str]) -> dict[str, set[str]]:
    """Return the DAGs whose tasks pushed these ids to XCom, by id.

    :param key: key of the XCom, such as `job_id`.
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
    """Return the ids by their possible texts in the database: JSON, or doubly encoded JSON."""
    return {text: one for one in ids for text in (json.dumps(one), json.dumps(json.dumps(one)))}


def runs_started_by(delivery_id: int, job_id: str | None, received_at: datetime) -> list[tuple[str, str]]:
    """Return DAG id and run id of the DAG runs that a delivery's asset events started."""
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
            if _concerns(event.extra, delivery_id, job_id)
            for run in event.created_dagruns
        ]


def _concerns(extra: Any, delivery_id: int, job_id: str | None) -> bool:
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
    # Not a number, or out of the range of datetime.
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
        return "the retry time that the service gave for the result"
    names = {"key": "key", "job_id": "job", "monitor_id": "monitor", "events": "events"}
    limits = [f"{word} {_joined(given[name])}" for name, word in names.items() if given.get(name)]
    return f"a delivery ({', '.join(limits) or 'any'})"


def _how(given: Mapping[str, Any]) -> str:
    policy = given.get("policy")
    if not isinstance(policy, dict):
        return "by time" if "when" in given else "by webhook"
    wait_by, poll, safety = (policy.get(name) for name in ("wait_by", "poll_interval", "safety_poll"))
    if wait_by == "polling" or (wait_by == "auto" and given.get("reports") is False):
        return f"by polling every {poll:g} s" if is_number(poll) else "by polling"
    webhook = (
        f"by webhook, polling at least every {safety:g} s in case one is lost" if safety else "by webhook"
    )
    return webhook if wait_by == "webhook" else f"{webhook}; without a webhook, by polling every {poll:g} s"


def _joined(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _tasks() -> Any:
    return select(
        *_name_columns(TaskInstance),
        TaskInstance.state,
        TaskInstance.operator,
        label("label", TaskInstance.rendered_map_index),
        TaskInstance.start_date,
        TaskInstance.end_date,
        RenderedTaskInstanceFields.rendered_fields,
    ).outerjoin(RenderedTaskInstanceFields, _its_rendered_fields())


def _rendered(row: Any) -> dict[str, Any]:
    return row.rendered_fields if isinstance(row.rendered_fields, dict) else {}


def _facts(row: Any, wait: Wait | None, pushed: Mapping[str, Any]) -> TaskFacts:
    name = TaskName(*row[:4])
    rendered = _rendered(row)
    conn_id = rendered.get("webdata_conn_id") or (wait.conn_id if wait else None)
    given = wait.given if wait else {}
    kind = given.get("kind") or _KINDS.get(row.operator or "") or rendered.get("kind")
    sources = (given, pushed, rendered)
    ids = {key: next((one[key] for one in sources if isinstance(one.get(key), str)), "") for key in _IDS}
    return TaskFacts(
        name,
        row.state,
        row.operator,
        str(name.map_index if row.label is None else row.label) if name.map_index >= 0 else "",
        row.start_date,
        row.end_date,
        conn_id=None if conn_id is None else str(conn_id),
        operation=kind if kind in ALL_JOB_KINDS else None,
        ids={key: value for key, value in ids.items() if value},
        subject=next((rendered[key] for key in _SUBJECTS if isinstance(rendered.get(key), str)), ""),
        wait=wait,
        pushed=pushed,
    )


def _pushed(
    session: Session, keys: Collection[str], *where: Any, longest: int = _LONGEST_XCOM
) -> dict[TaskName, dict[str, Any]]:
    """Return XComs of at most `longest` characters by task and key."""
    rows = session.execute(
        select(*_name_columns(XComModel), XComModel.key, XComModel.value)
        .where(*where, XComModel.key.in_(keys), _xcom_length() <= longest)
        .limit(_MOST_XCOMS)
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


def _name_columns(table: Any) -> list[Any]:
    return [getattr(table, part) for part in TaskName._fields]


def _is(table: Any, name: Iterable[Any]) -> list[Any]:
    return [column == part for column, part in zip(_name_columns(table), name, strict=True)]


def _its_rendered_fields() -> Any:
    table = RenderedTaskInstanceFields
    # Since Airflow 3.4, each attempt has its own rendered fields.
    if hasattr(table, "task_instance_id"):
        return table.task_instance_id == TaskInstance.id
    return and_(*_is(table, _name_columns(TaskInstance)))
