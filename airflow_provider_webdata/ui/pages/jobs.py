"""Crawls, batch scrapes, and agent runs of the last 24 hours, with the tasks that started them."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from starlette.exceptions import HTTPException

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.airflow_db.tasks import TaskName, starters_of
from airflow_provider_webdata.api.endpoints import JOBS
from airflow_provider_webdata.api.errors import error_text
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.states.jobs import JobView, name_of
from airflow_provider_webdata.ui.lookups import FAILED_KEPT, Lookup
from airflow_provider_webdata.ui.rendering import csv_file
from airflow_provider_webdata.ui.tasks import summary_of
from airflow_provider_webdata.ui.threads import in_thread

from .owners import deliveries_of, job_owners, spellings

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.responses import Response

    from airflow_provider_webdata.api.models import Activity, ActivityItem
    from airflow_provider_webdata.common.job_kinds import JobKind

    from .page import PageView

ROWS = 25
_ERRORS_SHOWN = 50
_SEARCHED = 100
"""Maximum number of jobs of each operation that one page searches by DAG and task, all that the service lists in one
response. The filter by state searches `ROWS` jobs, because it needs a request for each."""
_FILTERS = ("conn_id", "operation", "state", "dag", "task")
_HEADS = (
    *("job_id", "operation", "target", "started_at", "state", "pages", "total", "failed_pages", "credits"),
    *("dag_id", "run_id", "task_id", "map_index"),
)
_PLACES = tuple(f"{kind}_{name}" for kind in ALL_JOB_KINDS for name in ("cursor", "skip", "last"))
"""Parameters of a page of older jobs: a cursor of each of the service's lists, and the jobs to skip after it, up to the
last that was shown. Jobs that start in between move it."""


async def page(page: PageView) -> Response:
    """Show the page, which loads the list separately."""
    return await page.render(
        "jobs.html",
        title="Jobs",
        conn_ids=await page.conn_ids(),
        is_any_hidden=await page.is_any_connection_hidden(),
        is_list_incomplete=await page.lookups.is_list_incomplete(),
        operations=ALL_JOB_KINDS,
        given={name: page.text(name) for name in _FILTERS},
        places={name: page.text(name) for name in _PLACES if page.text(name)},
    )


async def list_part(page: PageView) -> Response:
    """Show jobs of a connection's team with their states, the newest or those from a place in the service's lists."""
    found = await _listed(page)
    given = {name: page.text(name) for name in _FILTERS if page.text(name)}
    return await page.render(
        "jobs_list.html",
        title="Jobs",
        conn_id=page.required("conn_id"),
        found=found,
        is_filtered=len(given) > 1,
        is_searched=any(page.text(name) for name in ("state", "dag", "task")),
        are_newest=not any(page.text(name) for name in _PLACES),
        older=urlencode({**given, **found.places}) if found.places is not None else None,
        newest=urlencode(given),
        here=urlencode({**given, **{name: page.text(name) for name in _PLACES if page.text(name)}}),
    )


async def csv(page: PageView) -> Response:
    """Return one page of the list as CSV. The states of all others would need a request for each."""
    found = await _listed(page)
    return await in_thread(csv_file, "jobs.csv", _HEADS, [_csv_row(row) for row in found.rows])


def _csv_row(row: _Row) -> tuple[Any, ...]:
    view, task = row.view.value, row.task
    return (
        *(row.item.id, row.item.endpoint, row.item.target, row.started and row.started.isoformat()),
        *((view.state, view.completed, view.total, row.failed, view.credits_used) if view else (None,) * 5),
        *(task or (None,) * 4),
    )


class _Row(NamedTuple):
    """A job in the list.

    :param view: state of the job.
    :param task: the task that started it, if known.
    :param failed: number of failed pages; None if it cannot be read.
    :param rate: pages per minute of a running job.
    :param left: estimated remaining time.
    """

    item: ActivityItem
    view: Lookup[JobView]
    task: TaskName | None
    started: datetime | None
    failed: int | None
    rate: float | None
    left: timedelta | None


class _Listed(NamedTuple):
    """A page of the list.

    :param searched: number of readable jobs, with those that do not match the filters.
    :param are_hidden: whether jobs belong to DAGs that the visitor may not read.
    :param refused: why lists of the service cannot be read.
    :param places: parameters of the next page; None if this is the last.
    """

    rows: list[_Row]
    searched: int
    are_hidden: bool
    refused: list[str]
    places: dict[str, Any] | None


@dataclass
class _ServiceList:
    """A part of the service's list of one operation, read from a cursor.

    :param skip: number of entries of the part that earlier pages, or this one, have shown.
    :param following: cursor of the next part; empty if this is the last.
    """

    kind: JobKind
    cursor: str
    skip: int
    entries: list[ActivityItem]
    following: str

    @property
    def has_more(self) -> bool:
        return self.skip < len(self.entries) or bool(self.following)

    @property
    def is_used_up(self) -> bool:
        """Whether the next entry is in the next part."""
        return self.skip >= len(self.entries) and bool(self.following)

    def place(self) -> dict[str, Any]:
        """Return the parameters from which the next page continues."""
        cursor, skip = (self.following, 0) if self.is_used_up else (self.cursor, self.skip)
        last = self.entries[skip - 1].id if skip else None
        place = {f"{self.kind}_cursor": cursor, f"{self.kind}_skip": skip, f"{self.kind}_last": last}
        return {name: value for name, value in place.items() if value}


async def _listed(page: PageView) -> _Listed:
    """Read the next jobs from a place in the service's list of each operation, newest first."""
    conn_id = page.required("conn_id")
    state, dag, task = (page.text(name) for name in ("state", "dag", "task"))
    lists, refused = await _service_lists(page, conn_id, _SEARCHED if state or dag or task else ROWS)
    merged = heapq.merge(
        *([(one, item) for item in one.entries[one.skip :]] for one in lists),
        key=lambda entry: entry[1].created_at or "",
        reverse=True,
    )
    # The place of the next page also skips entries that are no jobs.
    entries = [(one, item, bool(item.id) and item.endpoint == one.kind) for one, item in merged]
    job_ids = [str(item.id) for _, item, is_job in entries if is_job]
    tasks, hidden = await in_thread(_owners, page, conn_id, job_ids)
    matching: list[ActivityItem] = []
    searched = 0
    for one, item, is_job in entries:
        one.skip += 1
        if is_job and item.id not in hidden:
            searched += 1
            starter = tasks.get(str(item.id))
            if dag in (starter.dag_id if starter else "") and task in (starter.task_id if starter else ""):
                matching.append(item)
        # Beyond the end of one list, its next jobs may be newer than those of the others.
        if len(matching) == ROWS or one.is_used_up:
            break
    rows = [
        row
        for row in await _rows(page, conn_id, matching, tasks)
        if not state or (row.view.value is not None and row.view.value.state == state)
    ]
    has_more = any(one.has_more for one in lists)
    places = {name: value for one in lists for name, value in one.place().items()} if has_more else None
    return _Listed(rows, searched, bool(hidden), refused, places)


