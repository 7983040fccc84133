# SPDX-License-Identifier: Apache-2.0
"""Tasks that found pages new, changed, or removed since an earlier run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.tasks import (
    TaskName,
    is_task,
    name_columns,
    pushed_by,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from typing import Any


def changed_tasks(
    since: datetime, key: str, keys: Collection[str], most: int
) -> list[tuple[TaskName, datetime, dict[str, Any]]]:
    """Return successful tasks that pushed an XCom, newest first, each with its time and its XComs.

    :param since: only tasks that pushed the XCom at or after this time.
    :param key: key of the XCom.
    :param keys: keys of the XComs to return.
    :param most: maximum number of tasks.
    """
    wanted = (
        select(*name_columns(XComModel), XComModel.timestamp)
        .join(TaskInstance, is_task(TaskInstance, name_columns(XComModel)))
        .where(
            XComModel.key == key,
            XComModel.timestamp >= since,
            TaskInstance.state == TaskInstanceState.SUCCESS,
        )
        .order_by(XComModel.timestamp.desc())
        .limit(most)
    )
    with Session(airflow_engine()) as session:
        times = {TaskName(*row[:4]): row.timestamp for row in session.execute(wanted)}
        pushed = pushed_by(session, times, keys) if times else {}
    return [(name, at, pushed.get(name, {})) for name, at in times.items()]
