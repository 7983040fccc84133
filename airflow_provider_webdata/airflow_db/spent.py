# SPDX-License-Identifier: Apache-2.0
"""Sums of the credits in the records of tasks, and in Airflow's XCom table."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError
from sqlalchemy import String, and_, cast, func, or_, select
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.records import records_between
from airflow_provider_webdata.common.xcom_keys import CREDITS
from airflow_provider_webdata.states.credits import Credits, report, restarted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import date

By = Literal["dag", "task", "month", "day"]

_KEYS: dict[By, tuple[str, ...]] = {
    "dag": ("dag_id",),
    "task": ("dag_id", "task_id"),
    "month": ("month",),
    "day": ("day",),
}
_AT_ONCE = 1000
_SHARED_WITHIN = timedelta(days=7)
"""Longest time between two tasks that report one job. The service deletes its results a day after its end."""


@dataclass
class Spent:
    """The credits of one DAG, task, month, or day.

    :param key: its ids, or its month or day of UTC in ISO 8601.
    :param used: credits.
    :param tasks: number of task instances that reported credits.
    :param unknown: calls whose cost the service did not report.
    """

    key: dict[str, str]
    used: float = 0
    tasks: int = 0
    unknown: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the row of the report, with the columns of `columns_of`."""
        # Sums of shares are inexact.
        used = round(float(self.used), 6)
        return {
            **self.key,
            "used": int(used) if used.is_integer() else used,
            "tasks": self.tasks,
            "unknown": self.unknown,
        }


def columns_of(by: By) -> tuple[str, ...]:
    """Return the columns of a report."""
    return (*_KEYS[by], "used", "tasks", "unknown")


def spent(
    by: By,
    since: datetime,
    until: datetime | None = None,
    *,
    dag_ids: Collection[str] | None = None,
    conn_id: str | None = None,
    unread: Counter[str] | None = None,
) -> list[Spent]:
    """Return the sums of the credits that tasks reported: months and days in order, others by credits, descending.

    :param since: only credits reported at or after this time.
    :param until: only credits reported before this time.
    :param dag_ids: only these DAGs; None: all.
    :param conn_id: only tasks that used this connection, with its part of their credits; None: all tasks.
    :param unread: counts the tasks whose credits cannot be read, by reason.
    """
    found: dict[tuple[str, ...], Spent] = {}
    for row, credits in _reported(dag_ids, since, until, unread):
        share = 1 if conn_id is None else _shares(credits).get(conn_id)
        if share is None:
            continue
        day = row.timestamp.astimezone(timezone.utc).date().isoformat()
        facts = {"dag_id": row.dag_id, "task_id": row.task_id, "month": day[:7], "day": day}
        key = {name: facts[name] for name in _KEYS[by]}
        one = found.setdefault(tuple(key.values()), Spent(key))
        one.used += credits["used"] * share
        one.tasks += 1
        # Calls are not divided among connections.
        one.unknown += credits["unknown"] or 0
    if by in ("month", "day"):
        return [found[key] for key in sorted(found)]
    return sorted(found.values(), key=lambda one: (-one.used, *one.key.values()))


def reporting_dags(since: datetime, until: datetime | None = None) -> set[str]:
    """Return the DAGs whose tasks reported credits at or after `since`, and before `until`."""
    wanted = select(XComModel.dag_id).where(XComModel.key == CREDITS, XComModel.timestamp >= since).distinct()
    if until is not None:
        wanted = wanted.where(XComModel.timestamp < until)
    with Session(airflow_engine()) as session:
        pushed = set(session.scalars(wanted))
    return pushed | {
        row.dag_id for row, record in records_between(since, until) if record.credits != Credits()
    }


def runs_since(dag_ids: Iterable[str], since: datetime) -> dict[str, int]:
    """Return the number of runs of each DAG that started at or after a time."""
    statement = (
        select(DagRun.dag_id, func.count())
        .where(DagRun.dag_id.in_(set(dag_ids)), DagRun.start_date >= since)
        .group_by(DagRun.dag_id)
    )
    with Session(airflow_engine()) as session:
        return {row[0]: row[1] for row in session.execute(statement)}


def spent_by_day(since: datetime, unread: Counter[str] | None = None) -> dict[str, dict[date, Counter[str]]]:
    """Return credits by connection, day of UTC, and DAG. Those of an unknown connection are under the empty string.

    :param since: only credits reported at or after this time.
    :param unread: as for `spent`.
    """
    found: dict[str, dict[date, Counter[str]]] = {}
    for row, credits in _reported(None, since, None, unread):
        day = row.timestamp.astimezone(timezone.utc).date()
        for conn_id, share in _shares(credits).items():
            by_day = found.setdefault(conn_id, {})
            by_day.setdefault(day, Counter())[row.dag_id] += credits["used"] * share
    return found


def stored_value(row: Any) -> Any:
    """Return the value of an XCom that may be a reference of a custom XCom backend.

    :param row: has the stored `value`.
    :raises Exception: the backend cannot read it.
    """
    # The import fails if the configured backend cannot be imported.
    from airflow.sdk import BaseXCom
    from airflow.sdk.execution_time.xcom import resolve_xcom_backend

    backend: Any = resolve_xcom_backend()  # type: ignore[no-untyped-call]
    value = row.value
    with suppress(ValueError, RecursionError):
        # The database's JSON contains either the value or its JSON text.
        while isinstance(value, str):
            value = json.loads(value)
    return value if backend is BaseXCom else backend.deserialize_value(SimpleNamespace(value=value))


