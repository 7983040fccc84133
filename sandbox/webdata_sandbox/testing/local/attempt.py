# SPDX-License-Identifier: Apache-2.0
"""Attempts of tasks in this process: Airflow's context, with XComs and records in memory instead of a database."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseXCom
from airflow.sdk.api.datamodels._generated import DagRun, DagRunState, DagRunType, TIRunContext
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from pydantic import PrivateAttr

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

_STORE = "task_state_store"
_RETURNED = "return_value"


class LocalRuns:
    """The runs of tasks in this process. Each run sees the XComs of earlier ones.

    :param began: start time of all runs.
    """

    def __init__(self, began: datetime) -> None:
        self._began = began
        self._xcoms: dict[tuple[str, str, str], str] = {}
        self._last: dict[str, DagRun] = {}

    def start(self, task: BaseOperator, given: Mapping[str, Any]) -> LocalAttempt:
        """Start a run of a task.

        :param given: values that replace those of Airflow's context; the dates and the partition are also the run's.
        """
        now = datetime.now(timezone.utc)
        date = given.get("logical_date", now)
        if not task.has_dag():  # type: ignore[no-untyped-call]
            task = copy.copy(task)
            task.dag = DAG("test")
        dag = task.dag
        run = DagRun.model_construct(
            dag_id=dag.dag_id,
            run_id=f"test__{date or now:%Y-%m-%dT%H:%M:%S.%f%z}",
            run_type=DagRunType.MANUAL,
            state=DagRunState.RUNNING,
            logical_date=date,
            data_interval_start=given.get("data_interval_start", date),
            data_interval_end=given.get("data_interval_end", date),
            run_after=date or now,
            start_date=self._began,
            end_date=None,
            partition_key=given.get("partition_key"),
            consumed_asset_events=[],
        )
        before = self._last.get(dag.dag_id)
        self._last[dag.dag_id] = run
        return LocalAttempt(task, run, before, self._xcoms, given)


class LocalAttempt:
    """The only attempt of a task in a run.

    :param before: the previous run of the DAG.
    """

    def __init__(
        self,
        task: BaseOperator,
        run: DagRun,
        before: DagRun | None,
        xcoms: dict[tuple[str, str, str], str],
        given: Mapping[str, Any],
    ) -> None:
        self._task = task
        self._given = given
        self._store = _Store()
        retries = task.retries or 0
        server = TIRunContext.model_construct(dag_run=run, max_tries=retries, task_reschedule_count=0)
        fields: dict[str, Any] = {
            "id": uuid.uuid4(),
            "task_id": task.task_id,
            "dag_id": run.dag_id,
            "run_id": run.run_id,
            "try_number": 1,
            "map_index": -1,
            "max_tries": retries,
            "start_date": datetime.now(timezone.utc),
        }
        self.ti = _TaskInstance.model_construct(
            **fields, task=task, _ti_context_from_server=server, _xcoms=xcoms, _before=before
        )

    def worker(self) -> tuple[BaseOperator, Any]:
        """Return the task with rendered templates, as a new worker has it, and its context."""
        task = copy.copy(self._task)
        # Only those that the run itself adds are called.
        task.on_success_callback = ()
        self.ti.task = task
        self.ti._cached_template_context = None
        context: Any = self.ti.get_template_context()
        if _STORE in context:
            context[_STORE] = self._store
        context.update(self._given)
        task.render_template_fields(context)
        return task, context

    def succeed(self, value: Any) -> None:
        """Push the XComs of a return value, and end the attempt."""
        if value is not None and self._task.do_xcom_push:
            if self._task.multiple_outputs and isinstance(value, Mapping):
                for key, part in value.items():
                    self.ti.xcom_push(key, part)
            self.ti.xcom_push(_RETURNED, value)
        for callback in self.ti.task.on_success_callback:
            callback(self.ti.get_template_context())


class _TaskInstance(RuntimeTaskInstance):
    """Airflow's task instance. What it would request from the supervisor is in memory."""

    _xcoms: dict[tuple[str, str, str], str] = PrivateAttr(default_factory=dict)
    _before: DagRun | None = PrivateAttr(None)

    def xcom_push(self, key: str, value: Any) -> None:
        self._xcoms[self.dag_id, self.task_id, key] = json.dumps(BaseXCom.serialize_value(value))

    def xcom_pull(
        self,
        task_ids: str | Iterable[str] | None = None,
        dag_id: str | None = None,
        key: str = _RETURNED,
        *_: Any,
        default: Any = None,
        **__: Any,
    ) -> Any:
        is_single = task_ids is None or isinstance(task_ids, str)
        names = [task_ids or self.task_id] if is_single else task_ids or ()
        texts = [self._xcoms.get((dag_id or self.dag_id, str(name), key)) for name in names]
        found = [default if text is None else _stored(text) for text in texts]
        return found[0] if is_single else found

    def get_previous_dagrun(self, state: str | None = None) -> DagRun | None:  # noqa: ARG002
        return self._before

    @staticmethod
    def get_task_states(*_: Any, **__: Any) -> dict[str, Any]:
        return {}

    @staticmethod
    def get_dr_count(*_: Any, **__: Any) -> int:
        # Earlier runs succeeded.
        return 1


def _stored(text: str) -> Any:
    """Return a value as Airflow returns it from its database."""
    return BaseXCom.deserialize_value(SimpleNamespace(value=json.loads(text)))


class _Store:
    """Airflow's task state store."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return json.loads(self._values[key]) if key in self._values else default

    def set(self, key: str, value: Any, **_: Any) -> None:
        self._values[key] = json.dumps(value)

    def delete(self, key: str) -> None:
        self._values.pop(key, None)
