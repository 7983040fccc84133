# SPDX-License-Identifier: Apache-2.0
"""The inbox: deliveries by job or check, each with its body, its task, and what it woke; and refused deliveries."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode

from starlette.exceptions import HTTPException

from airflow_provider_webdata.airflow_db.tasks import STARTED, TaskName, starters_of
from airflow_provider_webdata.airflow_db.woken import StartedRun, runs_started
from airflow_provider_webdata.inbox.envelope import NotJSONError, first_of, parse_body
from airflow_provider_webdata.inbox.wire import INBOX_PATH
from airflow_provider_webdata.inbox_server.options import inbox_enabled
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.inbox_server.storage.refusals import next_step
from airflow_provider_webdata.ui.attention import check_page
from airflow_provider_webdata.ui.deliveries import by_job, delivery_rows
from airflow_provider_webdata.ui.rendering import csv_file
from airflow_provider_webdata.ui.tasks import task_named
from airflow_provider_webdata.ui.threads import in_thread

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery

    from .page import PageView

ROWS = 50
"""Maximum number of jobs and checks on a page."""
DELIVERIES = 200
"""Maximum number of deliveries on a page. The others of a job with more are on the following pages."""
MAX_SHOWN = 2**20
"""Maximum bytes of a body that is shown."""

_EVENTS = 25
"""Maximum number of other events of a job or check that a row shows."""
_EXPORTED = 1000
"""Maximum number of deliveries in a CSV file."""
_ID_DIGITS = 18
_FILTERS = ("conn_id", "dag_id", "event", "find", "since", "until", "started")


async def page(page: PageView) -> Response:
    """List jobs and checks by their newest delivery, filtered by connection, DAG, event, id, page, and time.

    With an `id`, show that delivery. Every filter has an index that ends with the position. Among a million deliveries,
    a page reads only as many index rows as it groups.
    """
    if not inbox_enabled():
        return await page.render("inbox_off.html", title="Inbox")
    wanted, before, delivery_id = _wanted(page), page.whole("before") or None, page.whole("id")
    conn_ids = await page.conn_ids()
    if delivery_id:
        found, following = [await in_thread(_delivery, page, delivery_id)], None
    else:
        found, following = await in_thread(_find, page, conn_ids, wanted, before, DELIVERIES)
    jobs, shown = by_job(found, ROWS)
    if shown < len(found):
        following = found[shown - 1].position
    given = page.given(*_FILTERS)
    conn_id = page.text("conn_id")
    is_first = not (before or delivery_id)
    refused = await in_thread(page.refused_deliveries, [conn_id] if conn_id else conn_ids) if is_first else []
    last_conn_id = conn_id or (conn_ids[0] if conn_ids else "")
    return await page.render(
        "inbox.html",
        title="Inbox",
        conn_ids=conn_ids,
        is_any_hidden=await page.is_any_connection_hidden(),
        is_list_incomplete=await page.lookups.is_list_incomplete(),
        rows=await in_thread(delivery_rows, page.visitor, jobs),
        shown=shown,
        opened=delivery_id,
        refused=refused,
        refused_step=next_step([one.reason for one in refused]),
        last_conn_id=last_conn_id,
        last=await in_thread(page.store().last_received, last_conn_id)
        if last_conn_id and not found
        else None,
        are_any_started=not (found or given.keys() - {"conn_id"})
        and bool(await in_thread(page.store().newest, conn_id or conn_ids, DeliveryFilter(), 1)),
        is_filtered=bool(given),
        since=wanted.received_after,
        until=wanted.received_before,
        given={name: given.get(name, "") for name in _FILTERS},
        following=urlencode({**given, "before": following}) if following else None,
        first=urlencode(given) if before or delivery_id else None,
        csv=urlencode(given),
        most_exported=_EXPORTED,
    )


async def csv(page: PageView) -> Response:
    """Return the deliveries that match the filters as CSV, newest first."""
    found: list[StoredDelivery] = []
    if inbox_enabled():
        found, _ = await in_thread(_find, page, await page.conn_ids(), _wanted(page), None, _EXPORTED)
    readable = await in_thread(page.visitor.readable_dags, {one.dag_id for one in found if one.dag_id})
    heads = (
        *("id", "received_at", "event", "success", "conn_id", "job_or_check_id", "monitor_id", "monitor"),
        *("dag_id", "task_id", "bytes"),
    )
    rows = (
        (
            *(one.id, one.received_at.isoformat(), one.event, one.success),
            *(one.conn_id, one.job_id, one.monitor_id, one.monitor_name),
            *((one.dag_id, one.task_id) if one.dag_id in readable else ("", "")),
            one.size,
        )
        for one in found
    )
    return await in_thread(csv_file, "deliveries.csv", heads, rows)


def _wanted(page: PageView) -> DeliveryFilter:
    return DeliveryFilter(
        dag_ids=(page.text("dag_id"),) if page.text("dag_id") else (),
        events=(page.text("event"),) if page.text("event") else (),
        received_after=page.moment("since"),
        received_before=page.moment("until"),
        without_started=not (page.text("started") or page.text("event") or page.text("find")),
    )


def _find(
    page: PageView, conn_ids: list[str], wanted: DeliveryFilter, before: int | None, rows: int
) -> tuple[list[StoredDelivery], int | None]:
    """Return deliveries of these connections, and the position before which older ones match; None if none do."""
    conn_id, find = page.text("conn_id"), page.text("find")
    conn_ids = [conn_id] if conn_id else conn_ids
    found = page.store().newest(conn_ids, _by_id(wanted, find), rows + 1, before)
    following = found[rows - 1].position if len(found) > rows else None
    found = found[:rows]
    # A number may be a delivery's id, or a key such as a date. Longer numbers exceed the range of the database's ids.
    if find.isdecimal() and len(find) <= _ID_DIGITS and before is None:
        one = page.store().get(None, int(find))
        if one is not None and one.conn_id in conn_ids:
            found = [one, *(other for other in found if other.id != one.id)]
    return found, following


def _by_id(wanted: DeliveryFilter, find: str) -> DeliveryFilter:
    """Add a search text to the filter: an id, a key, a page URL, or a webhook URL, which contains the key."""
    if not find:
        return wanted
    if "://" in find:
        key = re.search(rf"{re.escape(INBOX_PATH)}/[^/]+/([^/?#]+)$", find)
        if key is None:
            return replace(wanted, page_urls=(find,))
        find = unquote(key[1])
    return replace(wanted, keys=(find,), job_ids=(find,), monitor_ids=(find,))


async def delivery_part(page: PageView) -> Response:
    """Show an opened row: ids, task, DAG runs that the delivery's asset event started, other events, and body."""
    delivery = await in_thread(_delivery, page, page.whole("id"))
    body, problem = await in_thread(_body, delivery)
    task, runs = await in_thread(_tasks, page, delivery, body)
    return await page.render(
        "inbox_delivery.html",
        title=f"Delivery {delivery.id}",
        delivery=delivery,
        body=body,
        problem=problem,
        error=error_of(body),
        check=check_page(delivery),
        task=task,
        runs=runs,
        events=await in_thread(_other_events, page, delivery),
        most_events=_EVENTS,
    )


