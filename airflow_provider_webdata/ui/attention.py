"""Concerns that need a person: failed and rejected tasks, incomplete results, late waits, and failed events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.airflow_db.troubled_tasks import troubled_tasks
from airflow_provider_webdata.common.page_urls import delivery_page, inbox_page, monitor_page
from airflow_provider_webdata.common.xcom_keys import INCOMPLETE
from airflow_provider_webdata.inbox.envelope import split_event
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.inbox_server.storage.refusals import next_step
from airflow_provider_webdata.ui.tasks import ATTENTION_KEYS, summary_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from airflow_provider_webdata.airflow_db.tasks import TaskName
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
    from airflow_provider_webdata.inbox_server.storage.refusals import RefusedDeliveries
    from airflow_provider_webdata.ui.tasks import Failure, TaskSummary, WaitingTask

MAX_TASKS = 500
"""Maximum number of failed tasks, and of incomplete ones, that are read."""
_FAILED = ("failed", "cancelled")
_CHECK = "check.completed"


class Concern(NamedTuple):
    """Something that needs a person. Equal ones of a task are one.

    :param state: `failed`, `rejected`, `incomplete`, `late`, `no answer`, or `refused`.
    :param reason: what is wrong.
    :param at: time of the newest.
    :param name: name of the thing, if it is no task.
    :param task: the newest task, if it is one.
    :param page: path of the thing's page, if it has one and is no task.
    :param failure: code and next step of a failed task.
    :param times: number of tasks.
    :param has_recovered: whether a later run of each task succeeded.
    """

    state: str
    reason: str
    at: datetime
    name: str = ""
    task: TaskName | None = None
    page: str = ""
    failure: Failure | None = None
    times: int = 1
    has_recovered: bool = False


class TroubledSummary(NamedTuple):
    """A failed or incomplete task, and whether it succeeded in a later run."""

    summary: TaskSummary
    has_recovered: bool


def troubled_summaries(since: datetime) -> tuple[list[TroubledSummary], bool]:
    """Return the newest failed and incomplete tasks of all DAGs, and whether there are more. Blocks."""
    found, has_more = troubled_tasks(since, INCOMPLETE, ATTENTION_KEYS, MAX_TASKS)
    return [TroubledSummary(summary_from(one.stored), one.has_recovered) for one in found], has_more


def task_concerns(tasks: Iterable[TroubledSummary]) -> list[Concern]:
    """Return a concern for each task and reason."""
    groups: dict[tuple[str, ...], list[tuple[Concern, bool]]] = {}
    for summary, has_recovered in tasks:
        if (concern := _concern(summary)) is not None:
            code = concern.failure.code if concern.failure else ""
            key = (summary.name.dag_id, summary.name.task_id, concern.state, code or concern.reason)
            groups.setdefault(key, []).append((concern, has_recovered))
    return [
        max((one for one, _ in group), key=lambda one: one.at)._replace(
            times=len(group), has_recovered=all(has_recovered for _, has_recovered in group)
        )
        for group in groups.values()
    ]


def _concern(summary: TaskSummary) -> Concern | None:
    at = summary.ended or summary.started
    if at is None:
        return None
    if summary.rejected is not None:
        number = summary.rejected.conditions
        reason = f"{number} condition{'' if number == 1 else 's'} of data quality failed"
        return Concern("rejected", reason, at, task=summary.name)
    if summary.failure is not None:
        return Concern("failed", summary.failure.message, at, task=summary.name, failure=summary.failure)
    if summary.shortfalls:
        reason = "; ".join(one.text() for one in summary.shortfalls)
        return Concern("incomplete", reason, at, task=summary.name)
    return None


def late_wait(wait: WaitingTask) -> Concern:
    """Return the concern for a wait whose deadline has passed."""
    return Concern(
        "late", f"waits for {wait.what} after its deadline", wait.until or wait.since, task=wait.task
    )


def unanswered(conn_id: str, problem: str, at: datetime) -> Concern:
    """Return the concern for a connection whose service does not respond as it should."""
    return Concern("no answer", problem, at, f"connection {conn_id}")


def failure_filters(since: datetime) -> list[DeliveryFilter]:
    """Return filters for events of failed jobs, and for those of checks, of which some failed."""
    return [DeliveryFilter(events=events, received_after=since) for events in (_FAILED, (_CHECK,))]


def reports_failure(delivery: StoredDelivery) -> bool:
    """Return whether a delivery reports that a job or a check failed."""
    _, name = split_event(delivery.event or "")
    return delivery.job_id is not None and (name in _FAILED or delivery.success is False)


def delivery_concerns(deliveries: Iterable[StoredDelivery], known: Collection[str]) -> list[Concern]:
    """Return a concern for each job or check that failed.

    :param deliveries: those that report a failure, newest first.
    :param known: ids of jobs and checks whose tasks are concerns.
    """
    found: dict[str, Concern] = {}
    for one in deliveries:
        job_id = one.job_id or ""
        if job_id in known or job_id in found:
            continue
        operation, name = split_event(one.event or "")
        words = (operation or "job").replace("_", " ")
        # A check of which only some pages failed is reported as no success, too.
        reason = f"{words} {name}" if name in _FAILED else "the monitor's check, or a page of it, failed"
        page = check_page(one) or delivery_page(one.id)
        found[job_id] = Concern("failed", reason, one.received_at, job_id, page=page)
    return list(found.values())


def check_page(delivery: StoredDelivery) -> str | None:
    """Return the path of the page of the monitor and check that a delivery is about; None if it is about no check."""
    if delivery.monitor_id is None or delivery.job_id is None:
        return None
    return monitor_page(delivery.conn_id, delivery.monitor_id, delivery.job_id)


def by_urgency(concerns: Iterable[Concern]) -> list[Concern]:
    """Return the concerns: first those that persist, and of each the newest first."""
    newest_first = sorted(concerns, key=lambda one: one.at, reverse=True)
    return sorted(newest_first, key=lambda one: one.has_recovered)


def refused_concerns(refused: Iterable[RefusedDeliveries]) -> list[Concern]:
    """Return a concern for each connection and reason of refused deliveries.

    :param refused: newest first.
    """
    groups: dict[tuple[str, str], list[RefusedDeliveries]] = {}
    for one in refused:
        groups.setdefault((one.conn_id, one.text()), []).append(one)
    return [
        Concern(
            "refused",
            f"{sum(one.number for one in group):,} deliveries {reason} were refused. {next_step([group[0].reason])}",
            group[0].last,
            f"connection {conn_id}",
            page=inbox_page(conn_id),
            has_recovered=group[0].is_before_accepted,
        )
        for (conn_id, reason), group in groups.items()
    ]
