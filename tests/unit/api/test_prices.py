# SPDX-License-Identifier: Apache-2.0
"""Upper bounds of a request's price: by hand, and never less than the sandbox bills."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.api.endpoints import PRICES
from airflow_provider_webdata.api.prices import by_format, page_extras
from tests.support.examples import examples
from tests.support.request_fields import drawn
from webdata_sandbox.operations.interact import PER_MINUTE, PER_MINUTE_WITH_PROMPT
from webdata_sandbox.reference.prices import page_cost, search_cost
from webdata_sandbox.reference.scrape_options import format_names, options_of, pdf_parser

URL = "https://river.example/floods"
AS_IT_IS: dict[str, Any] = {"parsers": []}
BASIC = {"proxy": "basic", "parsers": []}
SCAN = {"threatProtection": {"mode": "normal"}}


def page(**more: Any) -> dict[str, Any]:
    return {"url": URL, **BASIC, **more}


def formats(*names: Any) -> dict[str, Any]:
    return page(formats=["markdown", *names])


def pdf(pages: int, **more: Any) -> dict[str, Any]:
    return page(parsers=[{"type": "pdf", "maxPages": pages}], **more)


def calls(options: list[dict[str, Any]], *tools: dict[str, Any]) -> dict[str, Any]:
    made = [
        {"provider": "p", "capability": f"c{number}", "options": given}
        for number, given in enumerate(options)
    ]
    return {"alexandria": made, "tools": [*tools]}


PER_RECORD = {"creditsCost": 2, "perRecord": True, "options": [{"name": "limit", "default": 10}]}
CHANGES = {"type": "changeTracking", "modes": ["json", "git-diff"]}
BOUNDS: list[tuple[str, dict[str, Any], float]] = [
    ("developer_search", {"query": "q"}, 2),
    ("developer_search", {"query": "q", "k": 11}, 4),
    ("paper_search", {"query": "q"}, 8),
    ("paper_search", {"query": "q", "k": 500}, 100),
    ("scrape", page(), 1),
    ("scrape", {"url": URL, **AS_IT_IS}, 5),
    ("scrape", {"url": URL, "proxy": "enhanced", **AS_IT_IS}, 5),
    ("scrape", page(lockdown=True), 5),
    ("scrape", formats("json"), 5),
    ("scrape", formats("json", {"type": "question", "question": "q"}, "audio", "links"), 13),
    ("scrape", formats("deterministicJson"), 11),
    ("scrape", formats("changeTracking"), 1),
    ("scrape", formats(CHANGES), 5),
    ("scrape", page(redactPII=True), 5),
    ("scrape", page(redactPII={"mode": "fast"}), 5),
    ("scrape", page(checkPromptInjection=True), 5),
    ("scrape", page(formats=[{"type": "json", "prompt": "p", "checkPromptInjection": True}]), 9),
    ("scrape", page(zeroDataRetention=True), 2),
    ("scrape", page(**SCAN), 3),
    ("scrape", page(threatProtection={"riskScoreThreshold": 5}), 3),
    ("scrape", page(threatProtection={"mode": "off"}), 1),
    ("scrape", page(parsers=["image"]), 1),
    ("scrape", page(parsers=[{"type": "image"}]), 1),
    ("scrape", pdf(10), 10),
    ("scrape", pdf(10, redactPII=True), 50),
    ("scrape", page(url="https://x.com/someone"), 30),
    ("scrape", page(url="mobile.twitter.com/someone"), 30),
    ("scrape", page(url="https://x\uff0ecom\u3002/someone"), 30),
    ("scrape", page(url="https://notx.com/"), 1),
    ("batch_scrape", {"urls": [URL, URL, "https://x.com/a"], **BASIC, "formats": ["json"]}, 44),
    ("crawl", {"url": URL, "limit": 50, "scrapeOptions": BASIC}, 50),
    ("crawl", {"url": URL, "limit": 50, "scrapeOptions": BASIC, "zeroDataRetention": True}, 100),
    ("crawl", {"url": URL, "limit": 2, "scrapeOptions": BASIC, "allowExternalLinks": True}, 60),
    ("crawl", {"url": URL, "limit": 2, "scrapeOptions": BASIC, "prompt": "news"}, 60),
    ("crawl", {"url": URL, "scrapeOptions": BASIC}, 10_000),
    ("search", {"query": "q"}, 2),
    ("search", {"query": "q", "limit": 11}, 4),
    ("search", {"query": "q", "limit": 100, "sources": ["web", "news"]}, 40),
    ("search", {"query": "q", "enterprise": ["zdr"]}, 12),
    ("search", {"query": "q", "scrapeOptions": {"onlyMainContent": True}}, 2),
    ("search", {"query": "q", "limit": 5, **SCAN}, 12),
    (
        "search",
        {
            "query": "q",
            "limit": 5,
            "includeDomains": ["river.example"],
            "scrapeOptions": {**BASIC, "formats": ["markdown"]},
        },
        7,
    ),
    ("search", {"query": "q", "limit": 5, "scrapeOptions": {**BASIC, "formats": ["markdown"]}}, 152),
    ("search", {"query": "q", "sources": ["web", "alexandria"]}, 2),
    ("search", {"query": "q", "sources": [{"type": "alexandria"}]}, 0),
    ("provider", calls([{}], {"creditsCost": 5, "perRecord": False}), 5),
    ("provider", calls([{"limit": 7}], PER_RECORD), 14),
    ("provider", calls([{}, {"limit": 1}], PER_RECORD, PER_RECORD), 22),
    ("provider", calls([{"limit": 200.0}, {"limit": " 200 "}], PER_RECORD, PER_RECORD), 800),
    ("provider", calls([{}], {**PER_RECORD, "options": [{"name": "limit", "maximum": 50}]}), 100),
    ("provider", calls([{"limit": 10**400}], {**PER_RECORD, "creditsCost": 0.5}), 5 * 10**11),
    ("map", {"url": URL}, 1),
    ("map", {"url": URL, "limit": 10, **SCAN}, 23),
    ("parse", {"filename": "a.docx"}, 1),
    ("parse", {"filename": "a.pdf", **AS_IT_IS}, 1),
    ("parse", {"filename": "a.PDF", "parsers": [{"type": "pdf", "maxPages": 3}], "formats": ["json"]}, 7),
    ("agent", {"prompt": "p"}, 2500),
    ("agent", {"prompt": "p", "maxCredits": 12.5}, 12.5),
    ("agent", {"prompt": "p", "maxCredits": 12.5, "exchange": {"enabled": False}}, 12.5),
    ("agent", {"prompt": "p", "maxCredits": 12.5, "threadId": "t", "exchange": {"enabled": False}}, 12.5),
    ("interact", {"ttl": 600}, 20),
    ("interact", {"ttl": 30}, 2),
    ("interact", {"ttl": 90, "prompt": True}, 11),
    ("interact", {}, 20),
]


@pytest.mark.rule("credits-page")
@pytest.mark.rule("credits-map")
@pytest.mark.rule("credits-search")
@pytest.mark.rule("credits-pdf", "parser-empty")
@pytest.mark.rule("credits-formats")
@pytest.mark.rule("credits-zero-data-retention")
@pytest.mark.rule("credits-enhanced-proxy")
@pytest.mark.rule("credits-lockdown")
@pytest.mark.rule("credits-threat")
@pytest.mark.rule("credits-interact")
@pytest.mark.rule("credits-agent")
@pytest.mark.rule("provider-price", "credits-providers")
@pytest.mark.parametrize(("operation", "body", "credits"), BOUNDS)
def test_bound(operation: str, body: dict[str, Any], credits: float) -> None:
    bound = PRICES[operation].most(body)
    assert bound.unknown == ()
    assert bound.credits == credits
    assert bound.how


UNKNOWN: list[tuple[str, dict[str, Any], str]] = [
    ("scrape", {"url": URL}, "each page of a PDF is billed"),
    ("scrape", page(parsers=["pdf"]), "each page of a PDF is billed"),
    ("scrape", page(parsers=["image", "pdf"]), "each page of a PDF is billed"),
    ("scrape", page(parsers=["pdf", {"type": "pdf", "maxPages": 2}]), "each page of a PDF is billed"),
    ("parse", {"filename": "a.pdf"}, "each page of a PDF is billed"),
    ("scrape", formats("branding"), "the format 'branding'"),
    ("search", {"query": "q", "scrapeOptions": {"formats": ["markdown"]}}, "scrape_options.parsers"),
    ("crawl", {"url": URL, "limit": 5}, "scrape_options.parsers"),
    ("crawl", {"url": URL, "limit": 5, "scrapeOptions": {**BASIC, **SCAN}}, "threat protection"),
    ("provider", calls([{}]), "p/c0: its price is in its contract"),
    ("provider", calls([{}], {"creditsCost": None}), "only its response states the price"),
    ("provider", calls([{}], {"creditsCost": -5}), "only its response states the price"),
    ("provider", calls([{}], {"creditsCost": 2, "perRecord": True, "options": []}), "set the option 'limit'"),
    ("provider", calls([{}, {}], {"creditsCost": 2}), "p/c1: its price"),
    *(
        (
            "provider",
            calls([{"limit": limit}], PER_RECORD),
            "set the option 'limit', if it has one, to a whole number",
        )
        for limit in (0, -1, 1.5, True, None, "2e3", "\u0665", "9" * 5000, [1])
    ),
    ("agent", {"prompt": "p", **SCAN}, "threat protection"),
    ("agent", {"prompt": "p", "exchange": {"maxCalls": 3}}, "limits provider calls"),
    ("agent", {"prompt": "p", "exchange": {"enabled": True}}, "limits provider calls"),
    ("agent", {"prompt": "p", "threadId": "t"}, "limits provider calls"),
]


@pytest.mark.parametrize(("operation", "body", "words"), UNKNOWN)
def test_what_has_no_bound_says_what_to_change(operation: str, body: dict[str, Any], words: str) -> None:
    bound = PRICES[operation].most(body)
    assert not bound.is_known
    assert words in "; ".join(bound.unknown)


def test_the_catalog_is_free() -> None:
    call = {"provider": "firecrawl", "capability": "find-tools"}
    assert PRICES["provider"].most({"alexandria": [call]}).is_known
    assert PRICES["provider"].most({"alexandria": [call]}).credits == 0


def test_what_is_sent_unchecked_has_no_bound() -> None:
    assert PRICES["map"].most({"url": URL}, {}).is_known
    assert "extra_body" in PRICES["map"].most({"url": URL}, {"limit": 9}).unknown[0]


def test_extras_by_format() -> None:
    body = {**formats("json", CHANGES), "redactPII": True, "zeroDataRetention": True}
    assert page_extras(body) == {"json": 4, "changeTracking": 4, "redactPII": 4, "zeroDataRetention": 1}


PAGES = st.integers(1, 12)
PARSERS = st.sampled_from(
    [[], [{"type": "pdf", "maxPages": 3}], [{"type": "pdf"}, "image"], ["pdf"], ["image"]]
)


def billed(options: dict[str, Any], pdf_pages: int) -> int:
    """Return the sandbox's price of a page."""
    taken = min(pdf_pages, pdf_parser(options).get("maxPages", pdf_pages))
    return page_cost(options, pdf_pages=taken)


