# SPDX-License-Identifier: Apache-2.0
"""Overview: what needs attention, what changed, and the credits of DAGs."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.airflow_db.tasks import waiting_dags
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.page_urls import UI_PATH, frame_path, monitor_page
from airflow_provider_webdata.inbox_server.options import inbox_enabled
from airflow_provider_webdata.ui.attention import (
    MAX_TASKS,
    causes_of,
    delivery_concerns,
    failure_filters,
    late_wait,
    refused_concerns,
    reports_failure,
    task_concern,
    unanswered,
)
from airflow_provider_webdata.ui.changes import COUNTS, ChangedValue, courses_of, values_in
from airflow_provider_webdata.ui.charts import small_line
from airflow_provider_webdata.ui.lookups import Lookup
from airflow_provider_webdata.ui.rendering import airflow_root
from airflow_provider_webdata.ui.tasks import late_waits
from airflow_provider_webdata.ui.threads import in_thread

from .monitors import PAGES, STRIP_KEPT, checked_monitors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

    from airflow_provider_webdata.api.models import Monitor, MonitorCheck, MonitorCheckPage
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
    from airflow_provider_webdata.ui.attention import Cause
    from airflow_provider_webdata.ui.changes import ChangedTask, Course
    from airflow_provider_webdata.ui.tasks import WaitingTask

    from .page import PageView

_MAX_DAYS = 30
_MAX_DELIVERIES = 200
_CHANGES = 10
"""Number of checks, and of tasks, with changes that the page shows."""
VALUES = 3
"""Number of values of a check that the page shows."""
_CARD_SECONDS = 300
"""Seconds between two renewals of a card, which `card.js` states too. Home is open in many browsers."""
_LINES = 3
"""Number of lines of each kind on the card."""


async def page(page: PageView) -> Response:
    """Show the page, which loads its parts separately."""
    return await page.render(
        "overview.html",
        title="Overview",
        given=page.given("conn_id", "dag", "days"),
        days=_days(page),
    )


class Attention(NamedTuple):
    """What needs a person, of the DAGs and connections that the visitor may read.

    :param causes: causes that persist, newest first.
    :param recovered: causes whose tasks succeeded in a later run.
    :param stopped: problem and next step if no triggerer runs, but one is needed.
    :param problem: why events of failed jobs cannot be read, or None.
    :param most_tasks: the number of tasks that were read, if there are more.
    :param most_events: the number of events that were read, if there are more.
    :param are_any_hidden: whether tasks of DAGs that the visitor may not read need a person.
    """

    causes: list[Cause]
    recovered: list[Cause]
    stopped: str | None
    problem: str | None
    most_tasks: int | None
    most_events: int | None
    are_any_hidden: bool


async def attention_of(page: PageView, days: int, seconds: int | None = None) -> Attention:
    """Return what needs a person, by cause.

    :param seconds: time for which failed and incomplete tasks are cached. Default: as in `Lookups`.
    """
    now = datetime.now(timezone.utc)
    begun = now.timestamp() // (seconds or 60) * (seconds or 60)
    since = datetime.fromtimestamp(begun, timezone.utc) - timedelta(days=days)
    conn_ids = await page.conn_ids()
    troubled, has_more = await page.lookups.troubled_tasks(since, seconds)
    readable = await in_thread(page.visitor.readable_dags, {one.summary.name.dag_id for one in troubled})
    shown = [one for one in troubled if one.summary.name.dag_id in readable]
    late = await in_thread(_late_waits, page)
    known = {one_id for one in shown for one_id in one.summary.ids.values()}
    events, has_more_events, problem = await in_thread(_failed_deliveries, page, conn_ids, since)
    refused = await in_thread(page.refused_deliveries, conn_ids)
    answers = await asyncio.gather(*map(page.lookups.answer, conn_ids))
    causes = causes_of(
        [
            *(
                unanswered(conn_id, one.problem, now)
                for conn_id, one in zip(conn_ids, answers, strict=True)
                if one.problem
            ),
            *(concern for one in shown if (concern := task_concern(one)) is not None),
            *map(late_wait, late),
            *delivery_concerns(events, known),
            *refused_concerns(one for one in refused if one.last >= since),
        ]
    )
    return Attention(
        causes=[one for one in causes if not one.newest.has_recovered],
        recovered=[one for one in causes if one.newest.has_recovered],
        stopped=await page.lookups.stopped_triggerer(),
        problem=problem,
        most_tasks=MAX_TASKS if has_more else None,
        most_events=_MAX_DELIVERIES if has_more_events else None,
        are_any_hidden=len(shown) < len(troubled),
    )


async def attention_part(page: PageView) -> Response:
    """Show what needs a person, a row for each cause."""
    days = _days(page)
    return await page.render(
        "overview_attention.html",
        title="Needs attention",
        given=page.given("conn_id", "dag"),
        days=days,
        found=await attention_of(page, days),
        is_any_connection_hidden=await page.is_any_connection_hidden(),
    )


class CheckChange(NamedTuple):
    """A check that found changes.

    :param at: time of its end.
    :param values: changed values of its first pages.
    :param problem: why they cannot be read, or None.
    """

    conn_id: str
    monitor: Monitor
    check: MonitorCheck
    at: datetime
    values: list[ChangedValue] = []  # noqa: RUF012
    problem: str | None = None

    @property
    def sentence(self) -> str:
        """The first changed value as one line, else the counts."""
        return self.values[0].sentence if self.values else self._counted(COUNTS)

    @property
    def others(self) -> str:
        """The number of values beyond the first ones, and of new and removed pages; empty: none."""
        more = len(self.values) - VALUES
        return ", ".join(
            filter(None, (f"{more} more" if more > 0 else "", self._counted(("new", "removed"))))
        )

    def _counted(self, names: Sequence[str]) -> str:
        return ", ".join(f"{count} {name}" for name in names if (count := getattr(self.check.summary, name)))


class Changes(NamedTuple):
    """What changed, of the DAGs and connections that the visitor may read.

    :param checks: the newest checks with changes.
    :param more_checks: number of other checks with changes.
    :param courses: values of numeric fields over the last checks, by monitor.
    :param tasks: the newest run with changes of each task.
    :param has_monitors: whether there are any monitors.
    """

    checks: list[CheckChange]
    more_checks: int
    courses: dict[str, Course]
    tasks: list[ChangedTask]
    has_monitors: bool


async def changes_of(page: PageView, days: int, most: int, *, with_courses: bool = True) -> Changes:
    """Return the newest changes that monitors and tasks found.

    :param most: maximum number of checks, and of tasks.
    :param with_courses: whether to read the values of earlier checks, too.
    """
    conn_ids = await page.conn_ids()
    since = (datetime.now(timezone.utc) - timedelta(days=days)).replace(second=0, microsecond=0)
    # The causes above say which connection does not respond.
    lists = await asyncio.gather(*(checked_monitors(page, conn_id) for conn_id in conn_ids))
    by_id: dict[str, CheckChange] = {}
    strips: dict[str, tuple[str, list[MonitorCheck]]] = {}
    for conn_id, (monitors, _) in zip(conn_ids, lists, strict=True):
        for monitor, answer in monitors:
            changed = [one for one in answer.value or () if _has_changes(one)]
            # Several connections may lead to one team.
            strips.setdefault(monitor.id, (conn_id, changed))
            for check in changed:
                if (at := moment(check.finished_at)) is not None and at >= since:
                    by_id.setdefault(check.id, CheckChange(conn_id, monitor, check, at))
    found = sorted(by_id.values(), key=lambda one: one.at, reverse=True)
    shown = found[:most]
    if not with_courses:
        strips = {}
    wanted = dict.fromkeys((one.conn_id, one.monitor.id, one.check.id) for one in shown)
    for one in shown:
        conn_id, checks = strips.get(one.monitor.id, ("", []))
        wanted.update(dict.fromkeys((conn_id, one.monitor.id, check.id) for check in checks))
    answers = await asyncio.gather(*(_changed_pages(page, *key) for key in wanted))
    pages = {key[2]: answer for key, answer in zip(wanted, answers, strict=True)}
    tasks = await page.lookups.changed_tasks(since)
    readable = await in_thread(page.visitor.readable_dags, {one.task.dag_id for one in tasks})
    return Changes(
        [
            one._replace(
                values=[value for part in pages[one.check.id].value or () for value in values_in(part)],
                problem=pages[one.check.id].problem,
            )
            for one in shown
        ],
        len(found) - len(shown),
        {
            monitor_id: courses_of(pages[one.id].value or [] for one in reversed(checks) if one.id in pages)
            for monitor_id, (_, checks) in strips.items()
        },
        [one for one in tasks if one.task.dag_id in readable][:most],
        any(monitors for monitors, _ in lists),
    )


async def _changed_pages(
    page: PageView, conn_id: str, monitor_id: str, check_id: str
) -> Lookup[list[MonitorCheckPage]]:
    """Return the first pages that a check found changed."""
    found = await page.lookups.find(
        conn_id,
        ("changes", monitor_id, check_id),
        lambda hook: hook.get_monitor_check(monitor_id, check_id, limit=PAGES, status="changed"),
        STRIP_KEPT,
    )
    return Lookup((found.value.pages or [])[:PAGES] if found.value else None, found.problem)


def _has_changes(check: MonitorCheck) -> bool:
    return check.summary is not None and any(getattr(check.summary, name) for name in COUNTS)


async def changes_part(page: PageView) -> Response:
    """Show the newest changes: fields of pages before and after, and the counts of tasks."""
    days = _days(page)
    return await page.render(
        "overview_changes.html",
        title="What changed",
        days=days,
        found=await changes_of(page, days, _CHANGES),
        counts=COUNTS,
        most_values=VALUES,
        line=small_line,
        has_connections=bool(await page.conn_ids()),
        is_any_hidden=await page.is_any_connection_hidden(),
        is_list_incomplete=await page.lookups.is_list_incomplete(),
    )


async def card(page: PageView) -> Response:
    """Show the first lines of what needs attention and of what changed, for Airflow's Home."""
    # One after the other: the auth manager is asked once about what both show.
    attention = await attention_of(page, 1, _CARD_SECONDS)
    return await page.render(
        "overview_card.html",
        title="Web Data",
        attention=attention,
        changes=await changes_of(page, 1, _LINES, with_courses=False),
        most=_LINES,
        frame=lambda path: frame_path(path, airflow_root(page.request)),
        overview=f"{UI_PATH}/",
        monitor_page=monitor_page,
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
