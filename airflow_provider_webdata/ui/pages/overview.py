"""The service and the inbox at a glance, connection by connection."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import anyio

from airflow_provider_webdata.inbox_server.storage.errors import StoreUnavailableError
from airflow_provider_webdata.ui.charts import Bar, bars
from airflow_provider_webdata.ui.tasks import waiting_dags, waits

if TYPE_CHECKING:
    from starlette.responses import Response

    from .page import Page

COUNTED = 10_000
"""Deliveries of one event that are counted at most."""
_PERIODS = 12


async def page(page: Page) -> Response:
    """Show each connection, and what waits."""
    conn_ids = await page.conn_ids()
    counts = await page.thread(waiting_dags)
    readable = await page.thread(page.visitor.readable, counts)
    now = await page.thread(waits, readable) if readable else []
    inbox = [await page.thread(_inbox, page, conn_id) for conn_id in conn_ids]
    return await page.render(
        "overview.html",
        title="Overview",
        connections=[
            {"conn_id": conn_id, "inbox": found, "waits": [wait for wait in now if wait.conn_id == conn_id]}
            for conn_id, found in zip(conn_ids, inbox, strict=True)
        ],
        waiting=sum(counts[dag_id] for dag_id in readable),
        shown=len(now),
        counted=COUNTED,
    )


async def service_part(page: Page) -> Response:
    """Show credits and queue of a connection, as the service has them."""
    conn_id = page.required("conn_id")
    results: dict[str, Any] = {}

    async def find(name: str, ask: Any) -> None:
        results[name] = await page.lookups.find(conn_id, name, ask)

    async with anyio.create_task_group() as group:
        group.start_soon(find, "credits", lambda hook: hook.credit_usage())
        group.start_soon(find, "history", lambda hook: hook.credit_history())
        group.start_soon(find, "queue", lambda hook: hook.queue_status())
    history = results["history"].value
    periods = sorted(history.periods if history else (), key=lambda period: period.start_date or "")
    chart = [
        Bar(f"{(period.start_date or '?')[:10]} to {(period.end_date or 'now')[:10]}", period.used or 0)
        for period in periods[-_PERIODS:]
    ]
    problems = dict.fromkeys(found.problem for found in results.values() if found.problem)
    return await page.render(
        "overview_service.html",
        title="Service",
        credits=results["credits"].value,
        queue=results["queue"].value,
        periods=chart,
        chart=bars(chart, "Credits used in each billing period"),
        problems=list(problems),
    )


async def health_part(page: Page) -> Response:
    """Show a message that says whether a connection works, and what to do if it does not."""
    findings = await page.lookups.health(page.required("conn_id"))
    return await page.render("overview_health.html", title="Health", findings=findings)


def _inbox(page: Page, conn_id: str) -> dict[str, Any]:
    since = datetime.now(timezone.utc) - timedelta(days=1)
    store = page.store()
    try:
        last = store.last_received(conn_id)
        counts = store.count_events(conn_id, since, COUNTED)
    except StoreUnavailableError as error:
        return {"problem": str(error), "last": None, "counts": []}
    return {"problem": None, "last": last, "counts": counts}
