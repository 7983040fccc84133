# SPDX-License-Identifier: Apache-2.0
"""Monitors, their check history, and the findings of a check."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from cron_descriptor import Options, get_description

from airflow_provider_webdata.airflow_db.tasks import starters_of
from airflow_provider_webdata.airflow_db.woken import runs_started
from airflow_provider_webdata.api.models import StoredWebhook
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.links import docs_link
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.hooks.environment import environment
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.states.monitor_decision import Listed, Reporter, mark_of
from airflow_provider_webdata.ui.changes import courses_of
from airflow_provider_webdata.ui.charts import small_line
from airflow_provider_webdata.ui.deliveries import by_job, delivery_rows
from airflow_provider_webdata.ui.diffs import (
    WordBudget,
    difference,
    lines_of,
    screenshot_of,
    side_by_side,
    values_of,
)
from airflow_provider_webdata.ui.lookups import Lookup
from airflow_provider_webdata.ui.tasks import sum_known, task_named
from airflow_provider_webdata.ui.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from starlette.responses import Response

    from airflow_provider_webdata.airflow_db.tasks import TaskName
    from airflow_provider_webdata.airflow_db.woken import StartedRun
    from airflow_provider_webdata.api.models import Monitor, MonitorCheck

    from .page import PageView

_CLOCKS_APART = timedelta(hours=1)
"""Maximum difference of the service's clock from Airflow's."""
_EVENT_DRIVEN = docs_link("event_driven.md#a-dag-for-each-check")
_DECLARES = "WebDataCreateMonitorOperator"
ROWS = 50
CHECKS = 50
PAGES = 25
_STRIP = 14
"""Number of checks beside a monitor in the list."""
_STRIPS = 20
"""Maximum number of monitors in the list that show their checks. Each needs a request to the service."""
STRIP_KEPT = 300.0
_MAX_CRON = 200
_OUTCOMES = ("error", "changed", "removed", "new")
_WORDS = Options()
_WORDS.use_24hour_time_format = True
_WORDS.verbose = True


async def page(page: PageView) -> Response:
    """Show the page, which loads the list separately."""
    return await page.render(
        "monitors.html",
        title="Monitors",
        conn_ids=await page.conn_ids(),
        is_any_hidden=await page.is_any_connection_hidden(),
        is_list_incomplete=await page.lookups.is_list_incomplete(),
        given={"conn_id": page.text("conn_id")},
    )


async def list_part(page: PageView) -> Response:
    """Show a connection's monitors, newest first."""
    conn_id, offset = page.required("conn_id"), page.whole("offset")
    found, problem = await checked_monitors(page, conn_id, offset)
    rows = await in_thread(_rows, page, conn_id, [monitor for monitor, _ in found])
    for row, (_, found_checks) in zip(rows, found, strict=True):
        checks = found_checks.value or []
        row["strip"] = [(check, outcome_of(check)) for check in checks]
        row["used"] = sum_known(known_credits(check.actual_credits) for check in checks)
        row["problem"] = found_checks.problem
    return await page.render(
        "monitors_list.html",
        title="Monitors",
        conn_id=conn_id,
        rows=rows,
        problem=problem,
        following=offset + ROWS if len(found) == ROWS else None,
        offset=offset,
    )


async def checked_monitors(
    page: PageView, conn_id: str, offset: int = 0
) -> tuple[list[tuple[Monitor, Lookup[list[MonitorCheck]]]], str | None]:
    """Return a connection's monitors, newest first, with their last checks, and why they cannot be read."""
    found = await page.lookups.find(
        conn_id, ("monitors", offset), lambda hook: hook.list_monitors(limit=ROWS, offset=offset)
    )
    # The service may return more than requested.
    monitors = (found.value or [])[:ROWS]
    lists = await asyncio.gather(*(_last_checks(page, conn_id, one) for one in monitors[:_STRIPS]))
    lists += [Lookup[Any]()] * (len(monitors) - len(lists))
    return [*zip(monitors, lists, strict=True)], found.problem


async def _last_checks(page: PageView, conn_id: str, monitor: Monitor) -> Lookup[list[MonitorCheck]]:
    found = await page.lookups.find(
        conn_id,
        ("strip", monitor.id),
        lambda hook: hook.list_monitor_checks(monitor.id, limit=_STRIP),
        STRIP_KEPT,
    )
    return replace(found, value=found.value[:_STRIP]) if found.value else found


