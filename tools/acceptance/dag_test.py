# SPDX-License-Identifier: Apache-2.0
"""`dag.test()` that raises the error of a failed task."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, cast

from airflow.models.xcom import XComModel
from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.execution_time.task_runner import get_listener_manager  # type: ignore[attr-defined]
from airflow.utils.session import create_session
from pluggy import HookimplMarker
from sqlalchemy import select

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tools.acceptance.watch import Watch

_hookimpl = HookimplMarker("airflow")


class TaskFailedError(Exception):
    """A task failed with an error that is only known as text, or did not run."""


class _Listener:
    def __init__(self) -> None:
        self.error: BaseException | str | None = None

    @_hookimpl
    def on_task_instance_failed(self, error: BaseException | str | None) -> None:
        self.error = error


def test_dag(dag: DAG, watch: Watch) -> Any:
    """Run a DAG of one task in this process, and return what the task returned.

    :raises Exception: a task failed.
    """
    _stop_at_kill(dag, watch)
    listener: Any = _Listener()
    listeners: Any = get_listener_manager()
    listeners.add_listener(listener)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        run = dag.test()
    finally:
        listeners.pm.unregister(listener)
        # Airflow's task runner replaces the handler of SIGTERM.
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if isinstance(listener.error, Exception):
        raise listener.error
    if (state := str(getattr(run.state, "value", run.state))) != "success":
        raise TaskFailedError(str(listener.error or f"the DAG run ended as {state}"))
    return _returned(dag.dag_id)


def _returned(dag_id: str) -> Any:
    of_dag = XComModel.dag_id == dag_id, XComModel.key == BaseXCom.XCOM_RETURN_KEY
    with create_session() as session:
        row: Any = session.scalars(select(XComModel).where(*of_dag)).first()
    value = getattr(row, "value", None)
    # The execution API in this process has stored JSON already.
    return XComModel.deserialize_value(row) if isinstance(value, str) else value


def _stop_at_kill(dag: DAG, watch: Watch) -> None:
    """End the whole run at a SIGTERM, which Airflow's task runner passes on to the task alone."""
    for task in cast("list[Any]", dag.tasks):
        on_kill = task.on_kill

        def stop(on_kill: Any = on_kill) -> None:
            on_kill()
            watch.stopped = True
            raise KeyboardInterrupt

        task.on_kill = stop
