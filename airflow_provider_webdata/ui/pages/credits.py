# SPDX-License-Identifier: Apache-2.0
"""Credits that the tasks of the visitor's DAGs reported: the overview's chart and table, and sums as CSV."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, get_args

from starlette.exceptions import HTTPException

from airflow_provider_webdata.airflow_db.spent import By, columns_of, reporting_dags, runs_since, spent
from airflow_provider_webdata.ui.credits import DAYS, TaskCredits, credits_of, today
from airflow_provider_webdata.ui.rendering import csv_file
from airflow_provider_webdata.ui.threads import in_thread

if TYPE_CHECKING:
    from starlette.responses import Response

    from .page import PageView

_ROWS = 8
INCOMPLETE = "x-webdata-incomplete"
"""Header of a CSV file that lacks the credits of some tasks. It says why."""


async def part(page: PageView) -> Response:
    """Show the credits of the last 30 days by day and DAG, of one connection or all."""
    conn_id, day = page.text("conn_id"), today()
    since = day - timedelta(days=DAYS - 1)
    found, unread = await page.lookups.spent_by_day(since)
    by_day = found.get(conn_id, {}) if conn_id else await in_thread(_of_all_connections, found)
    dag_ids = {dag_id for used_by in by_day.values() for dag_id in used_by}
    readable = await in_thread(page.visitor.readable_dags, dag_ids)
    # Tasks also name connections of a secrets backend, which cannot be listed.
    conn_ids = [*await page.lookups.conn_ids()]
    conn_ids += sorted(found.keys() - {*conn_ids, ""})
    are_readable = await in_thread(page.visitor.readable_connections, conn_ids)
    chosen = page.text("dag") if page.text("dag") in readable else ""
    runs = await in_thread(runs_since, readable, _start_of(since))
    tasks = await in_thread(_tasks_of, chosen, _start_of(since), conn_id or None) if chosen else []
    credits = await in_thread(credits_of, by_day, readable, day, runs, chosen)
    return await page.render(
        "overview_credits.html",
        title="Credits",
        given=page.given("conn_id", "days"),
        conn_id=conn_id,
        conn_ids=[one for one in conn_ids if one in are_readable],
        credits=credits,
        days=DAYS,
        chosen=chosen,
        tasks=tasks,
        dags=credits.dags[:_ROWS],
        hidden=len(dag_ids - readable),
        unread=unread,
        chart=credits.chart(),
        csv={
            "since": since,
            "by": "day",
            **({"conn_id": conn_id} if conn_id else {}),
        },
    )


def _tasks_of(dag_id: str, since: datetime, conn_id: str | None) -> list[TaskCredits]:
    found = spent("task", since, dag_ids=[dag_id], conn_id=conn_id)
    return [TaskCredits(one.key["task_id"], one.used, one.tasks) for one in found[:_ROWS]]


async def csv(page: PageView) -> Response:
    """Return sums of credits by DAG, task, month, or day as CSV: the same as `airflow webdata costs`."""
    by = _by(page.text("by"))
    until = page.moment("until")
    since = page.moment("since") or _start_of(today() - timedelta(days=DAYS - 1))
    if until is not None and until <= since:
        raise HTTPException(400, f"until must be later than since (since is {since.isoformat()}).")
    return await in_thread(_csv, page, by, since, until)


def _csv(page: PageView, by: By, since: datetime, until: datetime | None) -> Response:
    dag_ids = page.visitor.readable_dags(reporting_dags(since, until))
    unread: Counter[str] = Counter()
    found = spent(by, since, until, dag_ids=dag_ids, conn_id=page.text("conn_id") or None, unread=unread)
    heads = columns_of(by)
    response = csv_file("credits.csv", heads, [[one.as_dict()[name] for name in heads] for one in found])
    if unread:
        reasons = "; ".join(f"{count} because {reason}" for reason, count in unread.items())
        response.headers[INCOMPLETE] = f"The credits of some tasks are not included: {reasons}"
    return response


def _by(given: str) -> By:
    for by in get_args(By):
        if by == (given or "dag"):
            return by  # type: ignore[no-any-return]
    raise HTTPException(400, f"by must be one of {', '.join(get_args(By))}.")


def _start_of(day: date) -> datetime:
    return datetime.combine(day, time(tzinfo=timezone.utc))


def _of_all_connections(found: dict[str, dict[date, Counter[str]]]) -> dict[date, Counter[str]]:
    total: dict[date, Counter[str]] = {}
    for by_day in found.values():
        for day, used_by in by_day.items():
            total.setdefault(day, Counter()).update(used_by)
    return total