def holds(operation: str, body: dict[str, Any], cost: float) -> None:
    bound = PRICES[operation].most(body)
    assert not bound.is_known or cost <= bound.credits


@examples(0.5)
@given(drawn(m.ScrapeRequest), PARSERS, PAGES)
def test_a_page(body: dict[str, Any], parsers: Any, pdf_pages: int) -> None:
    wire = m.ScrapeRequest.model_validate({**body, "parsers": parsers}).to_wire()
    cost = billed(options_of(wire), pdf_pages)
    holds("scrape", wire, cost)
    many = {**{name: value for name, value in wire.items() if name != "url"}, "urls": [wire["url"]] * 3}
    holds("batch_scrape", many, 3 * cost)


@examples(0.5)
@given(drawn(m.CrawlRequest), PARSERS, PAGES)
def test_a_crawl(body: dict[str, Any], parsers: Any, pdf_pages: int) -> None:
    body = {**body, "scrapeOptions": {**body.get("scrapeOptions", {}), "parsers": parsers}}
    wire = m.CrawlRequest.model_validate(body).to_wire()
    options = {"zeroDataRetention": wire.get("zeroDataRetention", False), **wire["scrapeOptions"]}
    holds("crawl", wire, wire.get("limit", 10_000) * billed(options, pdf_pages))


