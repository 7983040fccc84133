"""Overview: what needs attention, what changed, and the credits of DAGs."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.airflow_db.tasks import waiting_dags
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.inbox_server.options import inbox_enabled
from airflow_provider_webdata.ui.attention import (
    MAX_TASKS,
    by_urgency,
    delivery_concerns,
    failure_filters,
    late_wait,
    refused_concerns,
    reports_failure,
    task_concerns,
    unanswered,
)
from airflow_provider_webdata.ui.tasks import late_waits
from airflow_provider_webdata.ui.threads import in_thread

from .monitors import checked_monitors, outcome_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_webdata.api.models import Monitor, MonitorCheck
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
    from airflow_provider_webdata.ui.tasks import WaitingTask

    from .page import PageView

_MAX_DAYS = 30
_MAX_DELIVERIES = 200
_CHANGES = 10
"""Number of checks with changes that the page shows."""


async def page(page: PageView) -> Response:
    """Show the page, which loads its parts separately."""
    return await page.render(
        "overview.html",
        title="Overview",
        conn_ids=await page.conn_ids(),
        is_any_hidden=await page.is_any_connection_hidden(),
        is_list_incomplete=await page.lookups.is_list_incomplete(),
        given=page.given("conn_id", "dag", "days"),
        days=_days(page),
    )


async def attention_part(page: PageView) -> Response:
    """Show what needs a person, of the DAGs and connections that the visitor may read."""
    now, days = datetime.now(timezone.utc), _days(page)
    since = (now - timedelta(days=days)).replace(second=0, microsecond=0)
    conn_ids = await page.conn_ids()
    troubled, has_more = await page.lookups.troubled_tasks(since)
    readable = await in_thread(page.visitor.readable_dags, {one.summary.name.dag_id for one in troubled})
    shown = [one for one in troubled if one.summary.name.dag_id in readable]
    late = await in_thread(_late_waits, page)
    known = {one_id for one in shown for one_id in one.summary.ids.values()}
    events, has_more_events, problem = await in_thread(_failed_deliveries, page, conn_ids, since)
    refused = await in_thread(page.refused_deliveries, conn_ids)
    answers = await asyncio.gather(*map(page.lookups.answer, conn_ids))
    concerns = by_urgency(
        [
            *(
                unanswered(conn_id, one.problem, now)
                for conn_id, one in zip(conn_ids, answers, strict=True)
                if one.problem
            ),
            *task_concerns(shown),
            *map(late_wait, late),
            *delivery_concerns(events, known),
            *refused_concerns(one for one in refused if one.last >= since),
        ]
    )
    return await page.render(
        "overview_attention.html",
        title="Needs attention",
        given=page.given("conn_id", "dag"),
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


class _Change(NamedTuple):
    """A check that found changes.

    :param at: time of its end.
    """

    conn_id: str
    monitor: Monitor
    check: MonitorCheck
    at: datetime


async def changes_part(page: PageView) -> Response:
    """Show the newest checks that found changes, of the connections that the visitor may read."""
    days, conn_ids = _days(page), await page.conn_ids()
    since = datetime.now(timezone.utc) - timedelta(days=days)
    # The list above says which connection does not respond.
    lists = await asyncio.gather(*(checked_monitors(page, conn_id) for conn_id in conn_ids))
    changes = [
        _Change(conn_id, monitor, check, at)
        for conn_id, (monitors, _) in zip(conn_ids, lists, strict=True)
        for monitor, checks in monitors
        for check in checks.value or ()
        if outcome_of(check) in ("changed", "new", "removed")
        and (at := moment(check.finished_at)) is not None
        and at >= since
    ]
    changes.sort(key=lambda one: one.at, reverse=True)
    return await page.render(
        "overview_changes.html",
        title="What changed",
        days=days,
        changes=changes[:_CHANGES],
        more=len(changes[_CHANGES:]),
        has_monitors=any(monitors for monitors, _ in lists),
    )


def _days(page: PageView) -> int:
    return min(max(page.whole("days", 1), 1), _MAX_DAYS)


def _late_waits(page: PageView) -> list[WaitingTask]:
    return late_waits(page.visitor.readable_dags(waiting_dags()))


def _failed_deliveries(
    page: PageView, conn_ids: list[str], since: datetime
) -> tuple[list[StoredDelivery], bool, str | None]:
    """Return deliveries that report a failure, newest first, whether there may be more, and why they cannot be read."""
    if not inbox_enabled():
        return [], False, None
    store = page.store()
    try:
        found = [store.newest(conn_ids, wanted, _MAX_DELIVERIES) for wanted in failure_filters(since)]
    except TablesMissingError:
        # Without the inbox's tables, there are no deliveries.
        return [], False, None
    except StoreUnavailableError as error:
        return [], False, str(error)
    failed = [one for part in found for one in part if reports_failure(one)]
    failed.sort(key=lambda one: one.received_at, reverse=True)
    return failed, any(len(part) == _MAX_DELIVERIES for part in found), None
