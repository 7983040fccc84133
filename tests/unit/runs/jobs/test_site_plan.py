"""Plans of incremental crawls, from sitemaps that the site wrote."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.results.manifest.entries import Entry
from airflow_provider_webdata.runs.jobs.site_plan import Site

MOMENT = datetime(2026, 1, 31, tzinfo=timezone.utc)
HOSTILE = "https://u:pa55word@a.example/\x9b2Jb?token=t0ken123"


def test_urls_in_sitemaps_do_not_forge_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    nested = f"<sitemapindex>{''.join(f'<sitemap><loc>{HOSTILE}{n}</loc></sitemap>' for n in 'xy')}"
    site = Site("https://a.example/", {}, None, 2, timedelta(days=1), ignore_query=False)
    entry = Entry(None, "d", 200, *(MOMENT.isoformat(),) * 3)

    def scrape(body: dict[str, Any]) -> tuple[str, float]:
        return nested if body["url"].endswith("sitemap.xml") else "", 1

    with caplog.at_level(logging.INFO):
        site.plan([], {"a": entry}, MOMENT, scrape, logging.getLogger("test"))
    assert len(caplog.messages) == 3
    assert not [
        line for line in caplog.messages if "\x9b" in line or "pa55word" in line or "t0ken123" in line
    ]
