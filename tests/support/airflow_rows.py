# SPDX-License-Identifier: Apache-2.0
"""Rows of Airflow's own tables, for pages that show them. Import it only if Airflow's database is set up."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow.models import xcom as airflow_xcom
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance, uuid7
from airflow.models.trigger import Trigger
from airflow.utils.types import DagRunType
from sqlalchemy import insert, select

from airflow_provider_webdata.states.task_record import KEY, TaskRecord, stored_form
from airflow_provider_webdata.waiting.policy import TIMEOUT_MARGIN_SECONDS

if TYPE_CHECKING:
    import json
import json
from collections.abc import Sequence

START = datetime.now(timezone.utc) - timedelta(minutes=10)
XCOMS: Any = getattr(airflow_xcom, "XComModelV2", airflow_xcom.XComModel).__table__
"""The table that XComs are written to: from Airflow 3.4 on, each attempt has its own, and `XComModel` only reads."""
_ENDED = ("success", "failed", "skipped", "up_for_retry")
TRIGGERS = "airflow_provider_webdata.triggers."


try:
    from airflow.models.task_state_store import TaskStateStoreModel
except ImportError:  # Airflow 3.2
    TaskStateStoreModel = None  # type: ignore[assignment, misc]


def add_task(
    session: Any,
    dag_id: str,
    task_id: str,
    *,
    operator: str,
    state: str = "success",
    rendered: dict[str, Any] | None = None,
    xcoms: dict[str, Any] | None = None,
    trigger: list[Any] | None = None,
    map_name: str | None = None,
    map_index: int = -1,
    run_id: str = "run",
    after: timedelta = timedelta(),
    logged: Sequence[str] = (),
    record: TaskRecord | None = None,
) -> None:
    """Add a task instance of a DAG run, which begins `after` the start, with its rows in Airflow's tables.

    `trigger` is the path of one of our triggers, from its file on, and its arguments. `logged` are states in Airflow's
    audit log, a minute apart. `record` is in the task state store, which Airflow 3.2 lacks.
    """
    if session.get(DagBundleModel, "tests") is None:
        session.add(DagBundleModel(name="tests"))
        session.flush()
    if session.get(DagModel, dag_id) is None:
        session.add(DagModel(dag_id=dag_id, bundle_name="tests", is_paused=True))  # type: ignore[no-untyped-call]
        session.flush()
    run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
    if run is None:
        run = DagRun(
            dag_id=dag_id,
            run_id=run_id,
            run_type=DagRunType.MANUAL,
            run_after=START + after,
            start_date=START + after,
        )
        session.add(run)
        session.flush()
    names: dict[str, Any] = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    trigger_id = timeout = None
    if trigger is not None:
        classpath, arguments = trigger
        if (deadline := arguments.get("deadline")) is not None:
            # Airflow's own timeout follows it.
            timeout = datetime.fromtimestamp(deadline + TIMEOUT_MARGIN_SECONDS, timezone.utc)
        row = Trigger(classpath=f"{TRIGGERS}{classpath}", kwargs=arguments, created_date=START)
        session.add(row)
        session.flush()
        trigger_id = row.id
    values = {
        **names,
        "state": state,
        "operator": operator,
        "trigger_id": trigger_id,
        "trigger_timeout": timeout,
        "start_date": START + after,
        "end_date": START + after + timedelta(minutes=5) if state in _ENDED else None,
        "pool": "default_pool",
        "pool_slots": 1,
        "try_number": 1,
        "max_tries": 0,
        "rendered_map_index": map_name,
        # From Airflow 3.4 on, beside the map index.
        "region_index": map_index,
    }
    values = {**columns_of(TaskInstance.__table__, values), "id": uuid7()}
    session.execute(insert(TaskInstance.__table__).values(values))
    if rendered is not None:
        fields = {**attempt_of(names, values["id"]), "rendered_fields": rendered}
        session.execute(insert(RenderedTaskInstanceFields.__table__).values(fields))
    if record is not None:
        table = TaskStateStoreModel.__table__
        stored = {"key": KEY, "value": json.dumps(stored_form(record)), "updated_at": START + after}
        session.execute(insert(table).values({**names, **stored, "dag_run_id": run.id}))
    for number, event in enumerate(logged):
        log = Log(event, **names, try_number=1)
        log.dttm = START + timedelta(minutes=number)
        session.add(log)
    for key, value in (xcoms or {}).items():
        airflow_xcom.XComModel.set(key, value, **names, session=session)


def columns_of(table: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that this version of Airflow has a column for."""
    return {name: value for name, value in values.items() if name in table.columns}


def attempt_of(names: dict[str, Any], instance_id: Any) -> dict[str, Any]:
    """Return the columns that say whose rendered fields they are: from Airflow 3.4 on, each attempt has its own."""
    has_attempts = hasattr(RenderedTaskInstanceFields, "task_instance_id")
    return {"task_instance_id": instance_id} if has_attempts else names
