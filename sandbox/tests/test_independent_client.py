# SPDX-License-Identifier: Apache-2.0
"""A client that others wrote for the public service works on the sandbox: that is how its fidelity is known."""

from __future__ import annotations

import asyncio

import pytest
from firecrawl import AsyncFirecrawl, Firecrawl
from firecrawl.v2.types import ScrapeOptions
from firecrawl.v2.utils.error_handler import BadRequestError, UnauthorizedError

from sandbox.tests.conftest import pass_the_half_hour
from webdata_sandbox.server import SandboxServer


@pytest.fixture
def client(sandbox: SandboxServer) -> Firecrawl:
    pass_the_half_hour(sandbox)
    return Firecrawl(api_key=sandbox.api_key, api_url=sandbox.url)


def create(client: Firecrawl, **fields: object):
    request = {
        "name": "gauge",
        "schedule": {"text": "every 30 minutes", "timezone": "Europe/Paris"},
        "targets": [{"type": "scrape", "urls": ["https://weather.example/levels"]}],
        **fields,
    }
    return client.create_monitor(**request)


def test_search_all_sources(client):
    found = client.search("river", sources=["web", "news", "images"], limit=3)
    assert [len(found.web), len(found.news), len(found.images)] == [3, 3, 3]
    assert found.web[0].url.startswith("https://")
    assert found.web[0].title
    assert found.web[0].description
    assert [item.position for item in found.news] == [1, 2, 3]
    assert found.images[0].image_url.startswith("https://")
    assert found.images[0].image_width > 0


@pytest.mark.rule("search-categories")
def test_search_category_github(client, sandbox):
    sandbox.control.set_quirks(["codehost-unknown"])
    found = client.search("pipeline", categories=["github"])
    assert {item.category for item in found.web} == {"github"}
    assert all(item.url.startswith("https://code.example/") for item in found.web)


def test_search_tbs(client):
    day = {item.url for item in client.search("river", tbs="qdr:d", limit=50).web}
    year = {item.url for item in client.search("river", tbs="qdr:y", limit=50).web}
    assert "https://river.example/floods" in day
    assert "https://river.example/salmon" in year - day


def test_search_scrape_options(client):
    options = ScrapeOptions(formats=["markdown", "links", "summary"], only_main_content=True)
    found = client.search("river level rises", limit=2, scrape_options=options)
    document = found.web[0]
    assert "412 cm" in document.markdown
    assert document.metadata.status_code == 200
    assert document.metadata.source_url == "https://river.example/floods"
    assert document.links
    assert found.warning


def test_search_domains(client):
    only = client.search("river", include_domains=["weather.example"], limit=50)
    without = client.search("river", exclude_domains=["weather.example"], limit=50)
    assert only.web
    assert all("//weather.example/" in item.url for item in only.web)
    assert not any("//weather.example/" in item.url for item in without.web)


def test_errors_are_recognised(sandbox, client):
    with pytest.raises(UnauthorizedError):
        Firecrawl(api_key="wrong", api_url=sandbox.url).search("river")
    with pytest.raises(BadRequestError, match="Invalid request body"):
        client.search("river", tbs="qdr:nonsense")


@pytest.mark.rule("monitor-update", "monitor-delete")
def test_monitor_life(sandbox, client):
    monitor = create(client, goal="the river level")
    assert monitor.status == "active"
    assert monitor.schedule.cron == "*/30 * * * *"
    assert monitor.schedule.timezone == "Europe/Paris"
    assert monitor.judge_enabled is True
    assert [item.id for item in client.list_monitors()] == [monitor.id]
    assert client.get_monitor(monitor.id) == monitor

    updated = client.update_monitor(monitor.id, name="levels", retention_days=7)
    assert (updated.name, updated.retention_days) == ("levels", 7)
    assert updated.targets == monitor.targets

    first = client.run_monitor(monitor.id)
    assert (first.status, first.trigger) == ("queued", "manual")
    sandbox.control.settle()
    detail = client.get_monitor_check(monitor.id, first.id)
    assert (detail.status, detail.summary.new) == ("completed", 1)

    sandbox.control.set_page("https://weather.example/levels", "<h1>River levels</h1><p>Bridge: 455 cm</p>")
    second = client.run_monitor(monitor.id)
    sandbox.control.settle()
    detail = client.get_monitor_check(monitor.id, second.id)
    assert [page.status for page in detail.pages] == ["changed"]
    assert "+Bridge: 455 cm" in detail.pages[0].diff.text
    assert detail.pages[0].diff.json["files"][0]["chunks"]
    assert detail.pages[0].judgment.meaningful is True
    assert [check.id for check in client.list_monitor_checks(monitor.id)] == [second.id, first.id]

    assert client.delete_monitor(monitor.id) is True
    assert client.list_monitors() == []


@pytest.mark.rule("check-get")
def test_client_follows_pages_of_a_check(sandbox, client):
    urls = [f"https://many.example/{number}" for number in range(60)]
    for url in urls:
        sandbox.control.set_page(url, "<p>x</p>")
    monitor = create(client, targets=[{"type": "scrape", "urls": urls}])
    check = client.run_monitor(monitor.id)
    sandbox.control.settle()
    sandbox.control.clear_requests()
    detail = client.get_monitor_check(monitor.id, check.id)
    assert [page.url for page in detail.pages] == urls
    assert [r["query"].get("skip") for r in sandbox.control.requests("/v2/monitor")] == [None, "25", "50"]


@pytest.mark.rule("next-host")
def test_client_pins_the_host_of_next(sandbox, client):
    sandbox.control.set_quirks(["next-wrong-host"])
    test_client_follows_pages_of_a_check(sandbox, client)


def test_credit_usage(client):
    before = client.get_credit_usage().remaining_credits
    client.search("river", limit=5)
    assert client.get_credit_usage().remaining_credits == before - 2


def test_async_client(sandbox):
    async def main() -> tuple[int, str]:
        client = AsyncFirecrawl(api_key=sandbox.api_key, api_url=sandbox.url)
        found = await client.search("river", limit=4)
        monitor = await client.create_monitor(
            name="async",
            schedule={"cron": "0 6 * * *"},
            targets=[{"type": "search", "queries": ["river"]}],
            goal="floods",
        )
        check = await client.run_monitor(monitor.id)
        sandbox.control.settle()
        detail = await client.get_monitor_check(monitor.id, check.id)
        return len(found.web), detail.status

    assert asyncio.run(main()) == (4, "completed")


@pytest.mark.rule("format-json", "format-question", "format-change-tracking", "document-change-tracking")
def test_scrape_in_the_formats_of_a_language_model(sandbox, client):
    schema = {"type": "object", "properties": {"plans": {"type": "array"}, "currency": {"type": "string"}}}
    formats = [
        "markdown",
        {"type": "json", "schema": schema},
        {"type": "question", "question": "Which plans are there?"},
        {"type": "changeTracking", "modes": ["git-diff"]},
    ]
    url = "https://shop.example/plans"
    first = client.scrape(url, formats=formats)
    assert first.json["plans"] == [{"name": "Small", "price": 12}, {"name": "Large", "price": 30}]
    assert first.json["currency"] == "sample"
    assert "currency" in first.warning
    assert "plans" in first.answer
    assert first.change_tracking["changeStatus"] == "new"
    sandbox.control.set_page(url, "<p>No plans</p>")
    assert client.scrape(url, formats=formats).change_tracking["changeStatus"] == "changed"
