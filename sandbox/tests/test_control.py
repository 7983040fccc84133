# SPDX-License-Identifier: Apache-2.0
"""The control API: settings, pages, the record of requests, the reset."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support.tables import each_row
from webdata_sandbox.control import ControlError


@each_row(
    "settings",
    [{"rate_limits": {"books": 1}}, {"rate_limits": {"search": -1}}, {"entitlements": ["x"]}, {"x": 1}],
)
def test_settings_are_checked(sandbox, settings: dict[str, Any]) -> None:
    with pytest.raises(ControlError, match="400"):
        sandbox.control.configure(**settings)


def test_pages_are_listed(sandbox) -> None:
    before = sandbox.control.pages()
    assert len(before) > 30
    sandbox.control.set_page("https://one-more.example", "<p>x</p>", title="One more")
    assert {"url": "https://one-more.example/", "title": "One more", "status": 200} in sandbox.control.pages()
    assert sandbox.control.delete_page("https://one-more.example") is True
    assert sandbox.control.delete_page("https://one-more.example") is False
    assert sandbox.control.pages() == before


def test_its_page_links_to_what_it_holds(sandbox) -> None:
    with urlopen(f"{sandbox.url}/_sandbox/") as answer:
        assert answer.headers["content-type"].startswith("text/html")
        links = re.findall(r'href="(\S+)"', answer.read().decode())
    assert {"state", "pages", "jobs/agent"} <= set(links)
    for link in links:
        with urlopen(f"{sandbox.url}/_sandbox/{link}") as answer:
            json.load(answer)


def test_jobs_of_an_unknown_kind_are_refused(sandbox) -> None:
    with pytest.raises(ControlError, match="use one of crawl, batch_scrape, extract, agent"):
        sandbox.control.jobs("agents")


def test_reset(sandbox, api) -> None:
    sandbox.control.configure(queue_seconds=60, credits=5, latency_ms=1)
    sandbox.control.set_quirks(["chunked"])
    sandbox.control.add_fault("status", path="/nowhere", times=None)
    sandbox.control.set_page("https://one-more.example", "<p>x</p>")
    api.http.post(f"/v2/monitor/{api.create()['id']}/run")
    sandbox.control.reset()
    sandbox.control.advance(3600)
    state = sandbox.control.state()
    assert (state["monitors"], state["checks"], state["quirks"], state["requests"]) == ([], [], [], 0)
    assert state["credits"] == 100_000
    assert sandbox.control.faults() == []
    assert api.web("site:one-more.example") == []


def test_requests_are_recorded_without_the_key(sandbox, api) -> None:
    api.search("river", limit=1)
    api.http.get("/v2/monitor?limit=5")
    (search,) = sandbox.control.requests("/v2/search")
    assert (search["method"], search["body"], search["status"]) == (
        "POST",
        {"query": "river", "limit": 1},
        200,
    )
    assert search["headers"]["authorization"] == "Bearer ***"
    (listing,) = sandbox.control.requests(method="GET")
    assert (listing["query"], listing["body"]) == ({"limit": "5"}, None)
    assert (search["number"], listing["number"]) == (1, 2)
    assert sandbox.api_key not in json.dumps(sandbox.control.requests())
    sandbox.control.clear_requests()
    assert sandbox.control.requests() == []


def test_jobs_are_over_at_once_where_all_is_settled(sandbox, api) -> None:
    """As long as they take no time."""
    sandbox.control.configure(settle=True)
    for seconds, status in ((0, "completed"), (60, "scraping")):
        sandbox.control.configure(page_seconds=seconds)
        started = api.http.post("/v2/crawl", json={"url": "https://river.example/"}).json()
        assert sandbox.control.jobs("crawl")[-1]["status"] == status
        assert started["success"] is True
