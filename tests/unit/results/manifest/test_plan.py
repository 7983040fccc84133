"""The pages that an incremental crawl reads, and those that it leaves."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from airflow_provider_webdata.results.manifest.entries import Entry
from airflow_provider_webdata.results.manifest.plan import planned

PAGE = "https://a.example/b"
SEEN = datetime(2026, 1, 30, tzinfo=timezone.utc)
BEFORE, AFTER = SEEN - timedelta(hours=1), SEEN + timedelta(hours=1)


def entry(missing: int = 0) -> Entry:
    moment = SEEN.isoformat()
    return Entry(None, "d", 200, moment, moment, moment, missing)


CASES = {
    "new": ({}, {}, 2, True),
    "known": ({PAGE: entry()}, {}, 2, False),
    "old": ({PAGE: entry()}, {}, 1, True),
    "missing in the last run": ({PAGE: entry(missing=1)}, {}, 2, True),
    "changed since": ({PAGE: entry()}, {PAGE: AFTER}, 2, True),
    "changed before": ({PAGE: entry()}, {PAGE: BEFORE}, 2, False),
}


@pytest.mark.parametrize(("entries", "changed", "days", "read"), CASES.values(), ids=CASES.keys())
def test_which_pages_are_read(
    entries: dict[str, Entry], changed: dict[str, datetime], days: int, read: bool
) -> None:
    moment = SEEN + timedelta(days=1)
    found = planned([f"{PAGE}#top", PAGE], entries, changed, moment, timedelta(days=days))
    assert found == (([f"{PAGE}#top"], []) if read else ([], [PAGE]))


@pytest.mark.parametrize(("ignore_query", "count"), [(True, 1), (False, 2)])
def test_urls_that_differ_in_their_query(ignore_query: bool, count: int) -> None:
    urls = [f"{PAGE}?c=1", f"{PAGE}?c=2"]
    read, known = planned(urls, {}, {}, SEEN, timedelta(days=1), ignore_query=ignore_query)
    assert (len(read), known) == (count, [])
