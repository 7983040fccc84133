# SPDX-License-Identifier: Apache-2.0
"""Searches that scrape their results: formats, the cache, pages that fail."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import each_row

from .conftest import reset_sandbox
from .search_calls import document


@pytest.mark.rule("scrape-switches", "scrape-tags", "format-plain")
@each_row(
    "url, options, name, holds, lacks",
    [
        (
            "/floods",
            {"formats": ["markdown"]},
            "markdown",
            ["# River level rises", "1. Move cars"],
            ["newsletter", "All of"],
        ),
        (
            "/floods",
            {"formats": ["markdown"], "onlyMainContent": False},
            "markdown",
            ["newsletter", "All of"],
            [],
        ),
        (
            "/floods",
            {"formats": ["markdown"], "includeTags": ["ol"]},
            "markdown",
            ["1. Move cars"],
            ["412 cm"],
        ),
        (
            "/floods",
            {"formats": ["markdown"], "excludeTags": ["ol", "h2"]},
            "markdown",
            ["412 cm"],
            ["Move cars", "What to do"],
        ),
        ("/floods", {"formats": ["html"]}, "html", ["<ol>", "<h1>"], ["<footer", "<nav"]),
        ("/floods", {"formats": ["rawHtml"]}, "rawHtml", ["<!doctype html>", "<footer", "<nav"], []),
        (
            "/floods",
            {"formats": ["links"]},
            "links",
            ["https://weather.example/warnings", "https://river.example/bridges"],
            [],
        ),
        ("/floods", {"formats": ["images"]}, "images", ["https://river.example/img/flood.jpg"], []),
        ("/floods", {"formats": ["summary"]}, "summary", ["412 cm"], ["Move cars"]),
        ("/floods", {"formats": [{"type": "markdown"}]}, "markdown", ["412 cm"], []),
        ("/levels", {"formats": ["markdown"]}, "markdown", ["| Upper mill | 388 |", "| --- | --- |"], []),
        ("/scheduling", {"formats": ["markdown"]}, "markdown", ["```\nschedule = ", "**ended**"], []),
        (
            "/warnings",
            {"formats": ["markdown"]},
            "markdown",
            ["![Warning sign](<Base64-Image-Removed>)"],
            ["data:image"],
        ),
        (
            "/warnings",
            {"formats": ["markdown"], "removeBase64Images": False},
            "markdown",
            ["data:image/gif"],
            [],
        ),
        ("/warnings", {"formats": ["html"]}, "html", ["data:image/gif"], []),
        (
            "/warnings",
            {"formats": ["markdown"], "excludeTags": [".cookie-banner"]},
            "markdown",
            ["Flood watch"],
            ["cookies"],
        ),
        (
            "/grinders",
            {"formats": ["html"], "includeTags": ["#price", "p.stock"]},
            "html",
            ["59.00", "In stock"],
            ["burrs"],
        ),
        ("fish-ladders", {"formats": ["markdown"]}, "markdown", ["# Fish ladders", "## Discussion"], []),
    ],
)
def test_formats(
    api, url: str, options: dict[str, Any], name: str, holds: list[str], lacks: list[str]
) -> None:
    item = document(api, url, **options)
    assert item.keys() == {"url", "title", "description", "metadata", name}
    assert all(text in item[name] for text in holds), item[name]
    assert not any(text in item[name] for text in lacks), item[name]


@pytest.mark.rule("metadata-texts", "metadata-open", "metadata-urls")
def test_metadata(api) -> None:
    item = document(api, "papers/rain", formats=["markdown"])
    metadata = item["metadata"]
    assert metadata["title"] == "Rain and river levels: a model"
    assert metadata["sourceURL"] == metadata["url"] == "https://journal.example/papers/rain"
    assert (metadata["statusCode"], metadata["language"], metadata["contentType"]) == (200, "en", "text/html")
    assert metadata["citation_author"] == ["A. Brook", "B. Ford"]
    assert (metadata["creditsUsed"], metadata["cacheState"]) == (1, "miss")


@pytest.mark.rule("credits-pdf", "parser-pdf", "metadata-pdf")
@each_row(
    "options, pages, credits",
    [({}, 3, 3), ({"parsers": [{"type": "pdf", "maxPages": 2}]}, 2, 2), ({"parsers": ["pdf"]}, 3, 3)],
    before=reset_sandbox,
)
def test_pdf_pages_are_capped_and_billed(api, options: dict[str, Any], pages: int, credits: int) -> None:
    item = document(api, "fish-ladders", formats=["markdown", "rawHtml"], **options)
    metadata = item["metadata"]
    assert (metadata["numPages"], metadata["totalPages"], metadata["creditsUsed"]) == (pages, 3, credits)
    assert ("Discussion" in item["markdown"]) is (pages == 3)
    assert item["rawHtml"] is None


@each_row(
    "options",
    [
        {"formats": [name]}
        for name in ("screenshot", "rawBase64", "branding", "product", "menu", "audio", "video")
    ]
    + [{"formats": [{"type": "query", "prompt": "?"}]}]
    + [
        {"formats": ["markdown"], **more}
        for more in (
            {"actions": [{"type": "click", "selector": "a"}]},
            {"onlyCleanContent": True},
            {"redactPII": True},
            {"redactPII": {"mode": "fast"}},
            {"includeTags": ["div >"]},
        )
    ],
)
def test_what_it_cannot_do_it_refuses(api, options: dict[str, Any]) -> None:
    before = api.balance()
    response = api.search("river", scrapeOptions=options)
    assert response.status_code == 400
    assert response.json()["code"] == "UNSUPPORTED_IN_SANDBOX"
    assert api.balance() == before


@pytest.mark.rule("search-scrape-options")
@each_row("options", [{}, {"formats": []}, {"onlyMainContent": False}, {"waitFor": 5, "mobile": True}])
def test_without_formats_nothing_is_scraped(api, options: dict[str, Any]) -> None:
    answer = api.search("river", scrapeOptions=options).json()
    assert all(item.keys() == {"url", "title", "description"} for item in answer["data"]["web"])
    assert answer["creditsUsed"] == 2


@pytest.mark.rule("search-news-item")
def test_news_is_scraped_too(api) -> None:
    answer = api.search("flood", sources=["news"], limit=1, scrapeOptions={"formats": ["markdown"]}).json()
    assert answer["data"]["news"][0]["markdown"].startswith("# ")
    assert answer["creditsUsed"] == 3


class TestCache:
    """The cache between searches and pages: maxAge, minAge, lockdown, storeInCache."""

    URL = "https://river.example/salmon"

    def scrape(self, api, **options: Any) -> tuple[int, dict[str, Any]]:
        answer = api.search("inurl:salmon", limit=1, scrapeOptions={"formats": ["markdown"], **options})
        return answer.status_code, answer.json()

    def text(self, api, **options: Any) -> str:
        status, answer = self.scrape(api, **options)
        assert status == 200, answer
        return answer["data"]["web"][0]["markdown"]

    @pytest.mark.rule("scrape-max-age")
    @each_row(
        "wait, options, fresh",
        [
            (0, {}, False),
            (172_799, {}, False),
            (172_801, {}, True),
            (0, {"maxAge": 0}, True),
            (61, {"maxAge": 60_000}, True),
            (59, {"maxAge": 60_000}, False),
            (61, {"minAge": 60_000}, False),
            (0, {"minAge": 1}, False),
            (0, {"headers": {"Cookie": "a"}}, True),
            (86_400 * 300, {"lockdown": True}, False),
        ],
        before=reset_sandbox,
    )
    def test_age(self, sandbox, api, wait: float, options: dict[str, Any], fresh: bool) -> None:
        assert "312 salmon" in self.text(api)
        sandbox.control.set_page(self.URL, "<p>No more salmon.</p>")
        sandbox.control.advance(wait)
        assert ("No more salmon" in self.text(api, **options)) is fresh

    @pytest.mark.rule("credits-lockdown", "scrape-min-age", "scrape-lockdown")
    @each_row(
        "options, code, credits",
        [
            ({"minAge": 1}, "SCRAPE_NO_CACHED_DATA", 0),
            ({"lockdown": True}, "SCRAPE_LOCKDOWN_CACHE_MISS", 1),
        ],
        before=reset_sandbox,
    )
    def test_miss(self, api, options: dict[str, Any], code: str, credits: int) -> None:
        before = api.balance()
        status, answer = self.scrape(api, **options)
        assert (status, answer["success"], answer["code"]) == (404, False, code)
        assert api.balance() == before - credits

    def test_too_young_for_min_age(self, api) -> None:
        self.text(api)
        assert self.scrape(api, minAge=60_000)[0] == 404

    @pytest.mark.rule("scrape-store")
    @each_row(
        "options",
        [{"storeInCache": False}, {"headers": {"A": "b"}}, {"profile": {"name": "p"}}],
        before=reset_sandbox,
    )
    def test_not_stored(self, api, options: dict[str, Any]) -> None:
        self.text(api, **options)
        assert self.scrape(api, minAge=1)[0] == 404

    @pytest.mark.rule("credits-lockdown")
    def test_lockdown_hit_costs_five(self, api) -> None:
        self.text(api)
        _, answer = self.scrape(api, lockdown=True)
        assert answer["creditsUsed"] == 2 + 5
        assert answer["data"]["web"][0]["metadata"]["cacheState"] == "hit"


def test_a_page_that_is_down_is_no_result(sandbox, api) -> None:
    sandbox.control.set_page("https://river.example/floods", "<p>river</p>", status=503)
    assert "river.example/floods" not in api.web("river")


def test_a_page_that_cannot_be_scraped_does_not_spoil_the_search(sandbox, api) -> None:
    sandbox.control.set_page("https://odd.example/1", "<p>oddity one</p>")
    sandbox.control.set_page("https://odd.example/2", "<p>oddity two</p>", error="SCRAPE_SSL_ERROR")
    answer = api.search("oddity", scrapeOptions={"formats": ["markdown"]}).json()
    good, bad = answer["data"]["web"]
    assert good["markdown"] == "oddity one"
    assert bad.keys() == {"url", "title", "description", "metadata"}
    assert "SCRAPE_SSL_ERROR" in bad["metadata"]["error"]
    assert answer["creditsUsed"] == 3


@pytest.mark.rule("search-zero-data-retention", "credits-zero-data-retention")
def test_results_of_which_nothing_is_kept(sandbox, api) -> None:
    asked = {"formats": ["markdown"], "zeroDataRetention": True}
    refused = api.search("inurl:/floods", scrapeOptions=asked)
    assert (refused.status_code, "not enabled" in refused.json()["error"]) == (403, True)

    sandbox.control.configure(entitlements=["zeroDataRetention"])
    answer = api.search("inurl:/floods", scrapeOptions=asked).json()
    (item,) = answer["data"]["web"]
    assert "412 cm" in item["markdown"]
    assert answer["creditsUsed"] == 2 + 2
    assert document(api, "/floods", formats=["markdown"])["metadata"]["cacheState"] == "miss"
