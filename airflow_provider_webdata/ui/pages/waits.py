"""Waits of deferred tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.tasks import waiting_dags
from airflow_provider_webdata.ui.tasks import WAITS_SHOWN, waits
from airflow_provider_webdata.ui.threads import in_thread

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_webdata.ui.tasks import WaitingTask

    from .page import PageView


async def page(page: PageView) -> Response:
    """Show the waits of the DAGs that the visitor may read, the longest first."""
    offset = page.whole("offset")
    shown, total, hidden = await in_thread(readable_waits, page, offset)
    return await page.render(
        "waits.html",
        title="Waits",
        waits=shown,
        stopped=await page.lookups.stopped_triggerer(),
        total=total,
        hidden=hidden,
        offset=offset,
        following=offset + WAITS_SHOWN if offset + WAITS_SHOWN < total else None,
        previous=max(offset - WAITS_SHOWN, 0) if offset else None,
    )


def readable_waits(page: PageView, offset: int = 0) -> tuple[list[WaitingTask], int, int]:
    """Return a page of readable waits, the number of all readable waits, and the number of unreadable waits.

    Blocks.
    """
    counts = waiting_dags()
    readable = page.visitor.readable(counts)
    total = sum(counts[dag_id] for dag_id in readable)
    return waits(readable, offset) if readable else [], total, sum(counts.values()) - total
