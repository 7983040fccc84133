# SPDX-License-Identifier: Apache-2.0
"""Runs DAGs in a real Airflow, one after the other, and reports their runs.

A separate process, with its own home, database, and settings of Airflow. It reads one JSON object per line from stdin:
`path` of a DAG file, `environ` to set before it is loaded, and `answer`, the file to write the outcome to. The tasks
log to stdout and stderr.

The file binds `dag`, or `dags` to run one after the other. It may bind `logical_dates`, one for each run, in which None
stands for a run without, `responses`, which maps a task that waits for a response to the option that a person
chooses, and `model_of`, which returns the model of an agent's hook: no real one can be reached.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

from webdata_sandbox.testing.execution_api import keep_execution_api


def main() -> None:
    keep_execution_api()
    write_without_waiting_for_the_disk()
    for line in sys.stdin:
        order = json.loads(line)
        os.environ.update(order["environ"])
        answer = Path(order["answer"])
        part = answer.with_suffix(".part")
        try:
            outcome = run(order["path"])
        except Exception:  # the next DAG must still run
            outcome = {"error": traceback.format_exc()}
        part.write_text(json.dumps(outcome))
        part.rename(answer)


def write_without_waiting_for_the_disk() -> None:
    """Let the database lose data when the machine crashes: no test outlives that."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    @event.listens_for(Engine, "connect")
    def set_pragma(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous=OFF")
        cursor.close()


def run(path: str) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As Airflow does: classes in the file are looked up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    dags = getattr(module, "dags", None) or [module.dag]
    when = getattr(module, "logical_dates", None)
    with responding(getattr(module, "responses", {})), modeling(getattr(module, "model_of", None)):
        runs = (
            [dag.test(logical_date=date and datetime.fromisoformat(date)) for dag in dags for date in when]
            if when
            else [dag.test() for dag in dags]
        )
    return {"runs": [report_of(dag_run) for dag_run in runs]}


@contextmanager
def modeling(model_of: Callable[[Any], Any] | None) -> Iterator[None]:
    """Replace the models of agents until the DAG ends."""
    if model_of is None:
        yield
        return
    from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook

    with mock.patch.object(PydanticAIHook, "get_conn", model_of):
        yield


@contextmanager
def responding(responses: dict[str, str]) -> Iterator[None]:
    """Respond to tasks that wait for a response, as a person in the UI does."""
    if not responses:
        yield
        return
    from airflow.models import import_all_models
    from sqlalchemy.orm import configure_mappers

    # Not from two threads concurrently: SQLAlchemy's lock and Python's import lock would wait for each other.
    import_all_models()  # type: ignore[no-untyped-call]
    configure_mappers()
    over = threading.Event()
    person = threading.Thread(target=_respond, args=(responses, over))
    person.start()
    try:
        yield
    finally:
        over.set()
        person.join()


def _respond(responses: dict[str, str], over: threading.Event) -> None:
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.trigger import handle_event_submit
    from airflow.sdk.timezone import utcnow
    from airflow.triggers.base import TriggerEvent
    from airflow.utils.session import create_session
    from airflow.utils.state import TaskInstanceState
    from sqlalchemy import select
    from sqlalchemy.exc import OperationalError

    # On Airflow 3.2 the task's own trigger polls for the response.
    waiting = getattr(TaskInstanceState, "AWAITING_INPUT", None)
    while not over.wait(0.2):
        # SQLite may be locked for too long; the next round writes.
        with contextlib.suppress(OperationalError), create_session() as session:
            for asked in session.scalars(select(HITLDetail)).all():
                ti = session.get(TaskInstance, asked.ti_id)
                if ti is None or ti.task_id not in responses:
                    continue
                # Again where `dag.test()` has written its own "awaiting input" over the response.
                if ti.state != waiting if waiting else asked.responded_at:
                    continue
                asked.chosen_options = [responses[ti.task_id]]
                asked.responded_at = utcnow()
                asked.responded_by = {"id": "1", "name": "reader"}
                if waiting:
                    event = TriggerEvent(asked.as_resume_event_payload())  # type: ignore[no-untyped-call]
                    handle_event_submit(event, task_instance=ti, session=session)


def report_of(dag_run: Any) -> dict[str, Any]:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import and_, select

    def of_run(model: Any) -> Any:
        return select(model).where(model.dag_id == dag_run.dag_id, model.run_id == dag_run.run_id)

    with create_session() as session:
        # One query of each table: this was a tenth of the time of short runs.
        columns = TaskInstance.task_id, TaskInstance.map_index, TaskInstance.state, TaskInstance.try_number
        instances = session.execute(of_run(TaskInstance).with_only_columns(*columns))
        # Since Airflow 3.4, each attempt has its own rendered fields.
        table: Any = RenderedTaskInstanceFields
        names = ("dag_id", "run_id", "task_id", "map_index")
        pairs = (
            [("task_instance_id", "id")] if hasattr(table, "task_instance_id") else [(n, n) for n in names]
        )
        same = and_(*(getattr(table, ours) == getattr(TaskInstance, theirs) for ours, theirs in pairs))
        rendered = of_run(TaskInstance).join(table, same)
        rendered = rendered.with_only_columns(*columns, table.rendered_fields)
        return {
            "state": str(getattr(dag_run.state, "value", dag_run.state)),
            "tasks": {
                _key(ti): {"state": str(getattr(ti.state, "value", ti.state)), "try_number": ti.try_number}
                for ti in instances
            },
            "xcom": {f"{_key(row)}.{row.key}": _value(row) for row in session.scalars(of_run(XComModel))},
            "rendered": {_key(row): row.rendered_fields for row in session.execute(rendered)},
        }


def _value(row: Any) -> Any:
    from airflow.models.xcom import XComModel

    # The execution API in this process has stored JSON already.
    return XComModel.deserialize_value(row) if isinstance(row.value, str) else row.value


def _key(row: Any) -> str:
    return row.task_id if row.map_index < 0 else f"{row.task_id}[{row.map_index}]"


if __name__ == "__main__":
    main()
