# SPDX-License-Identifier: Apache-2.0
"""Causes that need a person: of failed and rejected tasks, incomplete results, late waits, and failed events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from airflow_provider_webdata.airflow_db.troubled_tasks import troubled_tasks
from airflow_provider_webdata.common.page_urls import (
    UI_PATH,
    delivery_page,
    inbox_page,
    monitor_page,
    task_instance,
    task_tab,
)
from airflow_provider_webdata.common.xcom_keys import CREDITS, FAILURE, INCOMPLETE
from airflow_provider_webdata.inbox.envelope import split_event
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.inbox_server.storage.refusals import next_step
from airflow_provider_webdata.ui.next_steps import LATE_STEP, SHORTFALL_STEPS, argument_line
from airflow_provider_webdata.ui.rendering import number
from airflow_provider_webdata.ui.tasks import ATTENTION_KEYS, sum_known, summary_from

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
_OF_THE_CONNECTION = frozenset(
    {
        *("WD-001", "WD-010", "WD-011", "WD-017", "WD-018", "WD-019", "WD-066"),
        *("WD-401", "WD-402", "WD-403", "WD-429", "WD-500", "WD-503"),
    }
)
"""Codes of errors that all tasks of a connection have for the same reason."""
_OF_THE_SITE = frozenset({"WD-020", "WD-021", "WD-022", "WD-028", "WD-031"})
"""Codes of errors that all tasks of a site may have for the same reason."""
_JOB_FAILED = "WD-031"
_STATUS = re.compile(r"\bHTTP (\d{3})\b")
_ID = re.compile(r"\s*\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


class Affected(NamedTuple):
    """A task that needs a person, or another thing.

    :param at: time of the failure.
    :param task: the task, if it is one.
    :param name: name of the thing, if it is no task.
    :param page: path of the thing's page, if it has one and is no task.
    :param credits: credits that the task reported; None: unknown.
    """

    at: datetime
    task: TaskName | None = None
    name: str = ""
    page: str = ""
    credits: float | None = None

    @property
    def tab(self) -> str:
        """Path of the task's tab, or of the thing's page; empty: it has none."""
        return self.page if self.task is None else task_tab(self.task)

    @property
    def is_airflows(self) -> bool:
        """Whether Airflow shows the path itself, and not the pages' frame."""
        return not self.page.startswith(UI_PATH)


class Concern(NamedTuple):
    """Something that needs a person, and the cause that it shares with others.

    :param cause: key of the cause; equal ones are one.
    :param state: `failed`, `rejected`, `incomplete`, `late`, `no answer`, or `refused`.
    :param reason: what is wrong, also with the others of the cause.
    :param affected: the task or the other thing.
    :param detail: what is wrong with this one; empty: the same as the reason.
    :param step: the next step, as sentences; empty if unknown.
    :param failure: code of a failed task.
    :param line: argument that may solve it, as Python; empty: none is known.
    :param has_recovered: whether a later run of the task succeeded.
    """

    cause: tuple[str | None, ...]
    state: str
    reason: str
    affected: Affected
    detail: str = ""
    step: str = ""
    failure: Failure | None = None
    line: str = ""
    has_recovered: bool = False


class Cause(NamedTuple):
    """Concerns of one cause.

    :param newest: the newest concern, whose words describe all.
    :param affected: the tasks and other things, newest first.
    """

    newest: Concern
    affected: list[Affected]

    @property
    def extent(self) -> str:
        """The numbers of tasks and DAGs or of other things, if they are several, and the credits of the tasks."""
        credits = sum_known(one.credits for one in self.affected) or 0
        spent = [f"{number(credits)} credit{'' if credits == 1 else 's'} spent"] if credits else []
        if len(self.affected) == 1:
            return ", ".join(spent)
        tasks = [one.task for one in self.affected if one.task is not None]
        if not tasks:
            return f"{number(len(self.affected))} times"
        dag_ids = {task.dag_id for task in tasks}
        return ", ".join([counted(len(tasks), "task"), counted(len(dag_ids), "DAG"), *spent])

    @property
    def where(self) -> str:
        """The extent, or the name of the only task."""
        if len(self.affected) > 1 or (task := self.affected[0].task) is None:
            return self.extent
        return f"{task.dag_id}.{task.task_id}"

    @property
    def cleared_at(self) -> str:
        """Path of the newest task in Airflow, which can clear it; empty if something must be done before."""
        task = self.newest.affected.task
        failure = self.newest.failure
        if failure is None or task is None or failure.inspect_first:
            return ""
        return task_instance(task)


class TroubledSummary(NamedTuple):
    """A failed or incomplete task, and whether it succeeded in a later run."""

    summary: TaskSummary
    has_recovered: bool


def troubled_summaries(since: datetime) -> tuple[list[TroubledSummary], bool]:
    """Return the newest failed and incomplete tasks of all DAGs, and whether there are more. Blocks."""
    found, has_more = troubled_tasks(since, INCOMPLETE, (*ATTENTION_KEYS, CREDITS), MAX_TASKS)
    return [TroubledSummary(summary_from(one.stored), one.has_recovered) for one in found], has_more


def causes_of(concerns: Iterable[Concern]) -> list[Cause]:
    """Return the causes of concerns: first those that persist, and of each the newest first."""
    groups: dict[tuple[object, ...], list[Concern]] = {}
    for one in sorted(concerns, key=lambda one: one.affected.at, reverse=True):
        groups.setdefault((one.has_recovered, one.state, *one.cause), []).append(one)
    causes = [Cause(group[0], [one.affected for one in group]) for group in groups.values()]
    return sorted(causes, key=lambda one: one.newest.has_recovered)


