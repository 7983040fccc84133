"""Overview of the connections, their credits, and the inbox."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.airflow_db.spent import runs_since
from airflow_provider_webdata.ui.attention import (
    MAX_TASKS,
    by_urgency,
    delivery_concerns,
    failure_filters,
    late_wait,
    reports_failure,
    task_concerns,
)
from airflow_provider_webdata.ui.lookups import Lookup
from airflow_provider_webdata.ui.rendering import csv_file
from airflow_provider_webdata.ui.spend import Period, spend_of, today
from airflow_provider_webdata.ui.threads import in_thread

from .owners import readable_deliveries
from .waits import readable_late_waits, readable_waits

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_webdata.api.models import CreditHistory, CreditUsage
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery

    from .page import PageView

COUNTED = 10_000
"""Maximum number of deliveries that are counted for one event."""
_PERIODS = 12
_MAX_DAYS = 30
_MAX_DELIVERIES = 200
_DAGS = 8


async def page(page: PageView) -> Response:
    """Show each connection with its waiting tasks, and the credits of one connection."""
    conn_ids = await page.conn_ids()
    now, total, _ = await in_thread(readable_waits, page)
    inbox = [await in_thread(_inbox, page, conn_id) for conn_id in conn_ids]
    return await page.render(
        "overview.html",
        title="Overview",
        connections=[
            {"conn_id": conn_id, "inbox": found, "waits": sum(wait.conn_id == conn_id for wait in now)}
            for conn_id, found in zip(conn_ids, inbox, strict=True)
        ],
        are_all_shown=total == len(now),
        counted=COUNTED,
        is_any_hidden=await page.is_any_connection_hidden(),
        is_list_incomplete=await page.lookups.is_list_incomplete(),
        given=_given(page, "conn_id", "dag", "days"),
        days=page.whole("days", 1),
        chosen=page.text("conn_id") or next(iter(conn_ids), None),
    )


async def attention_part(page: PageView) -> Response:
    """Show what needs a person, of the DAGs and connections that the visitor may read."""
    days = min(max(page.whole("days", 1), 1), _MAX_DAYS)
    now = datetime.now(timezone.utc)
    since = (now - timedelta(days=days)).replace(second=0, microsecond=0)
    troubled, has_more = await page.lookups.troubled_tasks(since)
    readable = await in_thread(page.visitor.readable, {one.summary.name.dag_id for one in troubled})
    shown = [one for one in troubled if one.summary.name.dag_id in readable]
    late = await in_thread(readable_late_waits, page)
    known = {one_id for one in shown for one_id in one.summary.ids.values()}
    events, has_more_events, problem = await in_thread(_failed_deliveries, page, await page.conn_ids(), since)
    concerns = by_urgency([*task_concerns(shown), *map(late_wait, late), *delivery_concerns(events, known)])
    return await page.render(
        "overview_attention.html",
        title="Needs attention",
        given=_given(page, "conn_id", "dag"),
        days=days,
        open=[one for one in concerns if not one.has_recovered],
        recovered=[one for one in concerns if one.has_recovered],
        stopped=await page.lookups.stopped_triggerer(),
        problem=problem,
        most_tasks=MAX_TASKS if has_more else None,
        most_events=_MAX_DELIVERIES if has_more_events else None,
        are_any_hidden=len(shown) < len(troubled),
        is_any_connection_hidden=await page.is_any_connection_hidden(),
    )


class _Reported(NamedTuple):
    """The credits that tasks reported, of one connection or all.

    :param by_day: credits by day and DAG.
    :param readable: the DAGs that the visitor may read.
    :param unknown: credits of an unknown connection by DAG.
    :param unread: tasks whose credits cannot be read, by reason.
    :param conn_ids: the connections that reported credits.
    """

    by_day: dict[date, Counter[str]]
    readable: set[str]
    unknown: Counter[str]
    unread: Counter[str]
    conn_ids: set[str]


async def _reported(page: PageView, conn_id: str, since: date) -> _Reported:
    spent, unread = await page.lookups.spent_by_day(since)
    by_day = spent.get(conn_id, {}) if conn_id else await in_thread(_of_all_connections, spent)
    unknown: Counter[str] = sum(spent.get("", {}).values(), Counter()) if conn_id else Counter()
    dag_ids = {dag_id for used_by in by_day.values() for dag_id in used_by}
    readable = await in_thread(page.visitor.readable, dag_ids | unknown.keys())
    return _Reported(by_day, readable, unknown, unread, spent.keys() - {""})


async def spend_part(page: PageView) -> Response:
    """Show the credits that DAGs spent with a connection in its billing period.

    Without a connection, show those of all connections in the calendar month, which the visitor's DAGs reported.
    """
    conn_id, day = page.text("conn_id"), today()
    usage: Lookup[CreditUsage] = Lookup()
    known: CreditUsage | None = None
    history: Lookup[CreditHistory] = Lookup()
    if conn_id:
        (usage, known), history = await asyncio.gather(
            page.lookups.credit_usage(conn_id),
            page.lookups.find(conn_id, "history", lambda hook: hook.credit_history()),
        )
    period = Period.of(known, day)
    reported = await _reported(page, conn_id, period.shown_from(day))
    dag_ids = {dag_id for used_by in reported.by_day.values() for dag_id in used_by}
    mine = dag_ids & reported.readable
    chosen = page.text("dag") if page.text("dag") in mine else ""
    runs = await in_thread(runs_since, mine, datetime.combine(period.start, time(tzinfo=timezone.utc)))
    spend = await in_thread(spend_of, reported.by_day, mine, period, day, runs, chosen)
    listed = await page.conn_ids()
    # Airflow cannot list connections of a secrets backend.
    others = await in_thread(page.visitor.readable_connections, reported.conn_ids - {*listed})
    unknown = [(one, used) for one, used in reported.unknown.most_common() if one in reported.readable]
    return await page.render(
        "overview_spend.html",
        title="Credits",
        given=_given(page, "conn_id", "days"),
        conn_id=conn_id,
        conn_ids=[*listed, *sorted(others)],
        spend=spend,
        chosen=chosen,
        period=period,
        problem=usage.problem,
        team=period.used_by_team(history.value),
        dags=spend.dags[:_DAGS],
        hidden=len(dag_ids - mine),
        unread=reported.unread,
        chart=spend.chart(),
        unknown=unknown[:_DAGS],
        periods=sorted(
            history.value.periods if history.value else (), key=lambda one: one.start_date or "", reverse=True
        )[:_PERIODS],
    )


async def spend_csv(page: PageView) -> Response:
    """Return the credits by UTC day and DAG as CSV, of the days that the chart may show."""
    conn_id, day = page.text("conn_id"), today()
    known = (await page.lookups.credit_usage(conn_id))[1] if conn_id else None
    reported = await _reported(page, conn_id, Period.of(known, day).shown_from(day))
    rows = (
        (one, dag_id, used)
        for one, used_by in sorted(reported.by_day.items())
        for dag_id, used in sorted(used_by.items())
        if dag_id in reported.readable
    )
    # The thread builds the rows, too.
    return await in_thread(csv_file, "credits.csv", ("day", "dag_id", "credits"), rows)


async def service_part(page: PageView) -> Response:
    """Show the credits and the queue that the service reports for a connection."""
    conn_id = page.required("conn_id")
    usage, queue = await asyncio.gather(
        page.lookups.find(conn_id, "credits", lambda hook: hook.credit_usage()),
        page.lookups.find(conn_id, "queue", lambda hook: hook.queue_status()),
    )
    return await page.render(
        "overview_service.html",
        title="Service",
        usage=usage,
        queue=queue,
    )


def _given(page: PageView, *names: str) -> dict[str, str]:
    """Return the parameters that links to the overview keep."""
    return {name: page.text(name) for name in names if page.text(name)}


def _of_all_connections(spent: dict[str, dict[date, Counter[str]]]) -> dict[date, Counter[str]]:
    found: dict[date, Counter[str]] = {}
    for by_day in spent.values():
        for day, used_by in by_day.items():
            found.setdefault(day, Counter()).update(used_by)
    return found


def _failed_deliveries(
    page: PageView, conn_ids: list[str], since: datetime
) -> tuple[list[StoredDelivery], bool, str | None]:
    """Return deliveries that report a failure, newest first, whether there may be more, and why they cannot be read."""
    store = page.store()
    try:
        found = [store.newest(conn_ids, wanted, _MAX_DELIVERIES) for wanted in failure_filters(since)]
        failed = [one for part in found for one in part if reports_failure(one)]
        # To learn their DAGs, their bodies are read.
        readable = readable_deliveries(page, sorted(failed, key=lambda one: one.received_at, reverse=True))
    except TablesMissingError:
        # Without the inbox's tables, there are no deliveries.
        return [], False, None
    except StoreUnavailableError as error:
        return [], False, str(error)
    return readable, any(len(part) == _MAX_DELIVERIES for part in found), None


def _inbox(page: PageView, conn_id: str) -> dict[str, Any]:
    since = datetime.now(timezone.utc) - timedelta(days=1)
    store = page.store()
    try:
        last = store.last_received(conn_id)
        counts = store.count_events(conn_id, since, COUNTED)
    except StoreUnavailableError as error:
        return {"problem": str(error), "last": None, "counts": []}
    return {"problem": None, "last": last, "counts": counts}
