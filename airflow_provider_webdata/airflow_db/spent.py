"""Sums of the credits in Airflow's XCom table."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError
from sqlalchemy import String, and_, cast, func, or_, select

from airflow_provider_webdata.common.xcom_keys import CREDITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

By = Literal["dag", "run", "task"]

_NAMES: dict[By, tuple[str, ...]] = {
    "dag": ("dag_id",),
    "run": ("dag_id", "run_id"),
    "task": ("dag_id", "run_id", "task_id", "map_index"),
}
_AT_ONCE = 1000
_SHARED_WITHIN = timedelta(days=7)
"""Longest time between two tasks that report one job. The service deletes its results a day after its end."""


@dataclass
class Spent:
    """The credits that one DAG, run, or task spent.

    :param names: its ids.
    :param tasks: number of task instances that reported credits.
    :param used: credits.
    :param saved: credits that were not spent.
    :param unknown: calls whose cost the service did not report.
    :param operations: credits by operation.
    :param formats: credits of pages by format.
    """

    names: dict[str, Any]
    tasks: int = 0
    used: float = 0
    saved: float = 0
    unknown: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)

    def add(self, credits: dict[str, Any], share: float = 1) -> None:
        """Add the credits that a task instance reported.

        :param share: part of the credits to add. The calls of unknown cost are not divided.
        """
        self.tasks += 1
        self.used += credits["used"] * share
        self.saved += (credits.get("saved") or 0) * share
        self.unknown += credits.get("unknown") or 0
        for sums, name in ((self.operations, "byOperation"), (self.formats, "byFormat")):
            parts = (credits.get(name) or {}).items()
            sums.update({part: used * share for part, used in parts if used * share})

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        return {
            **self.names,
            "tasks": self.tasks,
            "used": self.used,
            "saved": self.saved,
            "unknown": self.unknown,
            "by_operation": dict(self.operations),
            "by_format": dict(self.formats),
        }


def spent(
    by: By,
    dag_ids: Sequence[str],
    since: datetime,
    until: datetime | None,
    conn_id: str | None = None,
    unread: Counter[str] | None = None,
) -> list[Spent]:
    """Return what was spent, the highest amount first.

    :param dag_ids: only these DAGs; empty: all.
    :param since: only credits reported at or after this time.
    :param until: only credits reported before this time.
    :param conn_id: only tasks that used this connection, with its part of their credits; None: all tasks.
    :param unread: counts the tasks whose credits cannot be read, by reason.
    """
    found: dict[tuple[Any, ...], Spent] = {}
    for row, credits in _reported(dag_ids, since, until, unread):
        names = {name: getattr(row, name) for name in _NAMES[by]}
        share = 1 if conn_id is None else _shares(credits).get(conn_id)
        if share is not None:
            found.setdefault(tuple(names.values()), Spent(names)).add(credits, share)
    return sorted(found.values(), key=lambda one: (-one.used, *map(str, one.names.values())))


def runs_since(dag_ids: Iterable[str], since: datetime) -> dict[str, int]:
    """Return the number of runs of each DAG that started at or after a time."""
    statement = (
        select(DagRun.dag_id, func.count())
        .where(DagRun.dag_id.in_(set(dag_ids)), DagRun.start_date >= since)
        .group_by(DagRun.dag_id)
    )
    with create_session() as session:
        return {row[0]: row[1] for row in session.execute(statement)}


def spent_by_day(since: datetime, unread: Counter[str] | None = None) -> dict[str, dict[date, Counter[str]]]:
    """Return credits by connection, day of UTC, and DAG. Those of an unknown connection are under the empty string.

    :param since: only credits reported at or after this time.
    :param unread: as for `spent`.
    """
    found: dict[str, dict[date, Counter[str]]] = {}
    for row, credits in _reported((), since, None, unread):
        day = row.timestamp.astimezone(timezone.utc).date()
        for conn_id, share in _shares(credits).items():
            by_day = found.setdefault(conn_id, {})
            by_day.setdefault(day, Counter())[row.dag_id] += credits["used"] * share
    return found


def total(all_spent: Iterable[Spent]) -> float:
    """Return the sum."""
    return sum(one.used for one in all_spent)


def used_once(values: Iterable[Any]) -> float | None:
    """Return the credits in some XComs `credits`, each job counted once; None if none of them is valid."""
    jobs: dict[str, _Job] = {}
    known = [
        _without_known(credits, jobs)["used"] for credits in map(_credits, values) if credits is not None
    ]
    return sum(known) if known else None


def stored_value(row: Any) -> Any:
    """Return the value of an XCom that may be a reference of a custom XCom backend.

    :param row: has the stored `value`.
    :raises Exception: the backend cannot read it.
    """
    # The import fails if the configured backend cannot be imported.
    from airflow.sdk.bases.xcom import BaseXCom
    from airflow.sdk.execution_time.xcom import resolve_xcom_backend

    backend: Any = resolve_xcom_backend()  # type: ignore[no-untyped-call]
    value = row.value
    with suppress(ValueError, RecursionError):
        # The database's JSON contains either the value or its JSON text.
        while isinstance(value, str):
            value = json.loads(value)
    return value if backend is BaseXCom else backend.deserialize_value(SimpleNamespace(value=value))


def _reported(
    dag_ids: Sequence[str],
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
    if dag_ids:
        is_summed = and_(is_summed, XComModel.dag_id.in_(dag_ids))
    wanted = select(
        XComModel.dag_id,
        XComModel.run_id,
        XComModel.task_id,
        XComModel.map_index,
        XComModel.value,
        XComModel.timestamp,
    ).where(XComModel.key == CREDITS, XComModel.timestamp >= earliest, or_(is_summed, may_have_jobs))
    if until is not None:
        wanted = wanted.where(XComModel.timestamp < until)
    # A job is counted for the first task that reports it.
    wanted = wanted.order_by(XComModel.timestamp, XComModel.task_id, XComModel.map_index)
    jobs: dict[str, _Job] = {}
    with create_session() as session:
        for row in session.execute(wanted.execution_options(yield_per=_AT_ONCE)):
            is_wanted = row.timestamp >= since and (not dag_ids or row.dag_id in dag_ids)
            credits, reason = _credits(row.value), ""
            if credits is None:
                try:
                    credits = _credits(value := stored_value(row))
                    if credits is None and isinstance(value, str) and "://" in value:
                        reason = "they are references of an XCom backend that is not configured here"
                except Exception as error:  # noqa: BLE001 - backends raise any error
                    reason = f"the XCom backend raises {type(error).__name__}"
            if credits is not None:
                credits = _without_known(credits, jobs)
                if is_wanted:
                    yield row, credits
            elif is_wanted and reason and unread is not None:
                unread[reason] += 1


def _shares(credits: dict[str, Any]) -> dict[str, float]:
    """Return the connections' parts of credits; an unknown connection is the empty string."""
    used_by = credits["byConnection"] or {"": 1}
    # Without credits, there may be savings.
    whole = sum(used_by.values())
    return {conn_id: used / whole if whole else 1 / len(used_by) for conn_id, used in used_by.items()}


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
    operations, formats = Counter(credits["byOperation"]), Counter(credits.get("byFormat") or {})
    connections = dict(credits["byConnection"])
    used = credits["used"]
    for job, cost in credits["jobs"].items():
        before = jobs.get(job, _Job(0, frozenset()))
        known = min(before.cost, cost)
        conn_ids = before.conn_ids & connections.keys() or frozenset(connections)
        jobs[job] = _Job(max(before.cost, cost), conn_ids)
        used -= known
        operations[job.partition("/")[0]] -= known
        # The first report says which formats it had.
        formats["page"] -= min(known, formats["page"])
        for conn_id in sorted(conn_ids, key=lambda one: (-connections[one], one)):
            part = min(known, connections[conn_id])
            connections[conn_id] -= part
            known -= part
    return {
        **credits,
        "used": used,
        "byOperation": +operations,
        "byFormat": +formats,
        "byConnection": connections,
    }


class _Credits(BaseModel):
    """The XCom `credits` of a task."""

    model_config = ConfigDict(strict=True)

    used: FiniteFloat
    saved: FiniteFloat | None = None
    unknown: int | None = None
    byOperation: dict[str, FiniteFloat]  # noqa: N815 - as in the XCom
    byFormat: dict[str, FiniteFloat] | None = None  # noqa: N815
    byConnection: dict[str, FiniteFloat] = {}  # noqa: N815
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
