"""The waits of deferred tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.ui.tasks import WAITS_SHOWN, waiting_dags, waits

if TYPE_CHECKING:
    from starlette.responses import Response

    from .page import Page


async def page(page: Page) -> Response:
    """Show the waits of the DAGs that the visitor may read, the longest first."""
    offset = page.whole("offset")
    counts = await page.thread(waiting_dags)
    readable = await page.thread(page.visitor.readable, counts)
    shown = await page.thread(waits, readable, offset) if readable else []
    total = sum(counts[dag_id] for dag_id in readable)
    return await page.render(
        "waits.html",
        title="Waits",
        waits=shown,
        stopped=await page.lookups.stopped_triggerer(),
        total=total,
        hidden=sum(counts.values()) - total,
        offset=offset,
        following=offset + WAITS_SHOWN if offset + WAITS_SHOWN < total else None,
        previous=max(offset - WAITS_SHOWN, 0) if offset else None,
    )