async def one(page: PageView) -> Response:
    """Show a monitor's page with its deliveries. The page loads the checks separately."""
    conn_id, monitor_id = page.required("conn_id"), page.required("monitor_id")
    wanted = DeliveryFilter(monitor_ids=(monitor_id,))
    deliveries = await in_thread(page.last_deliveries, conn_id, wanted, 10)
    name = next((one.monitor_name for one in deliveries if one.monitor_name), None)
    if name is None:
        found = await _monitor(page, conn_id, monitor_id)
        name = found.value.name if found.value else None
    return await page.render(
        "monitor.html",
        title=name or "Monitor",
        conn_id=conn_id,
        monitor_id=monitor_id,
        check_id=page.text("check_id"),
        rows=await in_thread(delivery_rows, page.visitor, by_job(deliveries, len(deliveries))[0]),
    )


async def _monitor(page: PageView, conn_id: str, monitor_id: str) -> Lookup[Monitor]:
    return await page.lookups.find(
        conn_id, ("monitor", monitor_id), lambda hook: hook.get_monitor(monitor_id)
    )


async def one_part(page: PageView) -> Response:
    """Show a monitor and its check history."""
    conn_id, monitor_id = page.required("conn_id"), page.required("monitor_id")
    found = await _monitor(page, conn_id, monitor_id)
    checks = await page.lookups.find(
        conn_id, ("checks", monitor_id), lambda hook: hook.list_monitor_checks(monitor_id, limit=CHECKS)
    )
    row = (await in_thread(_rows, page, conn_id, [found.value]))[0] if found.value is not None else None
    listed = (checks.value or [])[:CHECKS]
    shown = [
        {"check": check, "finished": moment(check.finished_at), "outcome": outcome_of(check)}
        for check in listed
    ]
    # The newest check with findings.
    telling = next((check.id for check in listed if outcome_of(check) != "same"), None)
    return await page.render(
        "monitor_part.html",
        title="Monitor",
        conn_id=conn_id,
        monitor_id=monitor_id,
        row=row,
        shown=shown,
        chosen=page.text("check_id") or telling or (listed[0].id if listed else None),
        used=sum_known([0, *(known_credits(check.actual_credits) for check in listed)]),
        found=found,
        checks=checks,
    )


async def values_part(page: PageView) -> Response:
    """Show the numbers that changed in a monitor's last checks, each as a line."""
    conn_id, monitor_id = page.required("conn_id"), page.required("monitor_id")
    checks = await page.lookups.find(
        conn_id, ("checks", monitor_id), lambda hook: hook.list_monitor_checks(monitor_id, limit=CHECKS)
    )
    changed = [one for one in (checks.value or [])[:_STRIP] if outcome_of(one) == "changed"]
    found = await asyncio.gather(
        *(
            page.lookups.find(
                conn_id,
                ("changes", monitor_id, one.id),
                lambda hook, one=one: hook.get_monitor_check(  # type: ignore[misc]
                    monitor_id, one.id, limit=PAGES, status="changed"
                ),
                STRIP_KEPT,
            )
            for one in changed
        )
    )
    courses = courses_of((check.value.pages or [])[:PAGES] for check in reversed(found) if check.value)
    rows = [(url, path, course) for (url, path), course in courses.items() if len(course) > 1]
    return await page.render(
        "monitor_values.html",
        title="Values",
        rows=[
            (
                *(url, path, course),
                small_line(course, f"{path} in the last checks"),
                difference(course[0], course[-1]),
            )
            for url, path, course in rows[:PAGES]
        ],
        problems=[one.problem for one in (checks, *found) if one.problem],
    )


