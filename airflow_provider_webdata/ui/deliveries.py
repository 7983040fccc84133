# SPDX-License-Identifier: Apache-2.0
"""Deliveries by job or check, with the task that started it, and what they woke."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.airflow_db.tasks import STARTED, TaskName, starters_of
from airflow_provider_webdata.airflow_db.woken import StartedRun, runs_started, task_states
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.inbox.envelope import split_event
from airflow_provider_webdata.states.jobs import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.airflow_db.visitor import Visitor
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery

_ENDS = ("completed", "check.completed", "failed", "cancelled")


@dataclass(frozen=True)
class JobDeliveries:
    """Deliveries of one job or check, newest first.

    :param deliveries: at least one; without a job, exactly one.
    """

    deliveries: Sequence[StoredDelivery]

    @property
    def newest(self) -> StoredDelivery:
        """The newest delivery."""
        return self.deliveries[0]

    @property
    def title(self) -> str:
        """The job's kind, or the monitor's name, such as `Check of Prices`."""
        newest = self.newest
        if newest.monitor_id is not None:
            name = next((one.monitor_name for one in self.deliveries if one.monitor_name), None)
            return f"Check of {name or 'a monitor'}"
        kind, _ = split_event(newest.event or "")
        if kind in ALL_JOB_KINDS:
            return name_of(kind).capitalize()
        return newest.event or "Unnamed event"

    @property
    def state(self) -> str:
        """`completed`, `failed`, or `cancelled`; empty: none of the deliveries reports an end."""
        for one in self.deliveries:
            name = split_event(one.event or "")[1]
            if name in _ENDS:
                is_failed = name == "failed" or one.success is False
                return "failed" if is_failed else "cancelled" if name == "cancelled" else "completed"
        return ""

    @property
    def events(self) -> list[str]:
        """The events with their numbers, the newest first, such as `completed` and `page × 12 (1 failed)`."""
        names = [split_event(one.event or "unnamed")[1] for one in self.deliveries]
        failed = Counter(
            name for name, one in zip(names, self.deliveries, strict=True) if one.success is False
        )
        return [
            f"{name}{f' × {number:,}' if number > 1 else ''}"
            f"{f' ({failed[name]:,} failed)' if failed[name] and name not in _ENDS else ''}"
            for name, number in Counter(names).items()
        ]


class DeliveryRow(NamedTuple):
    """A job or check, with the facts of Airflow that the visitor may read.

    :param dag_id: DAG of the task that started the job or declared the monitor; empty: unknown.
    :param task_id: that task; empty: unknown.
    :param waiting: the task that started the job or check, and so may wait for its end.
    :param waiting_state: its state.
    :param runs: the DAG runs that the deliveries started.
    """

    job: JobDeliveries
    dag_id: str
    task_id: str
    waiting: TaskName | None
    waiting_state: str | None
    runs: list[StartedRun]


def by_job(deliveries: Sequence[StoredDelivery], most: int) -> tuple[list[JobDeliveries], int]:
    """Return the first jobs and checks among deliveries, and the number of deliveries up to the next one.

    :param deliveries: newest first. Their order becomes that of the jobs.
    """
    found: dict[tuple[str, str | int], list[StoredDelivery]] = {}
    for number, one in enumerate(deliveries):
        key = (one.conn_id, one.job_id or one.id)
        if key not in found and len(found) == most:
            return [JobDeliveries(group) for group in found.values()], number
        found.setdefault(key, []).append(one)
    return [JobDeliveries(group) for group in found.values()], len(deliveries)


def delivery_rows(visitor: Visitor, jobs: Sequence[JobDeliveries]) -> list[DeliveryRow]:
    """Return the rows of jobs and checks. Blocks."""
    deliveries = [one for job in jobs for one in job.deliveries]
    if not deliveries:
        return []
    job_ids = {one.job_id for one in deliveries if one.job_id}
    waiting = starters_of(job_ids, STARTED) if job_ids else {}
    times = [one.received_at for one in deliveries]
    runs = runs_started(
        *(min(times), max(times)),
        delivery_ids={one.id for one in deliveries},
        check_ids={one.job_id for one in deliveries if one.job_id and one.monitor_id},
    )
    named = {one.dag_id for one in deliveries if one.dag_id}
    readable = visitor.readable_dags(
        named | {task.dag_id for task in waiting.values()} | {run.dag_id for run in runs}
    )
    states = task_states([task for task in waiting.values() if task.dag_id in readable])
    return [
        _row(job, waiting, states, [run for run in runs if run.dag_id in readable], readable) for job in jobs
    ]


def _row(
    job: JobDeliveries,
    waiting: dict[str, TaskName],
    states: dict[TaskName, str | None],
    runs: list[StartedRun],
    readable: set[str],
) -> DeliveryRow:
    job_id, ids = job.newest.job_id, {one.id for one in job.deliveries}
    task = waiting.get(job_id or "")
    if task not in states:
        task = None
    dag_id, task_id = next(
        ((one.dag_id, one.task_id or "") for one in job.deliveries if one.dag_id),
        (task.dag_id, task.task_id) if task else ("", ""),
    )
    if dag_id not in readable:
        dag_id = task_id = ""
    its = [run for run in runs if run.delivery_id in ids or (job_id is not None and run.check_id == job_id)]
    unique = {(run.dag_id, run.run_id): run for run in its}
    return DeliveryRow(job, dag_id, task_id, task, states.get(task) if task else None, [*unique.values()])
