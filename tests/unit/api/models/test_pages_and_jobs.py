"""Scrape, batch scrape, crawl, map and team: limits from both sides, the wire, warned, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import Row, assert_named, beyond, within
from tests.unit.api.models.test_properties import (
    BROAD,
    headers,
    plain,
    scrape_options,
    snake_case,
    some,
    switch,
    text,
    threat,
    url,
)

UUID = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
SITE = "https://a.example"
HOOK = "https://hooks.example/in"
SWITCHES = ([True, False], [1, 0, "yes", "", []])
LABELS = (["airflow"], ["", " ", 5])
ADDRESSES = (
    ["https://a.example/x?y#z", "a.example", "HTTP://A.EXAMPLE"],
    ["", " ", "ftp://a.example", "https://", "a b", 5],
)
PROMPTS = (["x", "x" * 10_000], ["", " ", "x" * 10_001, 5])
HEADERS = ([{}, {"Cookie": "a=b"}], [{"a b": "c"}, {"a": 1}, {"a": "b\nc"}, "a: b"])

SWITCHES_OF_OPTIONS = (
    "onlyMainContent",
    "onlyCleanContent",
    "mobile",
    "skipTlsVerification",
    "removeBase64Images",
    "blockAds",
    "storeInCache",
    "lockdown",
    "fastMode",
    "checkPromptInjection",
)
SWITCHES_OF_CRAWL = (
    "regexOnFullURL",
    "ignoreQueryParameters",
    "deduplicateSimilarURLs",
    "crawlEntireDomain",
    "allowExternalLinks",
    "allowSubdomains",
    "ignoreRobotsTxt",
    "zeroDataRetention",
)


def scrape(**given: Any) -> dict[str, Any]:
    return {"url": SITE, **given}


def batch(**given: Any) -> dict[str, Any]:
    return {"urls": [SITE], **given}


# What is limited: model, body around the value, path of the error, values that pass, values that do not.


def field(model: type[m.RequestModel], name: str, values: tuple[list[Any], list[Any]], **others: Any) -> Row:
    """Limit a field at the top of a body."""
    return (model, lambda value: {**others, name: value}, name, *values)


ROWS: dict[str, Row] = {
    "scrape url": field(m.ScrapeRequest, "url", (ADDRESSES[0], [*ADDRESSES[1], None])),
    "scrape zeroDataRetention": field(m.ScrapeRequest, "zeroDataRetention", SWITCHES, url=SITE),
    "scrape integration": field(m.ScrapeRequest, "integration", ([*LABELS[0], None], LABELS[1]), url=SITE),
    "scrape origin": field(m.ScrapeRequest, "origin", LABELS, url=SITE),
    "scrape timeout": field(m.ScrapeRequest, "timeout", ([1000, 300_000], [999, 300_001]), url=SITE),
    "scrape waitFor": field(m.ScrapeRequest, "waitFor", ([0, 60_000], [-1, 60_001]), url=SITE),
    **{
        f"scrape {name}": field(m.ScrapeRequest, name, SWITCHES, url=SITE)
        for name in (*SWITCHES_OF_OPTIONS, "zeroDataRetention")
    },
    "batch urls": field(
        m.BatchScrapeRequest,
        "urls",
        ([[SITE], [SITE, "b.example"] * 500], [[], SITE, [SITE, ""], ["ftp://a"], None, [5]]),
    ),
    "batch maxConcurrency": field(
        m.BatchScrapeRequest, "maxConcurrency", ([1, 500], [0, -1, 1.5]), urls=[SITE]
    ),
    "batch ignoreInvalidURLs": field(m.BatchScrapeRequest, "ignoreInvalidURLs", SWITCHES, urls=[SITE]),
    "batch appendToId": field(m.BatchScrapeRequest, "appendToId", ([UUID], ["", "b-1", 5]), urls=[SITE]),
    "batch webhook": (
        m.BatchScrapeRequest,
        lambda value: batch(webhook=value),
        "webhook",
        [
            {"url": HOOK},
            {"url": HOOK, "events": ["started", "page", "completed", "failed"], "metadata": {"a": "b"}},
        ],
        [{}, {"url": "http://a.example"}, {"url": HOOK, "metadata": {"a": 1}}, {"url": HOOK, "retries": 3}],
    ),
    "batch events": (
        m.BatchScrapeRequest,
        lambda value: batch(webhook={"url": HOOK, "events": [value]}),
        "webhook.events",
        ["page", "failed"],
        ["batch_scrape.page", "action", "check.completed", "", 5],
    ),
    "batch zeroDataRetention": field(m.BatchScrapeRequest, "zeroDataRetention", SWITCHES, urls=[SITE]),
    "crawl url": field(m.CrawlRequest, "url", (ADDRESSES[0], [*ADDRESSES[1], None])),
    "crawl prompt": field(m.CrawlRequest, "prompt", PROMPTS, url=SITE),
    "crawl limit": field(m.CrawlRequest, "limit", ([1, 10**6], [0, -5, True, "x"]), url=SITE),
    "crawl maxDiscoveryDepth": field(m.CrawlRequest, "maxDiscoveryDepth", ([0, 9], [-1, 0.5]), url=SITE),
    "crawl includePaths": field(
        m.CrawlRequest, "includePaths", ([[], ["/a/.*"]], ["/a", [""], [5]]), url=SITE
    ),
    "crawl excludePaths": field(
        m.CrawlRequest, "excludePaths", ([[], ["/a/.*"]], ["/a", [""], [5]]), url=SITE
    ),
    "crawl sitemap": field(m.CrawlRequest, "sitemap", (["skip", "include", "only"], ["no", True]), url=SITE),
    "crawl delay": field(m.CrawlRequest, "delay", ([0, 0.5, 60, 61], [-1, True, "soon"]), url=SITE),
    "crawl maxConcurrency": field(m.CrawlRequest, "maxConcurrency", ([1], [0]), url=SITE),
    "crawl robotsUserAgent": field(m.CrawlRequest, "robotsUserAgent", LABELS, url=SITE),
    "crawl scrapeOptions": (
        m.CrawlRequest,
        lambda value: {"url": SITE, "scrapeOptions": value},
        "scrapeOptions",
        [{}, {"formats": ["markdown", "links"], "maxAge": 0}],
        [{"timeout": 1}, {"formats": ["changeTracking"]}, {"url": SITE}, []],
    ),
    "crawl events": (
        m.CrawlRequest,
        lambda value: {"url": SITE, "webhook": {"url": HOOK, "events": [value]}},
        "webhook.events",
        ["started", "page", "completed"],
        ["crawl.completed", "monitor.page"],
    ),
    **{f"crawl {name}": field(m.CrawlRequest, name, SWITCHES, url=SITE) for name in SWITCHES_OF_CRAWL},
    "preview url": field(m.CrawlParamsRequest, "url", ADDRESSES, prompt="p"),
    "preview prompt": field(m.CrawlParamsRequest, "prompt", (PROMPTS[0], [*PROMPTS[1], None]), url=SITE),
    "map url": field(m.MapRequest, "url", (ADDRESSES[0], [*ADDRESSES[1], None])),
    "map search": field(m.MapRequest, "search", LABELS, url=SITE),
    "map sitemap": field(m.MapRequest, "sitemap", (["skip", "include", "only"], ["all"]), url=SITE),
    "map limit": field(m.MapRequest, "limit", ([1, 100_000], [0, 100_001, True]), url=SITE),
    "map timeout": field(m.MapRequest, "timeout", ([1, 10**6], [0, -1]), url=SITE),
    "map location": (
        m.MapRequest,
        lambda value: {"url": SITE, "location": value},
        "location",
        [{}, {"country": "DE", "languages": ["de-DE"]}],
        [{"country": "de"}, "DE"],
    ),
    "map auditMetadata": (
        m.MapRequest,
        lambda value: {"url": SITE, "auditMetadata": {"username": value}},
        "auditMetadata.username",
        ["x", "x" * 1024],
        ["x" * 1025, None],
    ),
    "map threatProtection": (
        m.MapRequest,
        lambda value: {"url": SITE, "threatProtection": value},
        "threatProtection",
        [{"mode": "normal", "riskScoreThreshold": 5}],
        [{"mode": "loud"}, {"riskScoreThreshold": 101}],
    ),
    "map headers": field(m.MapRequest, "headers", HEADERS, url=SITE),
    "map includePaths": field(m.MapRequest, "includePaths", ([["/a"]], ["/a"]), url=SITE),
    "map excludePaths": field(m.MapRequest, "excludePaths", ([["/a"]], ["/a"]), url=SITE),
    **{
        f"map {name}": field(m.MapRequest, name, SWITCHES, url=SITE)
        for name in ("includeSubdomains", "ignoreQueryParameters", "ignoreCache", "filterByPath", "useIndex")
    },
}


@within(ROWS)
def test_within_the_limit_the_body_is_sent_as_given(
    model: type[m.RequestModel], body: dict[str, Any]
) -> None:
    assert model.model_validate(body).to_wire() == body


@pytest.mark.rule("caller-labels", "urls", "scrape-switches", "scrape-clean-content", "scrape-wait-for")
@pytest.mark.rule("scrape-timeout", "scrape-tls", "scrape-store", "scrape-lockdown", "scrape-extra-switches")
@pytest.mark.rule("scrape-url", "scrape-zero-data-retention", "map-url", "map-search", "map-sitemap")
@pytest.mark.rule("map-switches", "map-limit", "map-timeout", "map-further", "batch-urls", "batch-webhook")
@pytest.mark.rule("batch-max-concurrency", "batch-ignore-invalid-urls", "batch-append", "crawl-url")
@pytest.mark.rule("crawl-prompt", "crawl-paths", "crawl-depth", "crawl-sitemap", "crawl-similar")
@pytest.mark.rule("crawl-limit", "crawl-scope", "crawl-external", "crawl-robots", "crawl-delay")
@pytest.mark.rule("crawl-max-concurrency", "crawl-webhook", "crawl-scrape-options")
@pytest.mark.rule("crawl-zero-data-retention", "crawl-preview", "target-crawl-options", "webhook-events")
@beyond(ROWS)
def test_beyond_the_limit_the_field_is_named(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str
) -> None:
    assert_named(problems(model, body), path)


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, python, wire",
    [
        (
            m.ScrapeRequest,
            {"url": SITE, "only_main_content": False, "redact_pii": True, "zero_data_retention": True},
            {"url": SITE, "onlyMainContent": False, "redactPII": True, "zeroDataRetention": True},
        ),
        (
            m.BatchScrapeRequest,
            {"urls": [SITE], "ignore_invalid_urls": True, "append_to_id": UUID, "max_age": 0},
            {"urls": [SITE], "ignoreInvalidURLs": True, "appendToId": UUID, "maxAge": 0},
        ),
        (m.BatchScrapeRequest, {"urls": [SITE], "webhook": HOOK}, {"urls": [SITE], "webhook": {"url": HOOK}}),
        (
            m.CrawlRequest,
            {
                "url": SITE,
                "limit": "5",
                "regex_on_full_url": "True",
                "deduplicate_similar_urls": False,
                "ignore_robots_txt": True,
                "scrape_options": {"only_main_content": True},
            },
            {
                "url": SITE,
                "limit": 5,
                "regexOnFullURL": True,
                "deduplicateSimilarURLs": False,
                "ignoreRobotsTxt": True,
                "scrapeOptions": {"onlyMainContent": True},
            },
        ),
        (
            m.MapRequest,
            {"url": SITE, "ignore_query_parameters": False, "include_subdomains": True, "limit": None},
            {"url": SITE, "ignoreQueryParameters": False, "includeSubdomains": True},
        ),
    ],
)
def test_python_and_wire_names_are_the_same_request(
    model: type[m.RequestModel], python: dict[str, Any], wire: dict[str, Any]
) -> None:
    assert model.model_validate(python).to_wire() == wire
    assert model.model_validate(wire) == model.model_validate(python)


@pytest.mark.rule("scrape-top-level", "batch-options", "crawl-scrape-options", "crawl-version-1")
@pytest.mark.rule("webhook-events")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        # Where scrape options stand differs from operation to operation.
        (m.ScrapeRequest, scrape(scrapeOptions={}), "scrapeOptions", "at the top level"),
        (m.BatchScrapeRequest, batch(scrape_options={}), "scrape_options", "at the top level"),
        (m.CrawlRequest, scrape(formats=["html"]), "formats", "it belongs in 'scrapeOptions'"),
        (
            m.CrawlRequest,
            scrape(only_main_content=True),
            "only_main_content",
            "it belongs in 'scrapeOptions'",
        ),
        # Names of version 1 of the service.
        (m.CrawlRequest, scrape(maxDepth=2), "maxDepth", "give maxDiscoveryDepth"),
        (m.CrawlRequest, scrape(max_depth=2), "max_depth", "give maxDiscoveryDepth"),
        (m.CrawlRequest, scrape(allowBackwardLinks=True), "allowBackwardLinks", "give crawlEntireDomain"),
        (
            m.CrawlRequest,
            scrape(allowBackwardCrawling=True),
            "allowBackwardCrawling",
            "give crawlEntireDomain",
        ),
        (m.CrawlRequest, scrape(ignoreSitemap=True), "ignoreSitemap", "give sitemap"),
        (m.CrawlRequest, scrape(ignore_sitemap=True), "ignore_sitemap", "'skip' for true"),
        (m.CrawlOptions, {"ignoreSitemap": True}, "ignoreSitemap", "give sitemap"),
        # Slips.
        (m.CrawlRequest, scrape(incldePaths=[]), "incldePaths", "'includePaths'"),
        (
            m.CrawlRequest,
            scrape(deduplicateSimilarUrls=True),
            "deduplicateSimilarUrls",
            "'deduplicateSimilarURLs'",
        ),
        (m.BatchScrapeRequest, batch(ignoreInvalidUrls=True), "ignoreInvalidUrls", "'ignoreInvalidURLs'"),
        (m.BatchScrapeRequest, {"urls": [SITE], "limt": 1}, "limt", "there is no such field"),
        (m.BatchScrapeRequest, {"urls": SITE}, "urls", "a list is expected"),
        (m.ScrapeRequest, scrape(wait_four=1), "wait_four", "'waitFor'"),
        (m.MapRequest, scrape(ignoreSitemaps=1), "ignoreSitemaps", "there is no such field"),
        (m.MapRequest, scrape(include_subdomain=True), "include_subdomain", "'includeSubdomains'"),
        (
            m.CrawlRequest,
            scrape(webhook={"url": HOOK, "events": ["crawl.page"]}),
            "webhook.events",
            "without prefix; did you mean 'page'?",
        ),
        (
            m.CrawlRequest,
            scrape(webhook={"url": HOOK, "events": ["zzz"]}),
            "webhook.events",
            "there are started, page, completed, failed",
        ),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.rule("zdr-excludes", "scrape-zero-data-retention", "crawl-zero-data-retention")
@pytest.mark.parametrize(
    "model, body, rule",
    [
        (m.ScrapeRequest, scrape(zeroDataRetention=True, formats=["screenshot"]), "no screenshot"),
        (
            m.BatchScrapeRequest,
            batch(zeroDataRetention=True, formats=["markdown", {"type": "screenshot", "quality": 5}]),
            "no screenshot",
        ),
        (m.ScrapeRequest, scrape(zeroDataRetention=True, onlyCleanContent=True), "onlyCleanContent"),
        (
            m.CrawlRequest,
            scrape(zeroDataRetention=True, scrapeOptions={"formats": ["screenshot"]}),
            "scrapeOptions.formats",
        ),
        (
            m.CrawlRequest,
            scrape(zeroDataRetention=True, scrapeOptions={"onlyCleanContent": True}),
            "scrapeOptions.onlyCleanContent",
        ),
    ],
)
def test_nothing_is_kept_where_nothing_may_be(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], rule: str
) -> None:
    (found,) = problems(model, body).values()
    assert rule in found
    assert problems(model, {**body, "zeroDataRetention": False}) == {}


@pytest.mark.rule("scrape-wait-for", "scrape-lockdown", "scrape-waits-together", "format-screenshot")
@pytest.mark.rule("batch-ignore-invalid-urls", "crawl-paths", "crawl-limit", "crawl-delay")
@pytest.mark.parametrize(
    "model, body, warned",
    [
        (m.ScrapeRequest, scrape(), []),
        (m.ScrapeRequest, scrape(storeInCache=True, headers={"A": "b"}), ["storeInCache"]),
        (
            m.ScrapeRequest,
            scrape(
                waitFor=30_000,
                actions=[{"type": "wait", "milliseconds": 29_001}, {"type": "wait", "selector": "a"}],
            ),
            ["actions"],
        ),
        (
            m.ScrapeRequest,
            scrape(
                waitFor=30_000,
                actions=[{"type": "wait", "milliseconds": 29_000}, {"type": "wait", "selector": "a"}],
            ),
            [],
        ),
        (m.BatchScrapeRequest, batch(ignoreInvalidURLs=True), []),
        (m.BatchScrapeRequest, batch(), ["ignoreInvalidURLs"]),
        (m.BatchScrapeRequest, {"urls": [SITE] * 3, "ignoreInvalidURLs": False}, ["urls: 2 of them"]),
        (m.BatchScrapeRequest, batch(ignoreInvalidURLs=True, lockdown=True), ["lockdown"]),
        (m.CrawlRequest, scrape(limit=5), []),
        (m.CrawlRequest, scrape(), ["limit"]),
        (m.CrawlRequest, scrape(limit=5, delay=60), []),
        (m.CrawlRequest, scrape(limit=5, delay=61), ["delay"]),
        (m.CrawlRequest, scrape(limit=5, delay=0), ["delay"]),
        (m.CrawlRequest, scrape(limit=5, delay=1, maxConcurrency=2), ["maxConcurrency"]),
        (m.CrawlRequest, scrape(limit=5, includePaths=["^/$", "/blog/.*"]), []),
        (m.CrawlRequest, scrape(limit=5, includePaths=["/blog/.*"]), ["includePaths: no expression"]),
        (m.CrawlRequest, {"url": "a.example/blog/", "limit": 5, "includePaths": ["/blog/.*"]}, []),
        (
            m.CrawlRequest,
            {
                "url": "https://a.example/x?page=1",
                "limit": 5,
                "includePaths": ["page="],
                "regexOnFullURL": True,
            },
            [],
        ),
        (
            m.CrawlRequest,
            {"url": "https://a.example/x?page=1", "limit": 5, "includePaths": ["page="]},
            ["includePaths: no expression"],
        ),
        (m.CrawlRequest, scrape(limit=5, includePaths=["*.html"]), ["includePaths: '*.html'"]),
        (m.CrawlRequest, scrape(limit=5, excludePaths=["(/a"]), ["excludePaths: '(/a'"]),
        (m.CrawlRequest, scrape(limit=5, scrapeOptions={"lockdown": True}), ["scrapeOptions.lockdown"]),
        (
            m.CrawlRequest,
            scrape(limit=5, scrapeOptions={"storeInCache": True, "actions": [{"type": "scrape"}]}),
            ["storeInCache"],
        ),
        (m.MapRequest, scrape(sitemap="skip", ignoreCache=True), ["ignoreCache"]),
        (m.MapRequest, scrape(sitemap="only", ignoreCache=True), []),
        (
            m.MapRequest,
            scrape(includePaths=["/a", "?"], excludePaths=["("]),
            ["includePaths: '?'", "excludePaths"],
        ),
        (
            m.ScrapeRequest,
            scrape(formats=[{"type": "screenshot", "viewport": {"width": 7680, "height": 4320}}]),
            [],
        ),
        (
            m.ScrapeRequest,
            scrape(actions=[{"type": "screenshot", "viewport": {"width": 7681, "height": 1}}]),
            ["viewport"],
        ),
    ],
)
def test_own_warnings(model: type[m.RequestModel], body: dict[str, Any], warned: list[str]) -> None:
    found = model.model_validate(body).warnings()
    assert len(found) == len(warned), found
    assert all(text.startswith(start) for text, start in zip(found, warned, strict=True)), found


@pytest.mark.rule("scrape-headers")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ScrapeRequest, scrape(headers={"Cookie": "s3cr3t"})),
        (m.ScrapeRequest, scrape(actions=[{"type": "write", "text": "s3cr3t"}])),
        (m.BatchScrapeRequest, batch(webhook={"url": HOOK, "headers": {"X": "s3cr3t"}})),
        (m.CrawlRequest, scrape(scrapeOptions={"headers": {"Cookie": "s3cr3t"}})),
        (m.MapRequest, scrape(headers={"Cookie": "s3cr3t"})),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert request.to_wire() == body
    assert "s3cr3t" not in repr(request)


webhook = some(
    {"url": st.just(HOOK)},
    headers=headers,
    metadata=st.dictionaries(text, st.text(plain), max_size=2),
    events=st.lists(st.sampled_from(["started", "page", "completed", "failed"]), max_size=4),
)
labels = {"integration": st.none() | text, "origin": text}
# What shuts other fields out is left to the tables above.
options = scrape_options.map(lambda drawn: {k: v for k, v in drawn.items() if k != "onlyCleanContent"})
crawl_scope = some(
    limit=st.integers(1, 10**6),
    maxDiscoveryDepth=st.integers(0, 99),
    includePaths=st.lists(text, max_size=3),
    excludePaths=st.lists(text, max_size=3),
    regexOnFullURL=switch,
    sitemap=st.sampled_from(["skip", "include", "only"]),
    ignoreQueryParameters=switch,
    deduplicateSimilarURLs=switch,
    crawlEntireDomain=switch,
    allowExternalLinks=switch,
    allowSubdomains=switch,
    ignoreRobotsTxt=switch,
    robotsUserAgent=text,
    delay=st.integers(0, 99) | st.floats(0, 99),
    maxConcurrency=st.integers(1, 999),
    prompt=text,
    scrapeOptions=options,
    webhook=webhook,
    **labels,
)


def both(one: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda a, b: {**a, **b}, one, other)


REQUESTS: dict[type[m.RequestModel], st.SearchStrategy[Any]] = {
    m.ScrapeRequest: both(some({"url": url}, **labels), options),
    m.BatchScrapeRequest: both(
        some(
            {"urls": st.lists(url, min_size=1, max_size=5)},
            webhook=webhook,
            maxConcurrency=st.integers(1, 999),
            ignoreInvalidURLs=switch,
            appendToId=st.uuids().map(str),
            **labels,
        ),
        options,
    ),
    m.CrawlRequest: both(some({"url": url}, zeroDataRetention=st.just(False)), crawl_scope),
    m.CrawlParamsRequest: some({"url": url, "prompt": text}),
    m.MapRequest: some(
        {"url": url},
        search=text,
        sitemap=st.sampled_from(["skip", "include", "only"]),
        includeSubdomains=switch,
        ignoreQueryParameters=switch,
        ignoreCache=switch,
        limit=st.integers(1, 100_000),
        timeout=st.integers(1, 10**6),
        location=some(country=st.sampled_from(["DE", "US"]), languages=st.lists(text, max_size=2)),
        auditMetadata=some({"username": st.text(plain, max_size=1024)}),
        threatProtection=threat,
        headers=headers,
        filterByPath=switch,
        useIndex=switch,
        includePaths=st.lists(text, max_size=2),
        excludePaths=st.lists(text, max_size=2),
        **labels,
    ),
}


@pytest.mark.parametrize("model", REQUESTS)
@BROAD
@given(data=st.data())
def test_a_valid_request_survives_the_wire(model: type[m.RequestModel], data: st.DataObject) -> None:
    body = data.draw(REQUESTS[model])
    request = model.model_validate(body)
    wire = request.to_wire()
    assert wire == body
    assert model.model_validate(wire) == request
    assert model.model_validate_json(json.dumps(wire)) == request
    assert model.model_validate(snake_case(model, body)) == request
    assert all(isinstance(text, str) for text in request.warnings())


METADATA = {
    "title": ["T", "U"],
    "language": None,
    "ogLocaleAlternate": ["de"],
    "dc.creator": ["a", "b"],
    "contentType": "text/html",
    "scrapeId": UUID,
    "concurrencyLimited": True,
    "concurrencyQueueDurationMs": 12.5,
    "proxyUsed": "stealth",
    "cacheState": "hit",
    "cachedAt": "2026-08-21T10:00:00.000Z",
    "creditsUsed": 5,
    "statusCode": 404,
    "sourceURL": SITE,
    "sourceFile": "a.pdf",
}
BLOCK = {
    "id": "p1.b1",
    "type": "table",
    "label": None,
    "bbox": {"x0": 0, "y0": 0.5, "x1": 1, "y1": 1},
    "content": "| a |",
    "markdownSpan": {"start": 0, "end": 5},
    "readingOrder": 1,
    "source": "native_text",
    "confidence": {"layout": 0.9, "ocr": None},
}
DOCUMENT = {
    "markdown": "# a",
    "html": None,
    "rawHtml": "<p>",
    "links": [SITE],
    "json": {"a": [1]},
    "changeTracking": {
        "previousScrapeAt": None,
        "changeStatus": "new",
        "visibility": "visible",
        "diff": {"text": "-a", "json": {"files": [{"from": "a", "to": "b", "chunks": []}]}},
        "json": {"price": {"previous": 1, "current": 2}},
    },
    "branding": {
        "colorScheme": "dark",
        "colors": {"primary": "#fff"},
        "fonts": [{"family": "A"}],
        "tone": None,
    },
    "product": {"title": "t", "url": SITE, "variants": [{"price": {"amount": 1.5}}]},
    "menu": {"isMenu": True, "sections": []},
    "attributes": [{"selector": "a", "attribute": "href", "values": ["x"]}],
    "pages": [{"pageNumber": 1, "markdown": "x"}],
    "blocks": [{"pageNumber": 1, "width": None, "height": None, "status": "partial", "items": [BLOCK]}],
    "actions": {
        "screenshots": [SITE],
        "scrapes": [{"url": SITE, "html": "<p>"}],
        "javascriptReturns": [{"type": "number", "value": 4}],
        "pdfs": [SITE],
    },
    "warning": None,
    "metadata": METADATA,
}
STATUS = {
    "success": True,
    "status": "completed",
    "total": 3,
    "completed": 2,
    "creditsUsed": -1,
    "createdAt": "2026-08-21T10:00:00.000Z",
    "completedAt": "2026-08-21T10:01:00.000Z",
    "expiresAt": "2026-08-22T10:01:00.000Z",
    "duration": 60.5,
    "next": "http://10.0.0.1/v2/crawl/x?skip=100",
    "data": [DOCUMENT, {"metadata": {}}],
    "warning": "one page only",
}
ACTIVE = {
    "id": UUID,
    "teamId": "t",
    "url": SITE,
    "options": {"limit": 5, "scrapeOptions": {"headers": {"Cookie": "s3cr3t"}}},
    "created_at": "2026-08-21T10:00:00.000Z",
}
ITEM = {
    "id": UUID,
    "endpoint": "batch_scrape",
    "api_version": "v2",
    "created_at": "2026-08-21T10:00:00.000Z",
    "target": None,
}
PERIOD = {"startDate": "2026-08-01", "endDate": "2026-09-01", "apiKey": None}
FAILED_PAGE = {"id": UUID, "timestamp": None, "url": SITE, "error": "no", "code": "EXTERNAL_LINK"}

DOCUMENTED: list[tuple[type[m.ResponseModel], dict[str, Any]]] = [
    (m.ScrapeResponse, {"success": True, "data": DOCUMENT}),
    (m.JobStarted, {"success": True, "id": UUID, "url": SITE}),
    (m.JobStarted, {"success": True, "id": UUID, "url": SITE, "invalidURLs": ["no url"]}),
    (m.JobStarted, {"success": True, "id": UUID, "invalidURLs": None}),
    (m.JobStarted, {"id": UUID, "promptGeneratedOptions": {"limit": 5}, "finalCrawlerOptions": {"limit": 9}}),
    (m.JobStatus, STATUS),
    (m.JobStatus, {"status": "scraping", "next": None}),
    (m.JobStatus, {"success": False, "status": "failed", "error": "queue full", "total": 0, "data": []}),
    (m.JobStatus, {"status": "hibernating"}),
    (m.JobDocuments, STATUS),
    (m.JobErrors, {"errors": [FAILED_PAGE, {"url": SITE}], "robotsBlocked": [SITE]}),
    (m.JobErrors, {}),
    (m.CancelResponse, {"status": "cancelled"}),
    (m.CancelResponse, {"success": True}),
    (m.ActiveCrawls, {"success": True, "crawls": [ACTIVE, {"id": UUID}]}),
    (
        m.CrawlParamsResponse,
        {
            "success": True,
            "data": {"includePaths": ["/a"], "maxDepth": 2, "delay": 500, "deduplicateSimilarURLs": True},
        },
    ),
    (
        m.MapResponse,
        {"success": True, "links": [{"url": SITE, "title": "t", "description": None}], "id": UUID},
    ),
    (m.MapResponse, {"status": "success", "links": []}),
    (
        m.CreditHistory,
        {"success": True, "periods": [{**PERIOD, "totalCredits": 5}, {**PERIOD, "creditsUsed": 0.5}]},
    ),
    (m.TokenUsageResponse, {"success": True, "data": {"remainingTokens": 5, "planTokens": 10}}),
    (m.TokenHistory, {"success": True, "periods": [{**PERIOD, "totalTokens": 5}]}),
    (
        m.QueueStatus,
        {
            "success": True,
            "jobsInQueue": 1,
            "activeJobsInQueue": 0,
            "waitingJobsInQueue": 1,
            "maxConcurrency": 2,
            "mostRecentSuccess": None,
        },
    ),
    (m.Activity, {"success": True, "data": [ITEM, {}], "cursor": None, "has_more": False}),
]


@pytest.mark.rule("document-text", "document-lists", "document-answers", "document-change-tracking")
@pytest.mark.rule("document-brand", "document-pdf-pages", "document-blocks", "document-actions")
@pytest.mark.rule("document-warning", "document-metadata", "metadata-texts", "metadata-open")
@pytest.mark.rule("metadata-status", "metadata-scrape-id", "metadata-credits", "metadata-source-file")
@pytest.mark.rule("scrape-answer", "map-links", "batch-answer", "crawl-answer", "job-counts", "job-times")
@pytest.mark.rule("job-data", "job-next", "job-warning", "job-errors", "crawl-active", "crawl-preview")
@pytest.mark.rule("team-credits-history", "team-tokens", "team-queue", "team-activity", "team-concurrency")
@pytest.mark.parametrize("model, body", DOCUMENTED)
def test_a_documented_answer_comes_back_as_it_was(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body
    newer = {**body, "xNew": {"a": [None]}}
    assert model.model_validate_json(json.dumps(newer)).to_wire() == newer


@pytest.mark.rule("job-status")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ScrapeResponse, {"success": True}),
        (m.ScrapeResponse, {"success": True, "data": None}),
        (m.JobStarted, {"success": True}),
        # A look at a job that names no state would be waited on for ever.
        (m.JobStatus, {"success": True}),
        (m.JobStatus, {"status": None}),
        (m.JobStatus, {"status": "completed", "data": {}}),
        (m.JobDocuments, {"status": "completed", "data": ["x"]}),
        (m.ActiveCrawls, {"success": True}),
        (m.MapResponse, {"success": True}),
        (m.MapResponse, {"links": [{"title": "t"}]}),
        (m.CreditHistory, {}),
        (m.Activity, {"success": True}),
        (m.QueueStatus, []),
    ],
)
def test_what_is_no_such_answer_is_an_error(model: type[m.ResponseModel], body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(body))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
names_of_a_document = st.sampled_from(
    sorted(field.alias or name for name, field in m.Document.model_fields.items())
)
names_of_metadata = st.sampled_from(
    sorted(field.alias or name for name, field in m.PageMetadata.model_fields.items())
)


@pytest.mark.rule("open-responses")
@BROAD
@given(
    metadata=st.dictionaries(names_of_metadata | st.text(max_size=8), json_values, max_size=6),
    fields=st.dictionaries(names_of_a_document | st.text(max_size=8), json_values, max_size=6),
)
def test_no_page_however_odd_costs_the_others(metadata: dict[str, Any], fields: dict[str, Any]) -> None:
    odd = {**fields, "metadata": metadata}
    body = {"status": "completed", "data": [odd, DOCUMENT]}
    found = m.JobStatus.model_validate_json(json.dumps(body))
    assert found.data is not None
    assert found.data[1].markdown == "# a"
    wire = found.to_wire()["data"][0]
    assert {**wire, "metadata": None} == {**odd, "metadata": None}
    # A number written as text is read as the number that it is.
    assert wire["metadata"].keys() == metadata.keys()


@pytest.mark.rule("open-responses")
@pytest.mark.parametrize(
    "model", [m.Document, m.PageMetadata, m.ChangeTracking, m.ActionResults, m.WebResult]
)
@pytest.mark.parametrize("value", [7.5, "x", True, ["x", 7], [["x"]], {"a": {"b": None}}], ids=repr)
def test_a_field_of_any_shape_stays_as_it_came(model: type[m.ResponseModel], value: Any) -> None:
    own = m.WebResult.model_fields.keys() - m.PageContent.model_fields.keys()
    for name, field in model.model_fields.items():
        if name in own:
            continue
        body = {field.alias or name: value}
        assert model.model_validate_json(json.dumps(body)).to_wire() == body
        assert model.model_validate(body).to_wire() == body


def test_python_names_lead_to_wire_names() -> None:
    document = m.ScrapeResponse.model_validate({"data": DOCUMENT}).data
    assert document.raw_html == "<p>"
    assert document.actions is not None
    assert document.actions.javascript_returns == [{"type": "number", "value": 4}]
    assert document.change_tracking is not None
    assert document.change_tracking.json_ == {"price": {"previous": 1, "current": 2}}
    assert document.metadata is not None
    assert (document.metadata.scrape_id, document.metadata.source_url) == (UUID, SITE)
    assert m.JobStarted(id="x", invalidURLs=["a"]).invalid_urls == ["a"]
    assert m.Activity.model_validate({"data": [ITEM], "has_more": True}).has_more is True
    assert m.ActivityItem(created_at="now", api_version="v2").to_wire() == {
        "created_at": "now",
        "api_version": "v2",
    }
    assert m.ActiveCrawl.model_validate({"id": "c", "createdAt": "now"}).created_at == "now"


@pytest.mark.rule("batch-ignore-invalid-urls")
@pytest.mark.parametrize("model", [m.BatchScrapeRequest, m.ExtractRequest])
def test_bad_urls_are_left_to_the_service_where_it_drops_them(model: type[m.RequestModel]) -> None:
    body = {"urls": [SITE, "https://", "a b"]}
    request = model.model_validate({**body, "ignoreInvalidURLs": True})
    assert request.to_wire()["urls"] == body["urls"]
    assert any(text.startswith("urls: 2 of 3 are no URLs") for text in request.warnings())
    for unless in ({}, {"ignoreInvalidURLs": False}):
        with pytest.raises(ValidationError, match="names no host"):
            model.model_validate({**body, **unless})


@pytest.mark.rule("map-links")
def test_links_of_a_map_may_be_plain_text() -> None:
    found = m.MapResponse.model_validate_json(json.dumps({"links": [SITE, {"url": "b", "title": ["x"]}]}))
    assert [link.url for link in found.links] == [SITE, "b"]
    assert found.to_wire() == {"links": [{"url": SITE}, {"url": "b", "title": ["x"]}]}


@pytest.mark.rule("team-credits-history", "team-tokens")
@pytest.mark.parametrize(
    "model, period, used",
    [
        (m.CreditPeriod, {"totalCredits": 5}, 5),
        (m.CreditPeriod, {"creditsUsed": 6}, 6),
        (m.CreditPeriod, {"totalCredits": 0, "creditsUsed": 6}, 0),
        (m.CreditPeriod, {}, None),
        (m.TokenPeriod, {"totalTokens": 5}, 5),
        (m.TokenPeriod, {"tokensUsed": 6}, 6),
        (m.TokenPeriod, {"totalTokens": 0, "tokensUsed": 6}, 0),
        (m.TokenPeriod, {}, None),
    ],
)
def test_what_a_period_used_under_either_name(model: Any, period: dict[str, Any], used: float | None) -> None:
    assert model.model_validate(period).used == used


@pytest.mark.rule("crawl-active")
def test_headers_of_running_crawls_stay_out_of_sight() -> None:
    crawls = m.ActiveCrawls.model_validate({"crawls": [ACTIVE]})
    assert "s3cr3t" not in repr(crawls)
    assert "s3cr3t" not in json.dumps(crawls.to_wire(mask_headers=True))


def test_names_of_api_keys_stay_out_of_reprs() -> None:
    period = m.CreditPeriod.model_validate({**PERIOD, "apiKey": "wd-123"})
    assert "wd-123" not in repr(period)
