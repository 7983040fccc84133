# SPDX-License-Identifier: Apache-2.0
"""Operators executed in this process: signals, crashes, a misbehaving service, and tests that need no DAG run."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, Literal
from unittest.mock import patch

import httpx
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.common.xcom_keys import XCOM_KEYS
from airflow_provider_webdata.states.task_record import KEY, TaskRecord, stored_form


@dataclass
class TaskInstance:
    """The part of Airflow's task instance that operators use.

    :param first_reschedule: when the try was first rescheduled, for sensors of Airflow.
    :param earlier: XComs of former runs, by key.
    :param states: states of tasks by run; runs without any are successful, and Airflow has deleted their tasks; of a
        deleted run, they are None.
    """

    try_number: int = 1
    max_tries: int = 0
    dag_id: str = "d"
    run_id: str = "r"
    task_id: str = "t"
    map_index: int = -1
    first_reschedule: Any = None
    start_date: Any = None
    earlier: dict[str, Any] = field(default_factory=dict)
    states: Mapping[str, Mapping[str, str | None] | None] = field(default_factory=dict)
    xcom: dict[str, Any] = field(default_factory=dict)
    task: Any = field(default_factory=lambda: SimpleNamespace(retries=0, on_success_callback=()))

    def xcom_push(self, key: str, value: Any) -> None:
        assert key not in XCOM_KEYS or not XCOM_KEYS[key].in_result, f"xcom_keys.py: {key} is a separate XCom"
        # As Airflow stores it: a value that is not JSON fails here.
        self.xcom[key] = json.loads(json.dumps(value))

    def xcom_pull(
        self,
        key: str,
        task_ids: Any = None,
        map_indexes: Any = "all",
        include_prior_dates: bool = False,
        **_: Any,
    ) -> Any:
        if task_ids is None and not include_prior_dates:
            return self.xcom.get(key)
        found = self.earlier.get(key)
        every = found if isinstance(found, list) else [found]
        if map_indexes != "all":
            return every[0]
        # Of all runs and map indexes; of one task, a single value is no list.
        return every if isinstance(task_ids, list) or len(every) > 1 else every[0]

    def get_task_states(
        self, dag_id: str, task_ids: list[str], run_ids: list[str], map_index: int | None = None
    ) -> dict[str, dict[str, str | None]]:
        [run_id] = run_ids
        found = self.states.get(run_id, {}) or {}
        # Airflow appends the index of a mapped task's instance to its name.
        return {
            run_id: {name: found[name] for name in found if {name, re.sub(r"_\d+$", "", name)} & {*task_ids}}
        }

    def get_dr_count(self, dag_id: str, run_ids: list[str], states: list[str]) -> int:
        return len([run_id for run_id in run_ids if self.states.get(run_id, {}) is not None])

    def get_previous_dagrun(self) -> Any:
        return SimpleNamespace() if self.earlier else None

    def get_first_reschedule_date(self, context: Any) -> Any:
        return self.first_reschedule


class KilledError(BaseException):
    """Ends an attempt where a kill would."""


def _has_tuple(value: Any) -> bool:
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, tuple):
            return True
        left += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return False


class StateStore:
    """Airflow's task state store, which outlives a try."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return json.loads(self.values[key]) if key in self.values else default

    def set(self, key: str, value: Any, *, retention: timedelta | None = None) -> None:
        self.values[key] = json.dumps(value)
        assert not _has_tuple(value), "Airflow's store rejects tuples"

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