def _reported(
    dag_ids: Collection[str] | None,
    since: datetime,
    until: datetime | None,
    unread: Counter[str] | None,
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield tasks with their credits, without those of jobs that an earlier task reported, of any DAG."""
    earliest = since - min(_SHARED_WITHIN, since - datetime.min.replace(tzinfo=timezone.utc))
    text = cast(XComModel.value, String)
    # A reference of an XCom backend does not show whether it has jobs.
    may_have_jobs = or_(text.contains("jobs"), text.contains("://"))
    is_summed = XComModel.timestamp >= since
    if dag_ids is not None:
        is_summed = and_(is_summed, XComModel.dag_id.in_(dag_ids))
    columns = (XComModel.dag_id, XComModel.run_id, XComModel.task_id, XComModel.map_index)
    wanted = select(*columns, XComModel.value, XComModel.timestamp).where(
        XComModel.key == CREDITS, XComModel.timestamp >= earliest, or_(is_summed, may_have_jobs)
    )
    if until is not None:
        wanted = wanted.where(XComModel.timestamp < until)
    # A job is counted for the first task that reports it.
    wanted = wanted.order_by(XComModel.timestamp, XComModel.task_id, XComModel.map_index)
    # A task that was killed has pushed nothing, and Airflow deletes the XComs of each attempt.
    recorded = [
        (row, _Credits.model_validate(report(restarted(record.credits))).model_dump())
        for row, record in records_between(earliest, until)
        if record.credits != Credits()
    ]
    has_record = {tuple(row[:4]) for row, _ in recorded}
    jobs: dict[str, _Job] = {}
    with Session(airflow_engine()) as session:
        rows = session.execute(wanted.execution_options(yield_per=_AT_ONCE))
        pushed = ((row, None) for row in rows if tuple(row[:4]) not in has_record)
        for row, known in heapq.merge(recorded, pushed, key=_order):
            is_wanted = row.timestamp >= since and (dag_ids is None or row.dag_id in dag_ids)
            credits, reason = (known, "") if known is not None else _pushed(row)
            if credits is not None:
                credits = _without_known(credits, jobs)
                if is_wanted:
                    yield row, credits
            elif is_wanted and reason and unread is not None:
                unread[reason] += 1


def _order(one: tuple[Any, Any]) -> tuple[datetime, str, int]:
    row, _ = one
    return row.timestamp, row.task_id, row.map_index


def _pushed(row: Any) -> tuple[dict[str, Any] | None, str]:
    """Return the credits in an XCom, or None and the reason why they cannot be read; none of another task's XCom."""
    if (credits := _credits(row.value)) is not None:
        return credits, ""
    try:
        credits = _credits(value := stored_value(row))
    except Exception as error:  # noqa: BLE001 - backends raise any error
        return None, f"the XCom backend raises {type(error).__name__}"
    is_reference = credits is None and isinstance(value, str) and "://" in value
    return (
        credits,
        "they are references of an XCom backend that is not configured here" if is_reference else "",
    )


def _shares(credits: dict[str, Any]) -> dict[str, float]:
    """Return the connections' parts of credits; an unknown connection is the empty string."""
    used_by = credits["by_connection"] or {"": 1}
    whole = sum(used_by.values()) or 1
    return {conn_id: used / whole for conn_id, used in used_by.items()}


class _Job(NamedTuple):
    """A job that tasks reported.

    :param cost: the highest reported cost.
    :param conn_ids: connections that may have started it: those that each of the tasks used.
    """

    cost: float
    conn_ids: frozenset[str]


def _without_known(credits: dict[str, Any], jobs: dict[str, _Job]) -> dict[str, Any]:
    """Return credits without those of jobs that an earlier task reported.

    An operator and a sensor may return the same job.

    :param jobs: the jobs of earlier reports; updated.
    """
    connections = dict(credits["by_connection"])
    used = credits["used"]
    for job, cost in credits["jobs"].items():
        before = jobs.get(job, _Job(0, frozenset()))
        known = min(before.cost, cost)
        conn_ids = before.conn_ids & connections.keys() or frozenset(connections)
        jobs[job] = _Job(max(before.cost, cost), conn_ids)
        used -= known
        for conn_id in sorted(conn_ids, key=lambda one: (-connections[one], one)):
            part = min(known, connections[conn_id])
            connections[conn_id] -= part
            known -= part
    return {**credits, "used": used, "by_connection": connections}


class _Credits(BaseModel):
    """The XCom `credits` of a task."""

    model_config = ConfigDict(strict=True)

    used: FiniteFloat
    unknown: int | None = None
    by_operation: dict[str, FiniteFloat]
    by_connection: dict[str, FiniteFloat] = {}
    jobs: dict[str, FiniteFloat] = {}


def _credits(value: Any) -> dict[str, Any] | None:
    """Return the credits in an XCom; None where another task's XCom has the same key."""
    try:
        credits = (
            _Credits.model_validate_json(value) if isinstance(value, str) else _Credits.model_validate(value)
        )
    except ValidationError:
        return None
    return credits.model_dump()
