# SPDX-License-Identifier: Apache-2.0
"""Search: every operator and filter, the sources, entitlements, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import each_row
from webdata_sandbox.engine.search_query import Clause, parse_query

from .conftest import reset_sandbox
from .search_calls import PDF


@pytest.mark.rule("search-operator-text", "search-operator-sites", "search-operator-words")
@each_row(
    "query, found, not_found",
    [
        ("salmon", ["river.example/salmon", PDF], ["weather.example/"]),
        ("SALMON", ["river.example/salmon"], []),  # case is folded
        ("bridge", ["river.example/bridges"], []),  # plurals are folded
        ("riviere", ["river.example/fr/crue"], ["river.example/floods"]),  # accents are folded
        ('"bridge reopens"', ["river.example/bridges"], ["river.example/archive"]),
        ('"reopens bridge"', [], ["river.example/bridges"]),  # a phrase keeps its order
        ('"bridges reopen"', [], ["river.example/bridges"]),  # a phrase is not fuzzy
        ("river -flood", ["river.example/salmon"], ["river.example/floods"]),
        ('river -"fish ladder"', ["river.example/floods"], ["river.example/salmon"]),
        ("river site:weather.example", ["weather.example/levels"], ["river.example/floods"]),
        ("pipelines site:pipeline.example", ["docs.pipeline.example/"], []),  # a site includes its subdomains
        ("site:river.example/fr", ["river.example/fr/crue"], ["river.example/floods"]),
        ("river -site:river.example", ["weather.example/levels"], ["river.example/floods"]),
        ("river filetype:pdf", [PDF], ["river.example/salmon"]),
        ("river -filetype:pdf", ["river.example/salmon"], [PDF]),
        ("inurl:climate", ["weather.example/climate/2019"], ["weather.example/levels"]),
        (
            "report -inurl:climate",
            ["weather.example/reports/annual.pdf"],
            ["weather.example/climate/2019"],
        ),
        (
            "allinurl:pipeline issues 42",
            ["code.example/pipeline/pipeline/issues/42"],
            ["code.example/pipeline/pipeline"],
        ),
        (
            "intitle:scheduling",
            ["docs.pipeline.example/guide/scheduling"],
            ["docs.pipeline.example/releases"],
        ),
        ('intitle:"stone bridge"', ["river.example/bridges"], ["gallery.example/"]),
        ("river -intitle:gazette", ["weather.example/levels"], ["river.example/floods"]),
        (
            "allintitle:data sensors",
            ["docs.pipeline.example/guide/sensors"],
            ["docs.pipeline.example/guide/quality"],
        ),
        (
            "related:docs.pipeline.example",
            ["code.example/pipeline/pipeline"],
            ["docs.pipeline.example/", "river.example/salmon"],
        ),
        (
            "river -related:weather.example",
            ["journal.example/papers/rain"],
            ["river.example/salmon"],
        ),
        ("river imagesize:1x1", ["river.example/floods"], []),  # filters images only
        ("zebra unicorn", [], ["river.example/"]),
        ('""', [], ["river.example/"]),
    ],
)
def test_operators(api, query: str, found: list[str], not_found: list[str]) -> None:
    urls = api.web(query)
    assert set(found) <= set(urls)
    assert not set(not_found) & set(urls)


@pytest.mark.rule("search-operator-images")
@each_row(
    "query, sizes",
    [
        ("valley imagesize:1920x1080", {(1920, 1080)}),
        ("valley larger:1000x700", {(1920, 1080), (1024, 768)}),
        ("valley larger:1920x1080", set()),
        ("valley -larger:640x480", {(640, 480), (300, 200)}),
        ("valley imagesize:nonsense", set()),
    ],
)
def test_image_operators(api, query: str, sizes: set[tuple[int, int]]) -> None:
    data = api.search(query, sources=["images"], includeDomains=["gallery.example"]).json()["data"]
    assert {(item["imageWidth"], item["imageHeight"]) for item in data["images"]} == sizes


@each_row(
    "query, clauses",
    [
        ("a b", [Clause("word", "a"), Clause("word", "b")]),
        ('-"a b" c', [Clause("phrase", "a b", True), Clause("word", "c")]),
        ("-site:a.example", [Clause("site", "a.example", True)]),
        (
            "allintitle:a b -c d",
            [Clause("intitle", w) for w in "ab"] + [Clause("word", "c", True), Clause("intitle", "d")],
        ),
        ("time:noon", [Clause("word", "time:noon")]),
        ('"open', [Clause("phrase", "open")]),
        ("site:", [Clause("word", "site:")]),
    ],
)
def test_parsing(query: str, clauses: list[Clause]) -> None:
    assert parse_query(query) == clauses


@pytest.mark.rule("search-categories", "search-domains", "search-tbs", "search-location", "search-safe")
@pytest.mark.rule("search-ignore-invalid-urls", "search-tbs-web")
@each_row(
    "filters, found, not_found",
    [
        ({"includeDomains": ["weather.example"]}, ["weather.example/levels"], ["river.example/floods"]),
        (
            {"includeDomains": ["EXAMPLE.com", "River.Example"]},
            ["river.example/floods"],
            ["weather.example/levels"],
        ),
        ({"excludeDomains": ["river.example"]}, ["weather.example/levels"], ["river.example/floods"]),
        ({"safe": True}, ["river.example/floods"], ["nightlife.example/"]),
        ({"safe": False}, ["nightlife.example/"], []),
        ({"ignoreInvalidURLs": True}, ["river.example/floods"], ["intranet/wiki"]),
        ({}, ["intranet/wiki", "nightlife.example/"], []),
        ({"categories": ["research"]}, ["journal.example/papers/rain"], ["river.example/floods", PDF]),
        ({"categories": ["pdf"]}, [PDF], ["journal.example/papers/rain"]),
        (
            {"categories": [{"type": "codehost"}]},
            ["code.example/gauge/river-levels"],
            ["river.example/floods"],
        ),
        ({"categories": ["research", "pdf"]}, [PDF, "journal.example/papers/rain"], ["river.example/floods"]),
        ({"categories": []}, ["river.example/floods", PDF], []),
        ({"categories": ["developer"]}, ["code.example/gauge/river-levels"], ["river.example/floods"]),
        ({"categories": ["gov"]}, ["weather.example/levels"], ["river.example/floods"]),
        (
            {"categories": ["gov", "pdf"]},
            ["weather.example/levels", PDF],
            ["code.example/gauge/river-levels"],
        ),
        ({"tbs": "cdr:1,cd_min:1/1/2026,cd_max:12/31/2099"}, ["river.example/floods"], ["river.example/"]),
        ({"tbs": "qdr:d"}, ["river.example/floods"], ["river.example/bridges", "river.example/"]),
        ({"tbs": "qdr:h"}, [], ["river.example/floods"]),
        ({"tbs": "qdr:w"}, ["river.example/bridges"], ["river.example/salmon"]),
        ({"tbs": "qdr:m"}, ["river.example/salmon"], ["river.example/archive"]),
        ({"tbs": "qdr:y"}, ["river.example/archive"], ["weather.example/climate/2019"]),
        (
            {"sources": [{"type": "web", "tbs": "qdr:d"}], "tbs": "qdr:y"},
            ["river.example/floods"],
            ["river.example/archive"],
        ),
        ({"country": "DE", "location": "Berlin,Germany", "lang": "de"}, ["river.example/floods"], []),
    ],
)
def test_filters(api, filters: dict[str, Any], found: list[str], not_found: list[str]) -> None:
    urls = api.web("river", **filters)
    assert set(found) <= set(urls)
    assert not set(not_found) & set(urls)


@pytest.mark.rule("search-tbs")
def test_tbs_range_covers_its_last_day(sandbox, api) -> None:
    for day in (
        "2024-02-28T23:59:59Z",
        "2024-02-29T00:00:00Z",
        "2024-02-29T23:59:59Z",
        "2024-03-01T00:00:00Z",
    ):
        sandbox.control.set_page(f"https://leap.example/{day[:19]}", "<p>leapling</p>", published=day)
    urls = api.web("leapling", tbs="cdr:1,cd_min:02/29/2024,cd_max:02/29/2024")
    assert urls == ["leap.example/2024-02-29T00:00:00", "leap.example/2024-02-29T23:59:59"]


@pytest.mark.rule("search-tbs")
def test_tbs_sorts_by_date(api, sandbox) -> None:
    now = sandbox.control.state()["now"]
    sandbox.control.set_page("https://new.example/", "<p>One river.</p>", published=now)
    assert api.web("river", tbs="sbd:1")[0] == "new.example/"
    assert api.web("river", tbs="qdr:y,sbd:1")[:2] == ["new.example/", "weather.example/levels"]
    assert api.web("river")[0] != "new.example/"


@pytest.mark.rule("search-limit", "search-sources", "search-data")
@each_row(
    "sources, arrays",
    [
        (["web"], ["web"]),
        (["news"], ["news"]),
        (["web", "news", "images"], ["web", "news", "images"]),
        ([{"type": "images"}, {"type": "web"}], ["images", "web"]),
    ],
)
def test_sources_decide_the_arrays_and_limit_holds_for_each(
    api, sources: list[Any], arrays: list[str]
) -> None:
    answer = api.search("river", sources=sources, limit=2).json()
    assert {name: len(items) for name, items in answer["data"].items()} == dict.fromkeys(arrays, 2)


@pytest.mark.rule("search-limit", "search-sources")
def test_defaults(api) -> None:
    answer = api.search("river").json()
    assert list(answer["data"]) == ["web"]
    assert len(answer["data"]["web"]) == 10
    assert all(item.keys() == {"url", "title", "description"} for item in answer["data"]["web"])
    assert answer["success"] is True
    assert answer["creditsUsed"] == 2
    assert len(answer["id"]) == 36


@pytest.mark.rule("search-web-item", "search-image-item", "search-news-item")
def test_items_of_each_source(api) -> None:
    data = api.search("flood", sources=["news", "images"], categories=["pdf"]).json()["data"]
    news, image = data["news"][0], data["images"][0]
    assert news.keys() >= {"title", "snippet", "url", "date", "position"}
    assert image == {
        "title": "Flooded meadow beside the river",
        "imageUrl": "https://river.example/img/flood.jpg",
        "imageWidth": 1600,
        "imageHeight": 900,
        "url": "https://river.example/floods",
        "position": 1,
    }


@pytest.mark.rule("search-web-item")
def test_category_is_stated(api) -> None:
    items = api.search("river", categories=["codehost", "research", "pdf"]).json()["data"]["web"]
    assert {item["category"] for item in items} == {"codehost", "research", "pdf"}


@pytest.mark.rule("search-highlights")
@each_row(
    "highlights, description",
    [(True, "Cellars near the mill should be cleared."), (False, "The river stands at 412 cm and may reach")],
)
def test_highlights(api, highlights: bool, description: str) -> None:
    items = api.search("cellars mill", highlights=highlights).json()["data"]["web"]
    floods = next(item for item in items if item["url"].endswith("/floods"))
    assert floods["description"].startswith(description)


@pytest.mark.rule("credits-page", "credits-search", "credits-enhanced-proxy", "credits-threat")
@each_row(
    "body, credits",
    [
        ({"limit": 10}, 2),
        ({"limit": 11}, 4),
        ({"limit": 10, "sources": ["web", "images"]}, 4),
        ({"query": "zebra"}, 0),
        (
            {"limit": 3, "scrapeOptions": {"formats": ["markdown", "links"]}, "query": "river -filetype:pdf"},
            5,
        ),
        (
            {
                "limit": 3,
                "scrapeOptions": {"formats": ["links"], "proxy": "enhanced"},
                "query": "river -filetype:pdf",
            },
            17,
        ),
        ({"limit": 10, "enterprise": ["zdr"]}, 10),
        ({"limit": 11, "enterprise": ["anon"]}, 4),
        ({"limit": 3, "threatProtection": {"mode": "normal"}}, 8),
        ({"limit": 3, "threatProtection": {"mode": "off"}}, 2),
    ],
    before=reset_sandbox,
)
def test_credits(sandbox, api, body: dict[str, Any], credits: int) -> None:
    sandbox.control.configure(entitlements=["enterprise", "threatProtection"])
    before = api.balance()
    answer = api.search(**body).json()
    assert answer["creditsUsed"] == credits
    assert api.balance() == before - credits


@pytest.mark.rule("status-403", "threat-entitlement", "zdr-entitlement", "search-enterprise")
@each_row(
    "body, entitlement",
    [
        ({"enterprise": ["zdr"]}, "enterprise"),
        ({"enterprise": ["anon"]}, "enterprise"),
        ({"threatProtection": {}}, "threatProtection"),
        ({"scrapeOptions": {"threatProtection": {"mode": "off"}}}, "threatProtection"),
    ],
    before=reset_sandbox,
)
def test_entitlements(sandbox, api, body: dict[str, Any], entitlement: str) -> None:
    assert api.search(**body).status_code == 403
    sandbox.control.configure(entitlements=[entitlement])
    assert api.search(**body).status_code == 200


@pytest.mark.rule("threat-mode", "threat-lists", "threat-tlds")
@each_row(
    "policy, gone",
    [
        ({"blacklist": ["docs.pipeline.example"]}, True),
        ({"blacklist": ["*.pipeline.example"]}, True),
        ({"blacklist": ["*.docs.pipeline.example"]}, False),
        ({"blacklist": ["pipeline.example"]}, False),
        ({"blockedTlds": ["example"]}, True),
        ({"blockedTlds": ["example"], "whitelist": ["*.pipeline.example"]}, False),
        ({"blacklist": ["docs.pipeline.example"], "mode": "off"}, False),
    ],
    before=reset_sandbox,
)
def test_threat_lists(sandbox, api, policy: dict[str, Any], gone: bool) -> None:
    sandbox.control.configure(entitlements=["threatProtection"])
    assert ("docs.pipeline.example/releases" not in api.web("sensors", threatProtection=policy)) is gone


@pytest.mark.rule("search-timeout")
def test_timeout_of_the_search(sandbox, api) -> None:
    sandbox.control.configure(latency_ms=30)
    response = api.search(timeout=10)
    assert (response.status_code, response.json()) == (408, {"success": False, "error": "Request timed out"})
    assert api.search(timeout=30).status_code == 200


@each_row("results, size, limit, count", [(10, 5000, 10, 10), (3, 1, 10, 3), (50, 100, 20, 20)])
def test_bulk(sandbox, api, results: int, size: int, limit: int, count: int) -> None:
    sandbox.control.configure(bulk=(results, size))
    items = api.search("anything", limit=limit, scrapeOptions={"formats": ["markdown"]}).json()["data"]["web"]
    assert [len(item["markdown"]) for item in items] == [size] * count
    assert "markdown" not in api.search("anything").json()["data"]["web"][0]


@each_row(
    "body, left_out",
    [
        ({"query": "zeppelin"}, False),
        ({"query": "salmon", "tbs": "qdr:h"}, True),
        ({"query": "salmon", "includeDomains": ["weather.example"]}, True),
        ({"query": "salmon", "categories": ["gov"]}, True),
        ({"query": "salmon", "sources": ["images"]}, True),
        ({"query": "salmon", "tbs": "qdr:h", "scrapeOptions": {"formats": ["summary"]}}, True),
    ],
)
def test_a_search_that_finds_nothing_says_what_there_is(api, body: dict[str, Any], left_out: bool) -> None:
    warning = api.search(**body).json()["warning"]
    assert "river.example" in warning
    assert "weather.example" in warning
    assert ("Without sources and filters" in warning) is left_out


def test_the_hosts_of_a_search_that_finds_nothing_are_the_present_ones(sandbox, api) -> None:
    sandbox.control.set_page("https://aviation.example/", "<p>Kites</p>")
    assert "aviation.example" in api.search("zeppelin").json()["warning"]
    for number in range(30):
        sandbox.control.set_page(f"https://a{number}.example/", "<p>Kites</p>")
    assert api.search("zeppelin").json()["warning"].endswith("and 21 more.")
    assert "warning" not in api.search("kites").json()