def task_concern(troubled: TroubledSummary) -> Concern | None:
    """Return the concern for a task; None if it has none."""
    summary = troubled.summary
    at = summary.ended or summary.started
    if at is None:
        return None
    affected = Affected(at, summary.name, credits=summary.credits)
    place = summary.name.dag_id, summary.name.task_id
    if summary.rejected is not None:
        reason = f"{counted(summary.rejected.conditions, 'condition')} of data quality failed"
        concern = Concern(place, "rejected", reason, affected)
        if (failure := summary.failure) is not None and failure.code:
            concern = concern._replace(detail=failure.message, step=failure.fix, failure=failure)
        concern = _of_site(concern, summary)
    elif (failure := summary.failure) is not None:
        reason = _ID.sub("", failure.message)
        line = argument_line(failure, summary.arguments)
        concern = Concern(
            _cause_of(summary, failure, reason),
            "failed",
            reason,
            affected,
            step=failure.fix,
            failure=failure,
            line=line,
        )
        concern = _of_site(concern, summary)
    elif summary.shortfalls:
        kinds = sorted(one.kind for one in summary.shortfalls)
        reason = "; ".join(one.text() for one in summary.shortfalls)
        steps = " ".join(dict.fromkeys(SHORTFALL_STEPS[kind] for kind in kinds if kind in SHORTFALL_STEPS))
        concern = Concern((*place, *kinds), "incomplete", reason, affected, step=steps)
    else:
        return None
    return concern._replace(has_recovered=troubled.has_recovered)


def _cause_of(summary: TaskSummary, failure: Failure, reason: str) -> tuple[str | None, ...]:
    if not failure.code:
        return (reason,)
    if failure.code in _OF_THE_CONNECTION:
        return failure.code, summary.conn_id
    host = _host_of(summary.arguments.get("url"))
    if failure.code in _OF_THE_SITE and host:
        return failure.code, host
    return failure.code, summary.name.dag_id, summary.name.task_id


def _of_site(concern: Concern, summary: TaskSummary) -> Concern:
    """Return the concern with a site as its cause, if the first failed pages have one status or one host."""
    found = summary.pushed.get(FAILURE)
    reasons = found.get("reasons") if isinstance(found, dict) else None
    # Any task may push an XCom of that name.
    pages = [one for one in reasons if isinstance(one, dict)] if isinstance(reasons, list) else []
    statuses = {one["status"] for one in pages if type(one.get("status")) is int}
    hosts = {host for one in pages if (host := _host_of(one.get("url")))}
    code = concern.failure.code if concern.failure else ""
    # The status in the text of other errors is that of the service's own response.
    if code == _JOB_FAILED and not pages:
        statuses = {int(status) for status in _STATUS.findall(concern.reason)}
        hosts = {host} if statuses and (host := _host_of(summary.arguments.get("url"))) else set()
    if not hosts or len(statuses) > 1 or (len(hosts) > 1 and not statuses):
        return concern
    problem = f"HTTP {statuses.pop()}" if statuses else "Pages failed"
    detail = concern.detail or concern.reason
    if len(hosts) > 1:
        return concern._replace(reason=f"{problem} at several sites", detail=detail)
    site = hosts.pop()
    return concern._replace(cause=(code, problem, site), reason=f"{problem} at {site}", detail=detail)


def _host_of(url: object) -> str | None:
    try:
        return urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return None


def late_wait(wait: WaitingTask) -> Concern:
    """Return the concern for a wait whose deadline has passed."""
    what = _ID.sub("", wait.what)
    affected = Affected(wait.until or wait.since, wait.task)
    reason = f"Waits for {what} after its deadline"
    return Concern((wait.conn_id, what), "late", reason, affected, step=LATE_STEP)


def unanswered(conn_id: str, problem: str, at: datetime) -> Concern:
    """Return the concern for a connection whose service does not respond as it should."""
    reason = f"Connection {conn_id} does not work"
    return Concern((conn_id,), "no answer", reason, Affected(at, page="/connections", name=conn_id), problem)


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
        check = check_page(one)
        affected = Affected(
            one.received_at, name="Open the check" if check else job_id, page=check or delivery_page(one.id)
        )
        cause = one.conn_id, one.monitor_id, reason
        found[job_id] = Concern(cause, "failed", reason[:1].upper() + reason[1:], affected)
    return list(found.values())


def check_page(delivery: StoredDelivery) -> str | None:
    """Return the path of the page of the monitor and check that a delivery is about; None if it is about no check."""
    if delivery.monitor_id is None or delivery.job_id is None:
        return None
    return monitor_page(delivery.conn_id, delivery.monitor_id, delivery.job_id)


def refused_concerns(refused: Iterable[RefusedDeliveries]) -> list[Concern]:
    """Return a concern for each connection and reason of refused deliveries.

    :param refused: newest first.
    """
    groups: dict[tuple[str, str], list[RefusedDeliveries]] = {}
    for one in refused:
        groups.setdefault((one.conn_id, one.text()), []).append(one)
    return [
        Concern(
            (conn_id, reason),
            "refused",
            _refused(sum(one.number for one in group), reason),
            Affected(group[0].last, name=f"connection {conn_id}", page=inbox_page(conn_id)),
            step=next_step([group[0].reason]),
            has_recovered=group[0].is_before_accepted,
        )
        for (conn_id, reason), group in groups.items()
    ]


def _refused(count: int, reason: str) -> str:
    return (
        f"1 delivery {reason} was refused"
        if count == 1
        else f"{number(count)} deliveries {reason} were refused"
    )


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as `3 tasks`."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"
