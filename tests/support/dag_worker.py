"""Runs DAGs in a real Airflow, one after the other, and tells what became of them.

A process of its own, so that Airflow's home, its database and its settings are nobody else's. It reads one JSON
object per line from stdin: `path` of a DAG file, `environ` to set before it is loaded, and `answer`, the file to
write the outcome to. What the tasks log goes to stdout and stderr.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
import traceback
from datetime import datetime
from pathlib import Path
from typing import Any


def keep_execution_api() -> None:
    """Use one API server within the process for all tasks.

    Airflow 3.2 lets it be collected while it is still in use, and making one for each task takes seconds.
    """
    from airflow.sdk.execution_time import supervisor

    supervisor.in_process_api_server = functools.cache(supervisor.in_process_api_server)


def main() -> None:
    keep_execution_api()
    for line in sys.stdin:
        order = json.loads(line)
        os.environ.update(order["environ"])
        answer = Path(order["answer"])
        part = answer.with_suffix(".part")
        try:
            outcome = run(order["path"])
        except Exception:  # the next DAG is to run all the same
            outcome = {"error": traceback.format_exc()}
        part.write_text(json.dumps(outcome))
        part.rename(answer)


def run(path: str) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    when = getattr(module, "logical_dates", None)
    runs = (
        [module.dag.test(logical_date=date and datetime.fromisoformat(date)) for date in when]
        if when
        else [module.dag.test()]
    )
    return {"runs": [told(dag_run) for dag_run in runs]}


def told(dag_run: Any) -> dict[str, Any]:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.taskreschedule import TaskReschedule
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    def of_run(model: Any) -> Any:
        return select(model).where(model.dag_id == dag_run.dag_id, model.run_id == dag_run.run_id)

    with create_session() as session:
        instances = list(session.scalars(of_run(TaskInstance)))
        reschedules = [
            (row.start_date.isoformat(), row.reschedule_date.isoformat())
            for ti in instances
            for row in session.scalars(select(TaskReschedule).where(TaskReschedule.ti_id == ti.id))
        ]
        return {
            "state": str(getattr(dag_run.state, "value", dag_run.state)),
            "tasks": {
                _key(ti): {"state": str(getattr(ti.state, "value", ti.state)), "try_number": ti.try_number}
                for ti in instances
            },
            "xcom": {f"{_key(row)}.{row.key}": _value(row) for row in session.scalars(of_run(XComModel))},
            "rendered": {
                _key(row): row.rendered_fields for row in session.scalars(of_run(RenderedTaskInstanceFields))
            },
            "reschedules": reschedules,
        }


def _value(row: Any) -> Any:
    from airflow.models.xcom import XComModel

    # What the execution API stored within this very process is JSON already.
    return XComModel.deserialize_value(row) if isinstance(row.value, str) else row.value


def _key(row: Any) -> str:
    return row.task_id if row.map_index < 0 else f"{row.task_id}[{row.map_index}]"


if __name__ == "__main__":
    main()
