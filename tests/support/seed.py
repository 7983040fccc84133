# SPDX-License-Identifier: Apache-2.0
"""Sixteen days of five DAGs as rows of Airflow's tables and the inbox, for pages that should be full.

Everything follows from one seed and the given time, except the ids that the service chose. Import it only if Airflow's
database is set up. As a program, it reads `conn_id`, `state`, `webhook_url`, `webhook_secret`, and `many` as a JSON
object from standard input, makes the service's state, and writes the rows up to the present.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.models.dag import DagModel
from airflow.models.dag_version import DagVersion
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance, uuid7
from airflow.models.trigger import Trigger
from airflow.serialization.definitions.dag import SerializedDAG
from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import bindparam, delete, insert, update

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import counter, delivery
from tests.support.airflow_rows import TRIGGERS, XCOMS, attempt_of, columns_of
from tests.support.seeded_service import Service, live, spend
from tests.support.seeded_story import DAGS, Run, Seeded, Story, Task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_webdata.inbox_server.storage.records import NewDelivery

ELSEWHERE = "seeded"
"""Queue of the triggers: a triggerer that was not asked for it does not run them."""


def seed(conn_id: str, now: datetime, service: Service, many: int = 0) -> Seeded:
    """Write the rows of sixteen days up to `now`.

    :param conn_id: connection to the service.
    :param service: what the service knows.
    :param many: number of additional deliveries, of a crawl that nobody waits for.
    """
    story = Story(conn_id, now, service)
    story.tell(many)
    with create_session() as session:
        _write(session, story)
        session.commit()
        _deliver(session, DeliveryStore(airflow_engine()), story.deliveries)
    story.seeded.tasks, story.seeded.deliveries = len(story.tasks), len(story.deliveries)
    return story.seeded


def _write(session: Any, story: Story) -> None:
    """Write the rows of Airflow's tables."""
    versions = {dag_id: _prepare(session, dag_id) for dag_id in DAGS}
    run_ids = {run: _write_run(session, run, versions[run.dag_id]) for run in story.runs}
    instances: list[dict[str, Any]] = []
    rendered: list[dict[str, Any]] = []
    logs: list[dict[str, Any]] = []
    xcoms: list[dict[str, Any]] = []
    for task in story.tasks:
        names = {
            "dag_id": task.run.dag_id,
            "run_id": task.run.run_id,
            "task_id": task.task_id,
            "map_index": task.map_index,
        }
        instances.append({**names, **_instance(session, task), "dag_version_id": versions[task.run.dag_id]})
        rendered.append({**attempt_of(names, instances[-1]["id"]), "rendered_fields": task.rendered})
        logs += [
            {**names, "event": event, "dttm": at, "try_number": attempt, "owner": "airflow"}
            for event, at, attempt in task.logged
        ]
        its = {**names, "task_instance_id": instances[-1]["id"], "dag_run_id": run_ids[task.run]}
        xcoms += [{**its, "key": key, "value": value, "timestamp": at} for key, value, at in task.pushed]
    table: Any
    for table, rows in (
        (TaskInstance.__table__, instances),
        (RenderedTaskInstanceFields.__table__, rendered),
        (Log.__table__, logs),
        (XCOMS, xcoms),
    ):
        session.execute(insert(table), [columns_of(table, row) for row in rows])


def _prepare(session: Any, dag_id: str) -> Any:
    """Store a DAG as Airflow does, if it has not parsed it; return the id of its version."""
    if session.get(DagModel, dag_id) is None:
        if session.get(DagBundleModel, "tests") is None:
            session.add(DagBundleModel(name="tests"))
            session.flush()
        lazy = LazyDeserializedDAG(data=DagSerialization.to_dict(DAGS[dag_id]))
        SerializedDAG.bulk_write_to_db("tests", None, [lazy], session=session)
        SerializedDagModel.write_dag(lazy, "tests", session=session)
        session.flush()
    version = DagVersion.get_latest_version(dag_id, session=session)
    assert version is not None
    return version.id


def _write_run(session: Any, run: Run, version_id: Any) -> int:
    ends = [task.end for task in run.tasks if task.end]
    row = DagRun(
        dag_id=run.dag_id,
        run_id=run.run_id,
        run_type=DagRunType.MANUAL if run.is_manual else DagRunType.SCHEDULED,
        logical_date=run.start,
        data_interval=(run.start - timedelta(days=1), run.start),
        run_after=run.start,
        queued_at=run.start,
        start_date=run.start,
        state=run.state,  # type: ignore[arg-type]
        triggered_by=DagRunTriggeredByType.UI if run.is_manual else DagRunTriggeredByType.TIMETABLE,
    )
    row.created_dag_version_id = version_id
    row.end_date = max(ends) if run.state != "running" and ends else None
    session.add(row)
    session.flush()
    return int(row.id)


def _instance(session: Any, task: Task) -> dict[str, Any]:
    """Return the columns of a task instance beside its name; write its trigger, if it has one."""
    operator = DAGS[task.run.dag_id].get_task(task.task_id)
    trigger_id = None
    if task.trigger is not None:
        path, arguments, since = task.trigger
        row = Trigger(classpath=f"{TRIGGERS}{path}", kwargs=arguments, created_date=since)
        row.queue = ELSEWHERE
        session.add(row)
        session.flush()
        # Without Airflow's own timeout, at which the scheduler would end the late one.
        trigger_id = row.id
    return {
        "id": uuid7(),
        "state": task.state,
        "operator": operator.task_type,
        "rendered_map_index": task.label,
        "start_date": task.start,
        "end_date": task.end,
        "duration": (task.end - task.start).total_seconds() if task.start and task.end else None,
        "queued_dttm": task.start,
        "try_number": task.attempts if task.start else 0,
        "max_tries": operator.retries or task.attempts - 1,
        "pool": "default_pool",
        "pool_slots": 1,
        "queue": "default",
        "priority_weight": 1,
        "executor_config": {},
        "trigger_id": trigger_id,
        # From Airflow 3.4 on, beside the map index.
        "region_index": task.map_index,
        "updated_at": task.end or task.start,
    }


def _deliver(session: Any, store: DeliveryStore, deliveries: Iterable[NewDelivery]) -> None:
    """Store deliveries as if each had been published when it arrived."""
    ordered = sorted(deliveries, key=lambda one: one.received_at)
    for first in range(0, len(ordered), 500):
        store.add(ordered[first : first + 500])
    positions = [
        {"identity": one.dedupe, "at": int(one.received_at.timestamp() * 1_000_000) + number}
        for number, one in enumerate(ordered)
    ]
    published = update(delivery).where(delivery.c.dedupe == bindparam("identity"))
    connection = session.connection()
    connection.execute(published.values(position=bindparam("at")), positions)
    connection.execute(delete(counter))
    connection.execute(insert(counter).values(id=1, last_position=positions[-1]["at"]))


def main() -> None:
    """Read the order, make the state, and write the rows."""
    logging.getLogger("webdata_sandbox").setLevel(logging.WARNING)
    order = json.loads(sys.stdin.read())
    now = datetime.now(timezone.utc)
    state = Path(order["state"])
    service = live(state, now, order.get("webhook_url", ""), order.get("webhook_secret", ""))
    written = seed(order["conn_id"], now, service, int(order.get("many") or 0))
    spend(state, written.elsewhere)
    print(f"{written.tasks} tasks, {written.deliveries} deliveries, {written.used:g} credits")


if __name__ == "__main__":
    main()
