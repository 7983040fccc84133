# SPDX-License-Identifier: Apache-2.0
"""DAG runs that the asset events of deliveries started, and states of tasks that waited for them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.asset import AssetEvent, AssetModel, AssetWatcherModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from sqlalchemy import JSON, String, cast, or_, select, tuple_, type_coerce
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.tasks import TaskName, name_columns

if TYPE_CHECKING:
    from collections.abc import Collection

_WATCHES = "airflow_provider_webdata.triggers.events."
_MAX_RUNS = 1000
_EVENT_DELAY = timedelta(days=1)
"""Maximum delay between a delivery and its asset event, which may wait for the runs of earlier ones."""


class StartedRun(NamedTuple):
    """A DAG run that an asset event started.

    :param delivery_id: the delivery of the event; None: the event names only the check.
    :param check_id: the check of the event, if it is about one.
    :param state: Airflow's state.
    """

    dag_id: str
    run_id: str
    state: str
    delivery_id: int | None
    check_id: str | None


def runs_started(
    since: datetime,
    until: datetime,
    *,
    delivery_ids: Collection[int] = (),
    check_ids: Collection[str] = (),
) -> list[StartedRun]:
    """Return the DAG runs that deliveries or checks started, the newest event first; at most 1,000.

    :param since: when the first of them was received.
    :param until: when the last of them was received.
    """
    watched = (
        select(AssetWatcherModel.asset_id)
        .join(Trigger, Trigger.id == AssetWatcherModel.trigger_id)
        .where(Trigger.classpath.startswith(_WATCHES, autoescape=True))
    )
    # The inbox itself registers events of these assets, which need no watcher.
    ours = select(AssetModel.id).where(AssetModel.uri.startswith("webdata://"))
    statement = (
        select(AssetEvent.extra, DagRun.dag_id, DagRun.run_id, DagRun.state)
        .join(AssetEvent.created_dagruns)
        .where(
            or_(AssetEvent.asset_id.in_(watched), AssetEvent.asset_id.in_(ours)),
            or_(
                _named("delivery_id").in_([str(one) for one in delivery_ids]),
                _named("check_id").in_([*check_ids]),
            ),
            AssetEvent.timestamp >= since,
            AssetEvent.timestamp <= until + _EVENT_DELAY,
        )
        .order_by(AssetEvent.timestamp.desc())
        .limit(_MAX_RUNS)
    )
    with Session(airflow_engine()) as session:
        rows = session.execute(statement).all()
    return [StartedRun(row.dag_id, row.run_id, str(row.state), *_cause(row.extra)) for row in rows]


def task_states(names: Collection[TaskName]) -> dict[TaskName, str | None]:
    """Return Airflow's states of those task instances that exist."""
    columns = name_columns(TaskInstance)
    # The sets let the database use its index.
    sets = (column.in_({name[at] for name in names}) for at, column in enumerate(columns))
    wanted = select(*columns, TaskInstance.state).where(*sets, tuple_(*columns).in_([*names]))
    with Session(airflow_engine()) as session:
        return {TaskName(*row[:4]): row.state for row in session.execute(wanted)} if names else {}


def _named(name: str) -> Any:
    """Return the column with an id of the payload of an event, as text."""
    return cast(type_coerce(AssetEvent.extra, JSON)["payload"][name].as_string(), String)


def _cause(extra: Any) -> tuple[int | None, str | None]:
    payload = extra.get("payload") if isinstance(extra, dict) else None
    if not isinstance(payload, dict):
        return None, None
    delivery_id, check_id = payload.get("delivery_id"), payload.get("check_id")
    return (
        delivery_id if isinstance(delivery_id, int) else None,
        check_id if isinstance(check_id, str) else None,
    )
