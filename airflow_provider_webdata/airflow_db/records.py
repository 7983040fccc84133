# SPDX-License-Identifier: Apache-2.0
"""The records of tasks in Airflow's task state store (3.3)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.states.task_record import KEY, TaskRecord, read_stored

try:
    from airflow.models.task_state_store import TaskStateStoreModel
except ImportError:  # Airflow 3.2
    TaskStateStoreModel = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


def record_of(name: tuple[str, str, str, int]) -> TaskRecord | None:
    """Return the record of a task instance; None without one, or if it cannot be read.

    :param name: its DAG, run, task, and map index.
    """
    if TaskStateStoreModel is None:
        return None
    table = TaskStateStoreModel
    columns = (table.dag_id, table.run_id, table.task_id, _map_index(table))
    matches = (column == value for column, value in zip(columns, name, strict=True))
    statement = select(table.value).where(table.key == KEY, *matches)
    with Session(airflow_engine()) as session:
        value = session.scalar(statement)
    return None if value is None else _read(value)


def records_between(since: datetime, until: datetime | None) -> Sequence[tuple[Any, TaskRecord]]:
    """Return rows (`dag_id`, `run_id`, `task_id`, `map_index`, `timestamp`) with their records, oldest first.

    :param since: only records that changed at or after this time.
    :param until: only records that changed before this time.
    """
    if TaskStateStoreModel is None:
        return []
    table = TaskStateStoreModel
    statement = (
        select(
            *(table.dag_id, table.run_id, table.task_id, _map_index(table).label("map_index"), table.value),
            table.updated_at.label("timestamp"),
        )
        .where(table.key == KEY, table.updated_at >= since)
        .order_by(table.updated_at, table.task_id, _map_index(table))
    )
    if until is not None:
        statement = statement.where(table.updated_at < until)
    with Session(airflow_engine()) as session:
        rows = session.execute(statement).all()
    return [(row, record) for row in rows if (record := _read(row.value)) is not None]


def _map_index(table: Any) -> Any:
    # From Airflow 3.4 on, the index in the region of a loop or of a mapped task.
    return table.region_index if hasattr(table, "region_index") else table.map_index


def _read(value: Any) -> TaskRecord | None:
    # A backend of the store leaves a reference here.
    with suppress(ValueError, RecursionError):
        return read_stored(json.loads(value) if isinstance(value, str) else value)
    return None
