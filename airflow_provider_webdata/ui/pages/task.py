# SPDX-License-Identifier: Apache-2.0
"""The tab of a task instance."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.exceptions import HTTPException

from airflow_provider_webdata.airflow_db.tasks import TaskName, happened_to, past_xcoms
from airflow_provider_webdata.api.endpoints import JOBS
from airflow_provider_webdata.api.errors import error_text
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.page_urls import task_tab
from airflow_provider_webdata.common.xcom_keys import PREVIEW
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.states.jobs import JobView, name_of
from airflow_provider_webdata.ui.lookups import Lookup
from airflow_provider_webdata.ui.previews import preview
from airflow_provider_webdata.ui.quality import KEYS, quality_of
from airflow_provider_webdata.ui.rendering import airflow_root
from airflow_provider_webdata.ui.tasks import is_number, map_index_of, summary_of, wait_in_worker
from airflow_provider_webdata.ui.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

    from airflow_provider_webdata.airflow_db.tasks import Happened
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
    from airflow_provider_webdata.ui.tasks import Failure, TaskSummary, WaitingTask

    from .page import PageView

CHANGES = ("new", "changed", "removed", "same", "failed", "emitted_again")
"""Counts of a run's pages against earlier runs, in the order in which the tab shows them."""
RUNS = 30
"""Number of runs whose measurements are compared."""
_ERRORS_SHOWN = 50
_MIN_PACE = timedelta(minutes=1)
"""Age from which a job's pace so far says something about its end."""


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


class Forecast(NamedTuple):
    """The end of a job that continues at its pace.

    :param left: time until then.
    :param timeout: time until its task times out, if that is earlier; else None.
    :param pages: pages that it has done by the timeout.
    :param credits: credits that it has used by the timeout; None if unknown.
    """

    left: timedelta
    timeout: timedelta | None = None
    pages: float = 0
    credits: float | None = None


async def page(page: PageView) -> Response:
    """Show a task instance: wait, results, credits, data quality, and timeline."""
    name = TaskName(
        page.required("dag_id"),
        page.required("run_id"),
        page.required("task_id"),
        # It may be the placeholder: docs/contributing/upstream/map_index_placeholder.md
        map_index_of(page.text("map_index")),
    )
    summary = await in_thread(summary_of, name)
    if summary is None or not summary.is_ours:
        return await page.render("task.html", title="Task", summary=None)
    conn_id = summary.conn_id
    own = conn_id is not None and await in_thread(page.visitor.may_read_connection, conn_id)
    happened = await in_thread(happened_to, name)
    wait = summary.wait or wait_in_worker(summary, happened)
    deliveries = await in_thread(_deliveries, page, summary) if own else []
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
        steps=_steps(summary, happened, deliveries),
        wait=wait,
        failure=_failure(summary),
        # A task with `save_to` returns no rows, only their number.
        preview=first._replace(total=summary.count or first.total)
        if first
        else preview(summary.pushed.get("return_value")),
        quality=checked,
        parts=_parts(summary),
        changes=_numbers(summary.fact("changes")),
        monitor=_monitor_link(summary),
        job=_job_query(summary, wait),
        job_name=name_of(summary.operation).capitalize() if summary.operation else "Job",
        stopped=await page.lookups.stopped_triggerer() if summary.wait else None,
        # The service's data and dashboard belong to the connection.
        may_read_connection=own,
        dashboard=await page.lookups.dashboard_url(conn_id) if conn_id is not None and own else None,
    )