@examples(0.5)
@given(drawn(m.SearchRequest), PARSERS, PAGES, st.data())
def test_a_search(body: dict[str, Any], parsers: Any, pdf_pages: int, data: st.DataObject) -> None:
    if "scrapeOptions" in body:
        body = {**body, "scrapeOptions": {**body["scrapeOptions"], "parsers": parsers}}
    wire = m.SearchRequest.model_validate(body).to_wire()
    sources = [item if isinstance(item, str) else item["type"] for item in wire.get("sources") or ("web",)]
    # Tools of data providers are free.
    most = wire.get("limit", 10) * sum(source != "alexandria" for source in sources)
    found = data.draw(st.integers(0, most))
    options = wire.get("scrapeOptions", {})
    pages = found * billed(options, pdf_pages) if format_names(options) else 0
    holds("search", wire, search_cost(found, wire.get("enterprise", ())) + pages)


@examples(0.5)
@given(drawn(m.ParseOptions), PARSERS, PAGES)
def test_a_parse(body: dict[str, Any], parsers: Any, pdf_pages: int) -> None:
    wire = m.ParseOptions.model_validate({**body, "parsers": parsers}).to_wire()
    holds("parse", {**wire, "filename": "a.pdf"}, billed(wire, pdf_pages))
    holds("parse", {**wire, "filename": "a.docx"}, page_cost(wire))