async def _service_lists(page: PageView, conn_id: str, most: int) -> tuple[list[_ServiceList], list[str]]:
    """Return the list of each requested operation, and why lists cannot be read.

    :param most: maximum number of entries of each.
    """
    operation = page.text("operation")
    kinds = [_kind(operation)] if operation else list(ALL_JOB_KINDS)

    def read(kind: JobKind, cursor: str) -> Awaitable[Lookup[Activity]]:
        return page.lookups.find(
            conn_id,
            ("activity", kind, most, cursor),
            lambda hook: hook.activity(endpoint=kind, limit=most, cursor=cursor or None),
        )

    cursors = [page.text(f"{kind}_cursor") for kind in kinds]
    found = await asyncio.gather(*map(read, kinds, cursors))
    lists = []
    for kind, cursor, one in zip(kinds, cursors, found, strict=True):
        activity = one.value
        following = (activity.cursor or "") if activity and activity.has_more is not False else ""
        entries = activity.data if activity else []
        last, skip = page.text(f"{kind}_last"), page.whole(f"{kind}_skip")
        ids = [one.id for one in entries]
        skip = ids.index(last) + 1 if last in ids else skip
        lists.append(_ServiceList(kind, cursor, skip, entries, following))
    return lists, [one.problem for one in found if one.problem]


async def _rows(
    page: PageView, conn_id: str, items: list[ActivityItem], tasks: dict[str, TaskName]
) -> list[_Row]:
    views = await asyncio.gather(
        *(_look(page, conn_id, _kind(str(item.endpoint)), str(item.id)) for item in items)
    )
    failed = await asyncio.gather(*(_failed(page, conn_id, view.value) for view in views))
    paces = await in_thread(lambda: [_pace(page, conn_id, view.value) for view in views])
    return [
        _Row(item, view, tasks.get(str(item.id)), moment(item.created_at), count, *pace)
        for item, view, count, pace in zip(items, views, failed, paces, strict=True)
    ]