async def job_part(page: PageView) -> Response:
    """Show the state of a task's job, and the errors of its failed pages."""
    conn_id, job_id, kind = page.required("conn_id"), page.required("job_id"), page.required("operation")
    if kind not in ALL_JOB_KINDS:
        raise HTTPException(400, f"operation must be one of {', '.join(ALL_JOB_KINDS)}.")
    until, shown = page.moment("until"), page.text("shown").split()
    view = await _look(page, conn_id, kind, job_id)
    errors: Lookup[Any] = Lookup()
    if JOBS[kind].errors is not None and view.value is not None:
        errors = await page.lookups.find(
            conn_id, ("errors", kind, job_id), lambda hook: hook.job_errors(kind, job_id)
        )
    failed = errors.value.failed if errors.value else []
    return await page.render(
        "task_job.html",
        title="Job",
        view=view,
        name=name_of(kind),
        forecast=None if view.value is None else forecast_of(view.value, until, datetime.now(timezone.utc)),
        timeout_link=error_link("WD-030"),
        # The tab has the same above, and the reason in better words: the service's own advice may contradict it.
        has_reason="reason" in shown,
        has_credits="credits" in shown,
        errors=errors,
        failed=failed[:_ERRORS_SHOWN],
        failures=len(failed),
        reasons=Counter(
            error.code or error_text(error.error) or "no reason given" for error in failed
        ).most_common(_ERRORS_SHOWN),
    )


def forecast_of(view: JobView, until: datetime | None, now: datetime) -> Forecast | None:
    """Return when a job will end; None if that is unknown.

    :param until: deadline of the task that waits for it, if any.
    """
    began, done, total = moment(str(view.created_at)), view.completed or 0, view.total or 0
    if view.is_over or began is None or now - began < _MIN_PACE or not 0 < done < total:
        return None
    try:
        left = (now - began) * ((total - done) / done)
        end = now + left
    except OverflowError:
        return None
    if until is None or not now < until < end:
        return Forecast(left)
    growth = (until - began) / (now - began)
    used = view.credits_used
    return Forecast(left, until - now, round(done * growth), None if used is None else round(used * growth))


async def _look(page: PageView, conn_id: str, kind: JobKind, job_id: str) -> Lookup[JobView]:
    async def ask(hook: Any) -> JobView:
        # The response then contains at most one document.
        limit = {} if JOBS[kind].documents is None else {"limit": 1}
        return JobView.of(kind, job_id, await hook.job_status(kind, job_id, **limit))

    return await page.lookups.find(conn_id, ("job", kind, job_id), ask)


def _steps(
    summary: TaskSummary, happened: Sequence[Happened], deliveries: Sequence[StoredDelivery]
) -> list[TimelineStep]:
    """Return a task's timeline, oldest first.

    :param deliveries: newest first.
    """
    steps: list[TimelineStep] = []
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
    delivered = [TimelineStep(one.received_at, "delivered", "Delivered", one) for one in reversed(deliveries)]
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
    return page.last_deliveries(summary.conn_id, wanted, 10)


def _parts(summary: TaskSummary) -> list[tuple[str, float]]:
    """Return a task's credits by operation."""
    parts = _mapping(_mapping(summary.pushed.get("credits")).get("by_operation"))
    return [(name.replace("_", " "), used) for name, used in parts.items() if is_number(used)]


def _numbers(value: Any) -> dict[str, float]:
    return {name: one for name in CHANGES if is_number(one := _mapping(value).get(name))}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _monitor_link(summary: TaskSummary) -> dict[str, str] | None:
    """Return the query parameters of the page of the task's monitor or check; None without one."""
    if summary.conn_id is None or "monitor_id" not in summary.ids:
        return None
    ids = {"conn_id": summary.conn_id, **summary.ids}
    return {name: ids[name] for name in ("conn_id", "monitor_id", "check_id") if name in ids}


def _failure(summary: TaskSummary) -> Failure | None:
    """Return the reason why the task failed. The tab names its connection once."""
    failure = summary.failure
    if failure is None or summary.conn_id is None:
        return failure
    step = failure.fix.removeprefix(f"Connection {summary.conn_id!r}: ")
    return failure._replace(fix=step[:1].upper() + step[1:])


def _job_query(summary: TaskSummary, wait: WaitingTask | None) -> dict[str, str] | None:
    """Return the query parameters of the part with the task's job; None without one."""
    if summary.conn_id is None or summary.operation is None or "job_id" not in summary.ids:
        return None
    query = {"conn_id": summary.conn_id, "operation": summary.operation, "job_id": summary.ids["job_id"]}
    known = {"reason": summary.is_explained, "credits": summary.credits is not None}
    if shown := " ".join(name for name, is_shown in known.items() if is_shown):
        query["shown"] = shown
    if wait is not None and wait.until is not None:
        query["until"] = wait.until.isoformat()
    return query