@given(st.integers(30, 3600), st.booleans(), st.floats(0, 1))
def test_a_browser(ttl: int, prompt: bool, part: float) -> None:
    rate = PER_MINUTE_WITH_PROMPT if prompt else PER_MINUTE
    holds("interact", {"ttl": ttl, "prompt": prompt}, max(rate, math.ceil(ttl * part * rate / 60)))


@pytest.mark.slow
@examples(20)
@given(
    pages=st.integers(1, 50),
    credits=st.integers(0, 500_000),
    basic=st.booleans(),
    formats=st.sampled_from([[], ["markdown"], ["json"]]),
    prefix=st.sampled_from(["crawl", "batch_scrape"]),
)
def test_pdf_parsers_hold_a_request_within_the_credits(
    pages: int, credits: int, basic: bool, formats: list[str], prefix: str
) -> None:
    """With the most pages that fit, and at least one."""
    options: dict[str, Any] = {"formats": formats, **({"proxy": "basic"} if basic else {})}
    body = (
        {"url": URL, "limit": pages, "scrapeOptions": options}
        if prefix == "crawl"
        else {"urls": [URL] * pages, **options}
    )
    price = PRICES[prefix]
    parsers = price.pdf_parsers(body, credits)
    assert parsers is not None
    most = parsers[0]["maxPages"]
    larger = [{"type": "pdf", "maxPages": most + 1}]
    assert price.most(price.with_parsers(body, parsers)).credits <= credits or most == 1
    assert price.most(price.with_parsers(body, larger)).credits > credits or most == 10_000
    assert price.pdf_parsers(price.with_parsers(body, parsers), credits) is None


SPLIT: list[tuple[float, int, dict[str, int], dict[str, float]]] = [
    (0, 0, {}, {}),
    (0, 3, {"json": 4}, {}),
    (1, 1, {}, {"page": 1}),
    (5, 1, {"json": 4}, {"page": 1, "json": 4}),
    (10, 2, {"json": 4}, {"page": 2, "json": 8}),
    # An enhanced proxy, or the pages of a PDF.
    (9, 1, {"json": 4}, {"page": 5, "json": 4}),
    # Billing lags.
    (6, 3, {"json": 4}, {"page": 3, "json": 3}),
    (3, 1, {"json": 4, "question": 4}, {"page": 1, "json": 2}),
]


@pytest.mark.parametrize(("used", "pages", "extras", "expected"), SPLIT)
def test_what_each_format_accounts_for(
    used: float, pages: int, extras: dict[str, int], expected: dict[str, float]
) -> None:
    assert by_format(used, pages, extras) == expected


@given(
    st.integers(0, 500),
    st.integers(0, 50),
    st.dictionaries(st.sampled_from(["json", "audio", "question"]), st.integers(1, 10)),
)
def test_the_formats_add_up(used: int, pages: int, extras: dict[str, int]) -> None:
    parts = by_format(used, pages, extras)
    assert sum(parts.values()) == used
    assert all(part > 0 for name, part in parts.items() if name != "page" or pages)
