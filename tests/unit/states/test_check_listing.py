# SPDX-License-Identifier: Apache-2.0
"""How far back a monitor's checks are read."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.api.models import MonitorCheck
from airflow_provider_webdata.states.check_listing import FIRST_LIMIT, NEXT_LIMIT, CheckListing

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def checks(count: int, **unlike: dict[str, Any]) -> list[MonitorCheck]:
    """Return checks, newest first; number n ended n minutes ago, and what is given of `cN` is otherwise."""
    found = []
    for number in range(count):
        end = (NOW - timedelta(minutes=number)).isoformat()
        plain = {"id": f"c{number}", "status": "completed", "finishedAt": end}
        found.append(MonitorCheck.model_validate({**plain, **unlike.get(f"c{number}", {})}))
    return found


def read(listing: CheckListing, stored: list[MonitorCheck], *, ignores_offset: bool = False) -> list[int]:
    """Answer the listing's queries, and return the size of each page."""
    pages = []
    while (query := listing.query) is not None:
        start = 0 if ignores_offset else query.offset
        page = stored[start : start + query.limit]
        pages.append(len(page))
        listing.add_page(page)
    return pages


SKIPPED = {"status": "skipped_overlap"}
RUNNING = {"status": "running", "finishedAt": None, "createdAt": "2020-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("minutes", "stored", "pages"),
    [
        (None, checks(300), [FIRST_LIMIT]),
        (None, checks(3), [3]),
        (5, checks(3), [3]),
        (5, checks(300), [FIRST_LIMIT]),
        (FIRST_LIMIT - 1, checks(300), [FIRST_LIMIT]),
        (FIRST_LIMIT, checks(300), [FIRST_LIMIT, NEXT_LIMIT]),
        (200, checks(300), [FIRST_LIMIT, NEXT_LIMIT, NEXT_LIMIT]),
        (10_000, checks(5000), [FIRST_LIMIT, *[NEXT_LIMIT] * 49, 75]),
        (FIRST_LIMIT - 1, checks(300, c24=SKIPPED), [FIRST_LIMIT, NEXT_LIMIT]),
        (FIRST_LIMIT - 1, checks(300, c24=RUNNING), [FIRST_LIMIT, NEXT_LIMIT]),
    ],
    ids=[
        "no moment", "no moment, few", "all are later", "one is earlier", "the last is earlier", "none is earlier",
        "two pages on", "all of thousands", "one that was skipped says nothing", "nor does one that runs",
    ],
)  # fmt: skip
def test_pages(minutes: int | None, stored: list[MonitorCheck], pages: list[int]) -> None:
    listing = CheckListing(None if minutes is None else NOW - timedelta(minutes=minutes))
    assert read(listing, stored) == pages
    assert [check.id for check in listing.checks] == [check.id for check in stored[: sum(pages)]]


def test_a_service_that_ignores_the_offset_is_not_asked_for_ever() -> None:
    listing = CheckListing(NOW - timedelta(days=1))
    assert read(listing, checks(300), ignores_offset=True) == [FIRST_LIMIT, NEXT_LIMIT, NEXT_LIMIT]
    assert len(listing.checks) == NEXT_LIMIT


def test_a_check_that_a_new_one_pushes_onto_the_next_page_comes_once() -> None:
    stored = checks(60)
    listing = CheckListing(NOW - timedelta(days=1))
    listing.add_page(stored[:FIRST_LIMIT])
    listing.add_page(stored[FIRST_LIMIT - 1 :])
    assert (listing.query, len(listing.checks)) == (None, 60)
