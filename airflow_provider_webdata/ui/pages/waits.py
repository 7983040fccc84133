"""Waits for the service, in the triggerer and in workers."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.tasks import waiting_dags, waits_in_workers
from airflow_provider_webdata.ui.tasks import WAITS_SHOWN, WaitingTask, late_waits, waits
from airflow_provider_webdata.ui.threads import in_thread

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_webdata.airflow_db.tasks import StoredTask

    from .page import PageView

_IDS = {
    "check_id": "check",
    "job_id": "job",
    "monitor_id": "the next check of monitor",
    "key": "a delivery with key",
}


async def page(page: PageView) -> Response:
    """Show the waits of the DAGs that the visitor may read: first those in workers, and of each the longest first."""
    offset, dag = page.whole("offset"), page.text("dag")
    shown, total, hidden = await in_thread(readable_waits, page, offset, dag)
    return await page.render(
        "waits.html",
        title="Waits",
        waits=shown,
        stopped=await page.lookups.stopped_triggerer(),
        total=total,
        hidden=hidden,
        dag=dag,
        following=offset + WAITS_SHOWN if offset + WAITS_SHOWN < total else None,
        previous=max(offset - WAITS_SHOWN, 0) if offset else None,
    )


def readable_waits(
    page: PageView, offset: int = 0, dag: str = "", most: int = WAITS_SHOWN
) -> tuple[list[WaitingTask], int, int]:
    """Return a page of readable waits, the number of all of them, and the number of unreadable waits. Blocks.

    :param dag: return only waits of DAGs whose id contains this text.
    :param most: maximum number of waits.
    """
    in_workers = waits_in_workers()
    counts = Counter(waiting_dags())
    counts.update(task.name.dag_id for task in in_workers)
    readable = page.visitor.readable(counts)
    wanted = {dag_id for dag_id in readable if dag in dag_id}
    first = [_in_worker(task) for task in in_workers if task.name.dag_id in wanted]
    shown = first[offset : offset + most]
    if wanted and len(shown) < most:
        shown += waits(wanted, most - len(shown), max(offset - len(first), 0))
    hidden = sum(count for dag_id, count in counts.items() if dag_id not in readable)
    return shown, sum(counts[dag_id] for dag_id in wanted), hidden


def readable_late_waits(page: PageView) -> list[WaitingTask]:
    """Return at most `WAITS_SHOWN` readable waits whose deadline has passed, the first to end first. Blocks."""
    return late_waits(page.visitor.readable(waiting_dags()))


def _in_worker(task: StoredTask) -> WaitingTask:
    sources = (task.pushed, task.arguments)
    given = {
        key: next((one[key] for one in sources if isinstance(one.get(key), str) and one[key]), "")
        for key in _IDS
    }
    return WaitingTask(
        task.name,
        str(task.arguments["webdata_conn_id"]),
        next((f"{word} {given[key]}" for key, word in _IDS.items() if given[key]), "a delivery"),
        "holds a worker slot" if task.state == "running" else "frees its worker slot between checks",
        task.started or datetime.now(timezone.utc),
        None,
        {key: value for key, value in given.items() if value},
    )