@contextmanager
def killed_in_a_call(store: StateStore) -> Iterator[None]:
    """Kill the attempt that runs in the block once the service has done its first billed call.

    The store keeps its state of that moment, and no more requests are sent.
    """
    left: list[dict[str, str]] = []
    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def kill(method: str) -> None:
        if method == "POST":
            left.append(dict(store.values))
        if left:
            raise KilledError

    def sending(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        kill("")
        response = send(client, request, **options)
        kill(request.method)
        return response

    async def sending_async(
        client: httpx.AsyncClient, request: httpx.Request, **options: Any
    ) -> httpx.Response:
        kill("")
        response = await send_async(client, request, **options)
        kill(request.method)
        return response

    with patch.object(httpx.Client, "send", sending), patch.object(httpx.AsyncClient, "send", sending_async):
        try:
            yield
        except KilledError:
            store.values = left[0]
        else:
            raise AssertionError("no billed call was sent")


def context_of(
    ti: TaskInstance, store: StateStore | Literal["new"] | None = "new", **more: Any
) -> dict[str, Any]:
    """Return the context of an attempt.

    :param store: the task state store; None stands for Airflow 3.2, `new` for one that no other attempt knows.
    """
    store = StateStore() if store == "new" else store
    return {"ti": ti, **({"task_state_store": store} if store is not None else {}), **more}


def postponed(seconds: float, reschedules: int = 1) -> dict[str, Any]:
    """Return the context of an attempt that was first rescheduled some seconds ago."""
    store, moment = StateStore(), datetime.now(timezone.utc) - timedelta(seconds=seconds)
    store.set(KEY, stored_form(TaskRecord(max_tries=0, attempt=1, postponed_at=moment)))
    return context_of(TaskInstance(), store, task_reschedule_count=reschedules)


def accept(context: Mapping[str, Any]) -> None:
    """Call what Airflow calls in the worker once it has stored the result of an attempt."""
    for callback in context["ti"].task.on_success_callback:
        callback(context)


def execute(operator: Any, context: dict[str, Any]) -> Any:
    """Execute one attempt: render the templates, call the operator, and run the trigger that it defers to."""
    method = ""
    arguments: dict[str, Any] = {}
    while True:
        # Airflow has a new object in each worker.
        task = copy.copy(operator)
        task.render_template_fields(context)
        try:
            return task.execute(context) if not method else task.resume_execution(method, arguments, context)
        except TaskDeferred as deferred:
            # Airflow keeps the XComs.
            context = {**context, "ti": copy.copy(context["ti"])}
            method = deferred.method_name
            arguments = {**(deferred.kwargs or {}), "event": asyncio.run(_first_event(deferred.trigger))}


def parts_of(operator: Any, value: Any) -> dict[str, Any]:
    """Return what Airflow pushes of a return value besides that value, by key."""
    return {**value} if operator.multiple_outputs and isinstance(value, Mapping) else {}


async def _first_event(trigger: Any) -> Any:
    _, arguments = trigger.serialize()
    there = type(trigger)(**json.loads(json.dumps(arguments)))
    return json.loads(json.dumps((await anext(there.run())).payload))


@dataclass
class Outcome:
    """The end of a task, as Airflow would have it.

    :param state: `success`, `failed`, or `skipped`.
    :param try_number: number of the last attempt.
    :param value: the return value of the last attempt.
    :param error: the exception of the last attempt.
    :param xcom: the XComs that it pushed besides the return value.
    :param reschedules: how often the task was rescheduled.
    """

    state: str
    try_number: int
    value: Any
    error: BaseException | None
    xcom: dict[str, Any]
    reschedules: int

    @property
    def ended(self) -> tuple[str, int]:
        """State and number of the last attempt."""
        return self.state, self.try_number


def run(
    operator: Any,
    store: StateStore | Literal["new"] | None = "new",
    *,
    day: datetime | None = None,
    until: datetime | None = None,
    partition: str | None = None,
    earlier: dict[str, Any] | None = None,
    states: Mapping[str, Mapping[str, str | None] | None] | None = None,
    map_index: int = -1,
    before_try: Callable[[int], object] = lambda _: None,
) -> Outcome:
    """Run a task to its end, with the retries and reschedules that Airflow would make, but without their delays.

    :param operator: its `retries` count.
    :param store: the task state store; None stands for Airflow 3.2. Default: a new one.
    :param day: the logical date; runs of different days are different DAG runs. None: a run without one.
    :param until: the end of the data interval. Default: the logical date.
    :param partition: the partition key; runs of different partitions are different DAG runs.
    :param earlier: XComs of former runs, by key.
    :param states: states of tasks by run; see `TaskInstance`. The id of a run is that of `run_id_of`.
    :param map_index: index of a mapped task.
    :param before_try: called with the number of each attempt.
    """
    store = StateStore() if store == "new" else store
    now = datetime.now(timezone.utc)
    dag_run = SimpleNamespace(
        start_date=now,
        run_after=day or now,
        data_interval_start=day,
        data_interval_end=until or day,
        partition_key=partition,
        partition_date=None,
    )
    first_reschedule: datetime | None = None
    reschedules = 0
    number = 1
    while True:
        before_try(number)
        ti = TaskInstance(
            number,
            operator.retries,
            run_id=run_id_of(day, partition),
            **({"dag_id": operator.dag_id} if operator.has_dag() else {}),
            task_id=operator.task_id,
            map_index=map_index,
            first_reschedule=first_reschedule,
            start_date=datetime.now(timezone.utc),
            earlier=earlier or {},
            states=states or {},
            # Airflow has a new object in each attempt.
            task=copy.copy(operator),
        )
        context = context_of(
            ti,
            store,
            dag_run=dag_run,
            task=ti.task,
            dag=operator.dag if operator.has_dag() else None,
            task_reschedule_count=reschedules,
        )
        state, value = "failed", None
        error: Exception | None = None
        try:
            state, value = "success", execute(operator, context)
            for key, part in parts_of(operator, value).items():
                ti.xcom_push(key, part)
            accept(context)
        except AirflowRescheduleException:
            first_reschedule = first_reschedule or datetime.now(timezone.utc)
            reschedules += 1
            continue
        except AirflowSkipException as raised:
            state, error = "skipped", raised
        except Exception as raised:
            if number <= operator.retries and is_retried(operator, raised, number):
                number += 1
                first_reschedule = None
                continue
            error = raised
        return Outcome(state, number, value, error, ti.xcom, reschedules)


def fixed(path: str) -> str:
    """Return a template of a path, which a task with changes accepts: its value may differ between runs."""
    return f"{{{{ dag_run and '{path}' }}}}"


def run_id_of(day: datetime | None, partition: str | None = None) -> str:
    """Return the id of a DAG run in `run`."""
    return f"r{day or ''}{partition or ''}"


def is_retried(operator: Any, error: BaseException, number: int = 1) -> bool:
    """Return whether Airflow would make another attempt after an error, provided that one is left."""
    if isinstance(error, (AirflowFailException, AirflowSensorTimeout)):
        return False
    policy = operator.retry_policy if HAS_RETRY_POLICIES else None
    return policy is None or policy.evaluate(error, number, operator.retries).action.value != "fail"
