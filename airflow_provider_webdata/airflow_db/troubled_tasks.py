# SPDX-License-Identifier: Apache-2.0
"""This package's tasks that failed, or whose results lack something."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.tasks import (
    TaskName,
    is_ours,
    is_row_of_ours,
    is_task,
    name_columns,
    pushed_by,
    stored_task_of,
    task_rows,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from typing import Any

    from airflow_provider_webdata.airflow_db.tasks import StoredTask


_MAX_SUCCESSES = 5000
"""Maximum number of successful tasks, newest first, among which recoveries are searched."""


class TroubledTask(NamedTuple):
    """A task that failed, or whose results lack something.

    :param stored: the task with its XComs.
    :param has_recovered: whether the task has succeeded since, in a later run.
    """

    stored: StoredTask
    has_recovered: bool


def troubled_tasks(
    since: datetime, key: str, keys: Collection[str], most: int
) -> tuple[list[TroubledTask], bool]:
    """Return tasks that failed, and other ended ones that pushed an XCom, newest first, and whether there are more.

    :param since: only tasks that ended, or pushed the XCom, at or after this time.
    :param key: key of the XCom.
    :param keys: keys of the XComs to return.
    :param most: maximum number of tasks of each kind.
    """
    failed = task_rows().where(
        TaskInstance.state == TaskInstanceState.FAILED, TaskInstance.end_date >= since, is_ours()
    )
    lacking = (
        task_rows()
        .join(
            XComModel,
            is_task(XComModel, name_columns(TaskInstance)) & (XComModel.key == key),
        )
        .where(
            TaskInstance.state.in_((TaskInstanceState.SUCCESS, TaskInstanceState.SKIPPED)),
            XComModel.timestamp >= since,
        )
    )
    with Session(airflow_engine()) as session:
        found = [
            session.execute(statement.order_by(TaskInstance.end_date.desc()).limit(most + 1)).all()
            for statement in (failed, lacking)
        ]
        rows = {
            TaskName(*row[:4]): row
            for part in found
            for row in part[:most]
            if row.state != TaskInstanceState.FAILED or is_row_of_ours(row)
        }
        if not rows:
            return [], False
        pushed = pushed_by(session, rows, keys)
        recovered = _recovered(session, rows, since)
        tasks = [
            TroubledTask(stored_task_of(row, None, pushed.get(name, {})), name in recovered)
            for name, row in rows.items()
        ]
    return tasks, any(len(part) > most for part in found)


def _recovered(session: Session, names: Mapping[TaskName, Any], since: datetime) -> set[TaskName]:
    dag_ids, task_ids = {name.dag_id for name in names}, {name.task_id for name in names}
    times: dict[tuple[str, str], Any] = {
        (row.dag_id, row.run_id): row.run_after
        for row in session.execute(
            select(DagRun.dag_id, DagRun.run_id, DagRun.run_after).where(
                DagRun.dag_id.in_(dag_ids), DagRun.run_id.in_({name.run_id for name in names})
            )
        )
    }
    succeeded: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for row in session.execute(
        select(TaskInstance.dag_id, TaskInstance.task_id, DagRun.run_after, TaskInstance.end_date)
        .join(TaskInstance.dag_run)
        .where(
            TaskInstance.dag_id.in_(dag_ids),
            TaskInstance.task_id.in_(task_ids),
            TaskInstance.state == TaskInstanceState.SUCCESS,
            TaskInstance.end_date >= since,
        )
        .order_by(TaskInstance.end_date.desc())
        .limit(_MAX_SUCCESSES)
    ):
        succeeded.setdefault((row.dag_id, row.task_id), []).append((row.run_after, row.end_date))
    return {
        name
        for name, troubled in names.items()
        if any(
            # A backfill may fail after a later run has succeeded.
            run_after > times[name.dag_id, name.run_id] and end_date > (troubled.end_date or since)
            for run_after, end_date in succeeded.get((name.dag_id, name.task_id), ())
        )
    }
