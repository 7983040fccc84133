"""Webhook deliveries in the inbox: a filterable list, and single deliveries."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlencode

from starlette.exceptions import HTTPException

from airflow_provider_webdata.airflow_db.tasks import TaskName, runs_started_by
from airflow_provider_webdata.inbox.envelope import NotJSONError, first_of, parse_body
from airflow_provider_webdata.inbox.wire import INBOX_PATH
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.ui.attention import page_of
from airflow_provider_webdata.ui.rendering import csv_file
from airflow_provider_webdata.ui.threads import in_thread

from .owners import delivery_owners, readable_deliveries, task_named
from .waits import readable_waits

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
    from airflow_provider_webdata.ui.tasks import WaitingTask

    from .page import PageView

ROWS = 50
MAX_SHOWN = 2**20
"""Maximum bytes of a payload that is shown."""

_SEARCHED = 500
"""Maximum number of deliveries that one page searches by DAG, which only their bodies and Airflow's tables name."""
_WAITS_SEARCHED = 500
"""Maximum number of waits, whose arguments are encrypted, that the page of a delivery searches."""
_EXPORTED = 1000
"""Maximum number of deliveries that are searched for a CSV file."""
_ID_DIGITS = 18
_FILTERS = ("conn_id", "event", "dag", "find", "since", "until", "started")


async def page(page: PageView) -> Response:
    """List deliveries, newest first, filtered by connection, event, DAG, id, page, and time.

    Every filter except the DAG has an index that ends with the position. Among a million deliveries, a page reads only
    as many index rows as it shows.
    """
    wanted, before = _wanted(page), page.whole("before") or None
    most = _SEARCHED if page.text("dag") else ROWS
    conn_ids = await page.conn_ids()
    found = await in_thread(_find, page, conn_ids, wanted, before, ROWS, most)
    given = {name: page.text(name) for name in _FILTERS if page.text(name)}
    return await page.render(
        "deliveries.html",
        title="Deliveries",
        conn_ids=conn_ids,
        is_any_hidden=await page.is_any_connection_hidden(),
        is_list_incomplete=await page.lookups.is_list_incomplete(),
        deliveries=found.readable,
        are_any_hidden=len(found.readable) < found.searched,
        are_any_started=not (found.searched or given.keys() - {"conn_id"})
        and bool(await in_thread(page.store().newest, page.text("conn_id") or conn_ids, DeliveryFilter(), 1)),
        is_filtered=bool(given),
        searched=found.searched if page.text("dag") else None,
        since=wanted.received_after,
        until=wanted.received_before,
        given={name: given.get(name, "") for name in _FILTERS},
        following=urlencode({**given, "before": found.following}) if found.following else None,
        first=urlencode(given) if before else None,
        csv=urlencode(given),
        most_exported=_EXPORTED,
    )


async def csv(page: PageView) -> Response:
    """Return the deliveries that match the filters as CSV, newest first."""
    found = await in_thread(_find, page, await page.conn_ids(), _wanted(page), None, _EXPORTED, _EXPORTED)
    heads = ("id", "received_at", "event", "success", "conn_id", "job_or_check_id", "monitor_id", "bytes")
    rows = (
        (
            *(one.id, one.received_at.isoformat(), one.event, one.success),
            *(one.conn_id, one.job_id, one.monitor_id, one.size),
        )
        for one in found.readable
    )
    return await in_thread(csv_file, "deliveries.csv", heads, rows)


class _Found(NamedTuple):
    """Deliveries that match the filters.

    :param searched: number of deliveries among which they were found.
    :param following: position before which older ones may match; None if none are older.
    """

    readable: list[StoredDelivery]
    searched: int
    following: int | None


def _wanted(page: PageView) -> DeliveryFilter:
    return DeliveryFilter(
        events=(page.text("event"),) if page.text("event") else (),
        received_after=page.moment("since"),
        received_before=page.moment("until"),
        without_started=not (page.text("started") or page.text("event") or page.text("find")),
    )


