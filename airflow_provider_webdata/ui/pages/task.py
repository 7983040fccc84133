"""The tabs of task instances and DAG runs, which show the provider's tasks."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.airflow_db.spent import used_once
from airflow_provider_webdata.airflow_db.tasks import TaskName, happened_to, past_xcoms
from airflow_provider_webdata.common.page_urls import task_tab
from airflow_provider_webdata.common.xcom_keys import PREVIEW
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.states.jobs import name_of
from airflow_provider_webdata.ui.previews import preview
from airflow_provider_webdata.ui.quality import KEYS, quality_of
from airflow_provider_webdata.ui.rendering import airflow_root
from airflow_provider_webdata.ui.tasks import is_number, map_index_of, sum_known, summaries_of_run, summary_of
from airflow_provider_webdata.ui.threads import in_thread

from .owners import deliveries_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.responses import Response

    from airflow_provider_webdata.airflow_db.tasks import Happened
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
    from airflow_provider_webdata.ui.tasks import TaskSummary

    from .page import PageView

TASKS = 500
CHANGES = ("new", "changed", "removed", "same", "failed")
"""Counts of a run against the last, in the order in which the tab shows them."""
RUNS = 30
"""Number of runs whose measurements are compared."""


class TimelineStep(NamedTuple):
    """A line of a task's timeline.

    :param at: time of the event.
    :param state: one of Airflow's task states, `sent`, or `delivered`.
    :param text: description of the event.
    :param delivery: the delivery, for `delivered`.
    """

    at: datetime
    state: str
    text: str
    delivery: StoredDelivery | None = None


class Group(NamedTuple):
    """The instances of one task in a run.

    :param task_id: id of the task.
    :param tasks: instances in the order of their index.
    :param states: number of instances in each state, and of `incomplete` ones.
    :param credits: total credits, each job counted once; None if no instance reported credits.
    :param results: total results; None if no instance reported a number, or a successful one did not.
    """

    task_id: str
    tasks: Sequence[TaskSummary]
    states: Counter[str]
    credits: float | None
    results: float | None


async def page(page: PageView) -> Response:
    """Show a task instance: wait, results, credits, data quality, and timeline."""
    name = TaskName(
        page.required("dag_id"),
        page.required("run_id"),
        page.required("task_id"),
        # Airflow does not replace the placeholder for a task that is not mapped.
        map_index_of(page.text("map_index")),
    )
    summary = await in_thread(summary_of, name)
    if summary is None or not summary.is_ours:
        return await page.render("task.html", title="Task", summary=None)
    conn_id = summary.conn_id
    own = conn_id is not None and await in_thread(page.visitor.may_read_connection, conn_id)
    steps = await in_thread(_steps, page, summary)
    first = preview(summary.pushed.get(PREVIEW))
    airflow = airflow_root(page.request)
    checked = await in_thread(
        quality_of,
        summary,
        lambda: past_xcoms(name, KEYS, RUNS),
        lambda run_id: f"{airflow}{task_tab(name._replace(run_id=run_id))}",
    )
    return await page.render(
        "task.html",
        title="Task",
        summary=summary,
        steps=steps,
        # A task with `output` returns no rows, only their number.
        preview=first._replace(total=summary.count or first.total)
        if first
        else preview(summary.pushed.get("return_value")),
        quality=checked,
        parts=_parts(summary),
        changes=_numbers(summary.fact("changes")),
        link=None if conn_id is None else _link(summary),
        stopped=await page.lookups.stopped_triggerer() if summary.wait else None,
        running_for=None
        if summary.ended or not summary.started
        else datetime.now(timezone.utc) - summary.started,
        # The service's data and dashboard belong to the connection.
        may_read_connection=own,
        dashboard=await page.lookups.dashboard_url(conn_id) if conn_id is not None and own else None,
    )


async def run(page: PageView) -> Response:
    """Show the provider's tasks of a DAG run, grouped by task."""
    dag_id, run_id = page.required("dag_id"), page.required("run_id")
    found = await in_thread(summaries_of_run, dag_id, run_id, TASKS + 1)
    has_more = len(found) > TASKS
    found = found[:TASKS]
    groups = _groups(found)
    waits = any(summary.wait for summary in found)
    return await page.render(
        "run.html",
        title="Run",
        groups=groups,
        credits=_used(found),
        states=sum((group.states for group in groups), Counter()),
        has_counts=any(one.count is not None for one in found),
        has_waits=waits,
        has_reasons=any(one.failure for one in found),
        stopped=await page.lookups.stopped_triggerer() if waits else None,
        first=TASKS if has_more else None,
    )


