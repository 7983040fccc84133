# SPDX-License-Identifier: Apache-2.0
"""Deliveries by job or check: rows of a page, their titles, states, and events."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
from airflow_provider_webdata.ui.deliveries import JobDeliveries, by_job

NOW = datetime.now(timezone.utc)


def delivery(number: int, event: str | None, job_id: str | None = "job", **more: Any) -> StoredDelivery:
    values: dict[str, Any] = dict.fromkeys(
        ("key", "monitor_id", "monitor_name", "dag_id", "task_id", "success")
    )
    values |= {"conn_id": "market", **more}
    return StoredDelivery(number, number, event=event, job_id=job_id, received_at=NOW, size=2, **values)


def test_a_page_ends_before_the_next_job() -> None:
    """Deliveries without a job, and the same id at another connection, have their own rows."""
    found = [
        delivery(9, "crawl.completed", "a"),
        delivery(8, "crawl.page", "a"),
        delivery(7, "x", None),
        delivery(6, "x", None),
        delivery(5, "crawl.page", "a"),
        delivery(4, "crawl.page", "a", conn_id="other"),
        delivery(3, "crawl.started", "a"),
    ]
    for most, ids, number in (
        (4, [[9, 8, 5, 3], [7], [6], [4]], 7),
        (3, [[9, 8, 5], [7], [6]], 5),
        (1, [[9, 8]], 2),
    ):
        jobs, read = by_job(found, most)
        assert ([[one.id for one in job.deliveries] for job in jobs], read) == (ids, number)


@pytest.mark.parametrize(
    ("events", "title", "state", "texts"),
    [
        (
            [("crawl.completed", True), ("crawl.page", False), ("crawl.page", True)],
            *("Crawl", "completed", ["completed", "page × 2 (1 failed)"]),
        ),
        ([("batch_scrape.failed", None)], "Batch scrape", "failed", ["failed"]),
        (
            [("agent.action", None), ("agent.cancelled", None)],
            "Agent run",
            "cancelled",
            ["action", "cancelled"],
        ),
        ([("monitor.check.completed", False)], "Check of Prices", "failed", ["check.completed"]),
        ([("crawl.page", True)], "Crawl", "", ["page"]),
        ([("odd", None)], "odd", "", ["odd"]),
        ([(None, None)], "Unnamed event", "", ["unnamed"]),
    ],
)
def test_a_row(
    events: list[tuple[str | None, bool | None]], title: str, state: str, texts: list[str]
) -> None:
    more = {"monitor_id": "m", "monitor_name": "Prices"} if title.startswith("Check") else {}
    job = JobDeliveries(
        [delivery(9 - at, name, success=success, **more) for at, (name, success) in enumerate(events)]
    )
    assert (job.title, job.state, job.events) == (title, state, texts)