async def check_part(page: PageView) -> Response:
    """Show the findings of a check by page."""
    conn_id, monitor_id = page.required("conn_id"), page.required("monitor_id")
    check_id, skip, status = page.required("check_id"), page.whole("skip"), page.text("status")
    found = await page.lookups.find(
        conn_id,
        ("check", monitor_id, check_id, skip, status),
        lambda hook: hook.get_monitor_check(
            monitor_id, check_id, limit=PAGES, skip=skip, status=status or None
        ),
    )
    pages = (found.value.pages or [])[:PAGES] if found.value else []
    budget = WordBudget()
    shown = await in_thread(
        lambda: [
            {
                "page": one,
                "sides": [*side_by_side(lines_of(one), budget)],
                "changes": values_of(one),
                "screenshot": screenshot_of(one),
            }
            for one in pages
        ]
    )
    finished = moment(found.value.finished_at) if found.value else None
    return await page.render(
        "monitor_check.html",
        title="Check",
        check=found.value,
        finished=finished,
        runs=await in_thread(_runs, page, check_id, finished) if finished and not skip else [],
        has_findings=found.value is not None and outcome_of(found.value) != "same",
        event_driven=_EVENT_DRIVEN,
        problem=found.problem,
        pages=shown,
        skip=skip,
        following=skip + PAGES if len(pages) == PAGES else None,
    )


def _runs(page: PageView, check_id: str, finished: datetime) -> list[StartedRun]:
    """Return the DAG runs that a check started, of DAGs that the visitor may read."""
    try:
        runs = runs_started(finished - _CLOCKS_APART, finished, check_ids={check_id})
    except OverflowError:
        # At the first or last day that a date can name.
        return []
    readable = page.visitor.readable_dags({run.dag_id for run in runs})
    return [run for run in runs if run.dag_id in readable]


def _rows(page: PageView, conn_id: str, monitors: Sequence[Monitor]) -> list[dict[str, Any]]:
    tasks = _declarers_of(monitors)
    readable = page.visitor.readable_dags({task.dag_id for task in tasks.values()})
    tasks = {one_id: task for one_id, task in tasks.items() if task.dag_id in readable}
    return [_row(page, conn_id, one, tasks.get(one.id or "")) for one in monitors]


def _declarers_of(monitors: Sequence[Monitor]) -> dict[str, TaskName]:
    """Return the tasks that declare monitors, by monitor id: as their webhooks name them, or the newest."""
    ids = [one.id for one in monitors if one.id]
    found = starters_of(ids, ("monitor_id",), _DECLARES) if ids else {}
    for one in monitors:
        webhook = one.webhook
        metadata = webhook.metadata if isinstance(webhook, StoredWebhook) else None
        mark = mark_of(metadata)
        if mark is not None and mark.environment != environment():
            # It has a task of the same name in another Airflow.
            found.pop(one.id, None)
        elif one.id and (task := task_named(metadata)) is not None:
            found[one.id] = task
    return found


def _row(page: PageView, conn_id: str, monitor: Monitor, task: TaskName | None) -> dict[str, Any]:
    email = monitor.notification.email if monitor.notification else None
    reports = []
    if monitor.webhook:
        settings = page.lookups.settings(conn_id)
        reports.append(receiver_of(monitor, settings.webhook.url if settings else None))
    if email is not None and email.enabled:
        reports.append("email")
    return {
        "monitor": monitor,
        "schedule": _schedule(monitor),
        "next": moment(monitor.next_run_at),
        "last": moment(monitor.last_run_at),
        "reports": ", ".join(reports) or "none",
        "task": task,
        "strip": [],
        "used": None,
        "problem": None,
    }


def receiver_of(monitor: Monitor, address: str | None) -> str:
    """Return to whom a monitor with a webhook reports.

    :param address: the connection's webhook URL.
    """
    one, here = Listed.of(monitor), Reporter(environment(), address)
    if here.receives(one):
        return "this Airflow"
    return "another Airflow" if here.is_foreign(one) else "another webhook"


def outcome_of(check: MonitorCheck) -> str:
    """Return the most severe outcome of a check."""
    if check.status not in {"completed", "partial"}:
        return check.status or "unknown"
    counts = check.summary
    return next((name for name in _OUTCOMES if counts and getattr(counts, name)), "same")


def _schedule(monitor: Monitor) -> str:
    cron = monitor.schedule.cron if monitor.schedule else None
    if not cron:
        return "unknown"
    if len(cron) > _MAX_CRON:
        return cron
    try:
        words = get_description(cron, _WORDS)
    except Exception:  # noqa: BLE001
        # An invalid expression must not break the page.
        words = cron
    zone = monitor.schedule.timezone if monitor.schedule else None
    return f"{words} ({zone or 'UTC'})"