async def one(page: PageView) -> Response:
    """Show a job's page with its deliveries. The page loads the state separately."""
    conn_id, job_id = page.required("conn_id"), page.required("job_id")
    kind = _kind(page.required("operation"))
    task = await _checked_task(page, conn_id, job_id)
    wanted = DeliveryFilter(job_ids=(job_id,))
    deliveries = await in_thread(deliveries_of, page, conn_id, wanted, ROWS)
    return await page.render(
        "job.html",
        title=f"{name_of(kind).capitalize()} {job_id}",
        name=name_of(kind).capitalize(),
        conn_id=conn_id,
        kind=kind,
        job_id=job_id,
        deliveries=deliveries,
        task=task,
    )


async def one_part(page: PageView) -> Response:
    """Show a job's state, and the errors of its failed pages."""
    conn_id, job_id = page.required("conn_id"), page.required("job_id")
    kind = _kind(page.required("operation"))
    task = await _checked_task(page, conn_id, job_id)
    view = await _look(page, conn_id, kind, job_id)
    owner = await in_thread(summary_of, task) if task is not None else None
    errors: Lookup[Any] = Lookup()
    if JOBS[kind].errors is not None and view.value is not None:
        errors = await page.lookups.find(
            conn_id, ("errors", kind, job_id), lambda hook: hook.job_errors(kind, job_id)
        )
    failed = errors.value.failed if errors.value else []
    rate, left = await in_thread(_pace, page, conn_id, view.value)
    return await page.render(
        "job_part.html",
        title="Job",
        view=view,
        conn_id=conn_id,
        owner=owner,
        started=moment(view.value.created_at) if view.value else None,
        ended=moment(view.value.completed_at) if view.value else None,
        errors=errors,
        failed=failed[:_ERRORS_SHOWN],
        failures=len(failed),
        reasons=Counter(
            error.code or error_text(error.error) or "no reason given" for error in failed
        ).most_common(_ERRORS_SHOWN),
        rate=rate,
        left=left,
    )


async def _checked_task(page: PageView, conn_id: str, job_id: str) -> TaskName | None:
    """Return the task that started a job, if known.

    :raises HTTPException: 403, the visitor may not read its DAG.
    """
    tasks, hidden = await in_thread(_owners, page, conn_id, [*spellings(job_id)])
    if hidden:
        raise HTTPException(403, "This job belongs to a DAG that you do not have permission to read.")
    return next(iter(tasks.values()), None)


async def _look(page: PageView, conn_id: str, kind: JobKind, job_id: str) -> Lookup[JobView]:
    async def ask(hook: Any) -> JobView:
        # The response then contains at most one document.
        limit = {} if JOBS[kind].documents is None else {"limit": 1}
        return JobView.of(kind, job_id, await hook.job_status(kind, job_id, **limit))

    return await page.lookups.find(conn_id, ("job", kind, job_id), ask)


async def _failed(page: PageView, conn_id: str, view: JobView | None) -> int | None:
    """Return the number of failed pages of a job that has ended, 0 for any other; None if it cannot be read."""
    if view is None or not view.is_over or JOBS[view.kind].errors is None:
        return 0

    async def ask(hook: Any) -> int:
        return len((await hook.job_errors(view.kind, view.job_id)).failed)

    found = await page.lookups.find(conn_id, ("failed", view.kind, view.job_id), ask, FAILED_KEPT)
    return found.value


def _pace(page: PageView, conn_id: str, view: JobView | None) -> tuple[float | None, timedelta | None]:
    """Return pages per minute since the delivery that reported the job's start, and the estimated remaining time."""
    if view is None or view.is_over or not view.completed or not view.total:
        return None, None
    wanted = DeliveryFilter(job_ids=(view.job_id,), events=(f"{view.kind}.started",))
    try:
        found = page.store().newest(conn_id, wanted, 1)
    except StoreUnavailableError:
        return None, None
    if not found:
        return None, None
    elapsed = datetime.now(timezone.utc) - found[0].received_at
    try:
        rate = view.completed / max(elapsed.total_seconds() / 60, 1 / 60)
        return rate, timedelta(minutes=max(view.total - view.completed, 0) / rate)
    except OverflowError:
        return None, None


def _owners(page: PageView, conn_id: str, job_ids: list[str]) -> tuple[dict[str, TaskName], set[str]]:
    """Return the tasks that started jobs, and the jobs of DAGs that the visitor may not read."""
    owners, named = job_owners(page.store(), conn_id, job_ids)
    hidden = {job_id for job_id, dag_ids in owners.items() if not page.visitor.may_read_dags(dag_ids)}
    return {**named, **starters_of(job_ids)}, hidden


def _kind(given: str) -> JobKind:
    for kind in ALL_JOB_KINDS:
        if kind == given:
            return kind
    raise HTTPException(400, f"operation must be one of {', '.join(ALL_JOB_KINDS)}.")