def _groups(tasks: Iterable[TaskSummary]) -> list[Group]:
    """Group task instances by task, in the order in which the first instance of each task started."""
    tasks = list(tasks)
    order = {task_id: place for place, task_id in enumerate(dict.fromkeys(one.name.task_id for one in tasks))}
    tasks.sort(key=lambda one: (order[one.name.task_id], one.name.map_index))
    found = []
    for task_id, members in groupby(tasks, key=lambda one: one.name.task_id):
        instances = list(members)
        states = (one.state or "no status" for one in instances)
        warned = ("incomplete" for one in instances if one.shortfalls)
        has_all = all(one.count is not None for one in instances if one.state == "success")
        found.append(
            Group(
                task_id,
                instances,
                Counter([*states, *warned]),
                _used(instances),
                sum_known(one.count for one in instances) if has_all else None,
            )
        )
    return found


def _used(tasks: Iterable[TaskSummary]) -> float | None:
    # A task without the XCom `credits` may have `creditsUsed`.
    return used_once(
        {"used": one.credits, "byOperation": {}} | _mapping(one.pushed.get("credits")) for one in tasks
    )


def _steps(page: PageView, summary: TaskSummary) -> list[TimelineStep]:
    """Return a task's timeline, oldest first."""
    steps: list[TimelineStep] = []
    happened = happened_to(summary.name)
    for number, one in enumerate(happened):
        earlier = {before.event for before in happened[:number] if before.attempt == one.attempt}
        steps.append(
            TimelineStep(one.at, one.event, _description(one, summary, resumed="deferred" in earlier))
        )
    if not steps and summary.started:
        # Airflow's audit log may have been cleaned.
        since = summary.wait.since if summary.wait else summary.started
        steps.append(TimelineStep(min(summary.started, since), "running", "Started"))
    if summary.wait and not any(step.state == "deferred" for step in steps):
        steps.append(TimelineStep(summary.wait.since, "deferred", "Deferred"))
    delivered = [
        TimelineStep(one.received_at, "delivered", "Delivered", one)
        for one in reversed(_deliveries(page, summary))
    ]
    if delivered:
        # The job's first delivery may arrive before the job is recorded.
        first = delivered[0].at
        steps = [
            step._replace(at=first, text=_sent(summary)) if step.state == "sent" and first < step.at else step
            for step in steps
        ]
    return sorted([*steps, *delivered], key=attrgetter("at"))


def _sent(summary: TaskSummary) -> str:
    return f"Sent the {name_of(summary.operation)}" if summary.operation else "Started the check"


def _description(one: Happened, summary: TaskSummary, *, resumed: bool) -> str:
    if one.event == "sent":
        # A retry pushes the id again, of the job that an earlier attempt started or of a new one.
        return _sent(summary) + (", or found that of an earlier attempt" if one.attempt > 1 else "")
    if one.event == "running":
        return "Resumed" if resumed else "Started" if one.attempt < 2 else f"Started attempt {one.attempt}"
    return {"deferred": "Deferred: the wait uses no worker slot", "success": "Succeeded"}.get(
        one.event, one.event.replace("_", " ").capitalize()
    )


def _deliveries(page: PageView, summary: TaskSummary) -> list[StoredDelivery]:
    job_id = summary.ids.get("check_id") or summary.ids.get("job_id")
    key = summary.wait.arguments.get("key") if summary.wait else None
    if summary.conn_id is None or not (job_id or key):
        return []
    wanted = DeliveryFilter(job_ids=(job_id,) if job_id else (), keys=(key,) if key else ())
    try:
        return deliveries_of(page, summary.conn_id, wanted, 10)
    except StoreUnavailableError:
        return []


def _parts(summary: TaskSummary) -> list[tuple[str, float]]:
    """Return a task's credits by operation."""
    parts = _mapping(_mapping(summary.pushed.get("credits")).get("byOperation"))
    return [(name.replace("_", " "), used) for name, used in parts.items() if is_number(used)]


def _numbers(value: Any) -> dict[str, float]:
    return {name: one for name in CHANGES if is_number(one := _mapping(value).get(name))}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _link(summary: TaskSummary) -> tuple[str, str, dict[str, str]] | None:
    """Return name, page, and query parameters of the task's job, check, or monitor."""
    ids = {"conn_id": str(summary.conn_id), **summary.ids}
    if summary.operation and "job_id" in ids:
        query = {"conn_id": ids["conn_id"], "operation": summary.operation, "job_id": ids["job_id"]}
        return name_of(summary.operation).capitalize(), "jobs/job", query
    if "monitor_id" in ids and "check_id" in ids:
        return "Check", "monitors/check", {name: ids[name] for name in ("conn_id", "monitor_id", "check_id")}
    if "monitor_id" in ids:
        return "Monitor", "monitors/monitor", {name: ids[name] for name in ("conn_id", "monitor_id")}
    return None