def _find(
    page: PageView, conn_ids: list[str], wanted: DeliveryFilter, before: int | None, rows: int, most: int
) -> _Found:
    conn_id, find, dag = (page.text(name) for name in ("conn_id", "find", "dag"))
    conn_ids = [conn_id] if conn_id else conn_ids
    wanted = _by_id(wanted, find)
    found: list[StoredDelivery] = []
    # A number may be a delivery's id, or a key such as a date. Longer numbers exceed the range of the database's ids.
    if find.isdecimal() and len(find) <= _ID_DIGITS and before is None:
        one = page.store().get(None, int(find))
        found = readable_deliveries(page, [one] if one and one.conn_id in conn_ids else [], dag)
    searched, by_id = len(found), {one.id for one in found}
    while True:
        part = page.store().newest(conn_ids, wanted, ROWS + 1, before)
        for one in readable_deliveries(page, part[:ROWS], dag):
            if one.id in by_id:
                continue
            found.append(one)
            if len(found) == rows:
                following = None if one is part[-1] else one.position
                return _Found(found, searched + part.index(one) + 1, following)
        searched += len(part[:ROWS])
        before = part[ROWS - 1].position if len(part) > ROWS else None
        if before is None or searched >= most:
            return _Found(found, searched, before)


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


async def one(page: PageView) -> Response:
    """Show a delivery: envelope, payload, task, and the DAG runs that its asset event started."""
    found = await in_thread(_checked, page)
    delivery = found.delivery
    now, _, _ = await in_thread(readable_waits, page, most=_WAITS_SEARCHED)
    return await page.render(
        "delivery.html",
        title=f"Delivery {delivery.id}",
        delivery=delivery,
        payload=found.payload,
        problem=found.problem,
        error=error_of(found.payload),
        link=page_of(delivery),
        origin=found.origin,
        waits=[wait for wait in now if _waits_for(wait, delivery)],
        runs=found.runs,
    )


async def one_part(page: PageView) -> Response:
    """Show a part of a delivery's payload that the delivery's page omits."""
    found = await in_thread(_checked, page)
    at, start = page.text("at"), page.whole("start")
    value = found.payload
    try:
        for index in map(int, at.split(".") if at else ()):
            value = next(islice(value.values() if isinstance(value, dict) else value, index, None))
    except (ValueError, TypeError, StopIteration):
        raise HTTPException(404, "The payload does not have this part.") from None
    return await page.render(
        "delivery_part.html",
        title="Payload",
        delivery=found.delivery,
        payload=value,
        problem=found.problem,
        at=at,
        start=start,
    )


def error_of(payload: Any) -> str:
    """Return the error that a delivery reports; empty if none."""
    sources = (payload, first_of(payload)) if isinstance(payload, dict) else ()
    return next((str(one["error"]) for one in sources if one.get("error")), "")


class _Delivery(NamedTuple):
    delivery: StoredDelivery
    payload: Any
    problem: str | None
    origin: TaskName | None
    runs: list[tuple[str, str]]


def _checked(page: PageView) -> _Delivery:
    """Return the delivery that the URL names.

    :raises HTTPException: 404, it does not exist; 403, the visitor may not read it.
    """
    delivery_id = page.whole("id")
    delivery = page.store().get(None, delivery_id)
    if delivery is None:
        raise HTTPException(404, f"Delivery {delivery_id} does not exist. It may have been pruned.")
    payload, problem = _payload(delivery)
    origin = task_named(payload)
    runs = runs_started_by(delivery.id, delivery.job_id, delivery.received_at)
    dag_ids = delivery_owners([delivery])[delivery.id]
    page.require_dags(dag_ids)
    if not dag_ids and not page.visitor.may_read_connection(delivery.conn_id):
        # Do not name the connection: ids of deliveries are easy to guess.
        raise HTTPException(403, "You do not have permission to read the connection of this delivery.")
    readable = page.visitor.readable(dag_id for dag_id, _ in runs)
    return _Delivery(delivery, payload, problem, origin, [run for run in runs if run[0] in readable])


def _waits_for(wait: WaitingTask, delivery: StoredDelivery) -> bool:
    named = (("key", delivery.key), ("job_id", delivery.job_id), ("monitor_id", delivery.monitor_id))
    return wait.conn_id == delivery.conn_id and any(
        value is not None and wait.arguments.get(name) == value for name, value in named
    )


def _payload(delivery: StoredDelivery) -> tuple[Any, str | None]:
    if delivery.size > MAX_SHOWN or delivery.body is None:
        return None, (
            f"The payload is too large for this page. To print it, run: airflow webdata inbox show {delivery.id}"
        )
    try:
        return parse_body(delivery.body), None
    except NotJSONError as error:
        return None, f"The payload is not JSON: {error}"
