# SPDX-License-Identifier: Apache-2.0
"""The sandbox's own web is what its page in the documentation says."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest

import webdata_sandbox
from tests.support.tables import each_row

WEB = Path(webdata_sandbox.__file__).parent / "web"
PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"
ROWS = re.findall(
    r"^\| `([\w.]+)` \| (\d+) \| .* \| `(.+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
)


def test_all_hosts_are_listed() -> None:
    pages = {
        host.name: sum(path.is_file() for path in host.rglob("*")) for host in WEB.iterdir() if host.is_dir()
    }
    assert {host: int(count) for host, count, _ in ROWS} == pages


@each_row("host, query", [(host, query) for host, _, query in ROWS])
def test_the_query_of_a_host_finds_it(api, host: str, query: str) -> None:
    sources = ["images"] if query.startswith("imagesize:") else ["web"]
    (found,) = api.search(query, sources=sources, limit=5).json()["data"].values()
    assert host in {item["url"].split("/")[2] for item in found}


@pytest.mark.parametrize("host", ["docs.pipeline.example"])
def test_every_month_before_has_a_page(host: str) -> None:
    """The example that searches month by month finds something in the last one, whatever day it is."""
    ages = {
        int(days)
        for page in (WEB / host).rglob("*.html")
        for days in re.findall(r"ago:(\d+)d", page.read_text(encoding="utf-8"))
    }
    for number in range(366 * 4):
        today = date(2026, 1, 1) + timedelta(days=number)
        month_before = today.replace(day=1) - timedelta(days=1)
        published = {(today - timedelta(days=age)).replace(day=1) for age in ages}
        assert month_before.replace(day=1) in published, today