async def body_part(page: PageView) -> Response:
    """Show a part of a delivery's body that its row omits."""
    delivery = await in_thread(_delivery, page, page.whole("id"))
    value, problem = await in_thread(_body, delivery)
    at, start = page.text("at"), page.whole("start")
    try:
        for index in map(int, at.split(".") if at else ()):
            value = next(islice(value.values() if isinstance(value, dict) else value, index, None))
    except (ValueError, TypeError, StopIteration):
        raise HTTPException(404, "The body does not have this part.") from None
    return await page.render(
        "inbox_body.html", title="Body", delivery=delivery, body=value, problem=problem, at=at, start=start
    )


def error_of(body: Any) -> str:
    """Return the error that a delivery reports; empty if none."""
    sources = (body, first_of(body)) if isinstance(body, dict) else ()
    return next((str(one["error"]) for one in sources if one.get("error")), "")


def _delivery(page: PageView, delivery_id: int) -> StoredDelivery:
    """Return a delivery.

    :raises HTTPException: 403, the visitor may not read its connection; 404, it does not exist.
    """
    delivery = page.store().get(None, delivery_id) if inbox_enabled() else None
    if delivery is None:
        raise HTTPException(404, f"Delivery {delivery_id} does not exist. It may have been pruned.")
    if not page.visitor.may_read_connection(delivery.conn_id):
        # Do not name the connection: ids of deliveries are easy to guess.
        raise HTTPException(403, "You do not have permission to read the connection of this delivery.")
    return delivery


def _tasks(page: PageView, delivery: StoredDelivery, body: Any) -> tuple[TaskName | None, list[StartedRun]]:
    """Return the task that started the job or declared the monitor, and the DAG runs that the delivery started.

    Those that the visitor may not read are omitted.
    """
    task = task_named(body.get("metadata")) if isinstance(body, dict) else None
    if task is None and delivery.job_id is not None:
        task = starters_of([delivery.job_id], STARTED).get(delivery.job_id)
    at, job_id = delivery.received_at, delivery.job_id
    runs = runs_started(
        at, at, delivery_ids={delivery.id}, check_ids={job_id} if job_id and delivery.monitor_id else ()
    )
    readable = page.visitor.readable_dags({run.dag_id for run in runs} | ({task.dag_id} if task else set()))
    return task if task and task.dag_id in readable else None, [run for run in runs if run.dag_id in readable]


def _other_events(page: PageView, delivery: StoredDelivery) -> list[StoredDelivery]:
    """Return the other deliveries about the same job or check, newest first."""
    if delivery.job_id is None:
        return []
    wanted = DeliveryFilter(job_ids=(delivery.job_id,))
    return [one for one in page.store().newest(delivery.conn_id, wanted, _EVENTS) if one.id != delivery.id]


def _body(delivery: StoredDelivery) -> tuple[Any, str | None]:
    """Return a delivery's body, or why it is not shown."""
    if delivery.size > MAX_SHOWN or delivery.body is None:
        return None, (
            f"The body is too large for this page. To print it, run: airflow webdata inbox show {delivery.id}"
        )
    try:
        return parse_body(delivery.body), None
    except NotJSONError as error:
        return None, f"The body is not JSON: {error}"
