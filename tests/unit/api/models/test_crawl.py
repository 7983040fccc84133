"""Crawl: limits from both sides, the wire, warnings, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import (
    ADDRESSES,
    HOOK,
    LABELS,
    PROMPTS,
    SITE,
    SWITCHES,
    UUID,
    Row,
    assert_limits,
    at_site,
    each,
    field,
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
ROWS: dict[str, Row] = {
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
}


@pytest.mark.rule("crawl-url", "crawl-prompt", "crawl-paths", "crawl-depth")
@pytest.mark.rule("crawl-sitemap", "crawl-similar", "crawl-limit", "crawl-scope")
@pytest.mark.rule("crawl-external", "crawl-robots", "crawl-delay", "crawl-max-concurrency")
@pytest.mark.rule("crawl-webhook", "crawl-scrape-options", "crawl-zero-data-retention", "crawl-preview")
@pytest.mark.rule("target-crawl-options", "webhook-events")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, python, wire",
    [
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
    ],
)
def test_python_and_wire_names_are_the_same_request(
    model: type[m.RequestModel], python: dict[str, Any], wire: dict[str, Any]
) -> None:
    assert model.model_validate(python).to_wire() == wire
    assert model.model_validate(wire) == model.model_validate(python)


@pytest.mark.rule("crawl-scrape-options", "crawl-version-1", "webhook-events")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.CrawlRequest, at_site(formats=["html"]), "formats", "it belongs in 'scrapeOptions'"),
        (
            m.CrawlRequest,
            at_site(only_main_content=True),
            "only_main_content",
            "it belongs in 'scrapeOptions'",
        ),
        # Names of version 1 of the service.
        (m.CrawlRequest, at_site(maxDepth=2), "maxDepth", "give maxDiscoveryDepth"),
        (m.CrawlRequest, at_site(max_depth=2), "max_depth", "give maxDiscoveryDepth"),
        (m.CrawlRequest, at_site(allowBackwardLinks=True), "allowBackwardLinks", "give crawlEntireDomain"),
        (
            m.CrawlRequest,
            at_site(allowBackwardCrawling=True),
            "allowBackwardCrawling",
            "give crawlEntireDomain",
        ),
        (m.CrawlRequest, at_site(ignoreSitemap=True), "ignoreSitemap", "give sitemap"),
        (m.CrawlRequest, at_site(ignore_sitemap=True), "ignore_sitemap", "'skip' for true"),
        (m.CrawlOptions, {"ignoreSitemap": True}, "ignoreSitemap", "give sitemap"),
        (m.CrawlRequest, at_site(incldePaths=[]), "incldePaths", "'includePaths'"),
        (
            m.CrawlRequest,
            at_site(deduplicateSimilarUrls=True),
            "deduplicateSimilarUrls",
            "'deduplicateSimilarURLs'",
        ),
        (
            m.CrawlRequest,
            at_site(webhook={"url": HOOK, "events": ["crawl.page"]}),
            "webhook.events",
            "without prefix; did you mean 'page'?",
        ),
        (
            m.CrawlRequest,
            at_site(webhook={"url": HOOK, "events": ["zzz"]}),
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


@pytest.mark.rule("zdr-excludes", "crawl-zero-data-retention")
@pytest.mark.parametrize(
    "model, body, rule",
    [
        (
            m.CrawlRequest,
            at_site(zeroDataRetention=True, scrapeOptions={"formats": ["screenshot"]}),
            "scrapeOptions.formats",
        ),
        (
            m.CrawlRequest,
            at_site(zeroDataRetention=True, scrapeOptions={"onlyCleanContent": True}),
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


@pytest.mark.rule("crawl-paths", "crawl-limit", "crawl-delay")
@pytest.mark.parametrize(
    "model, body, warned",
    [
        (m.CrawlRequest, at_site(limit=5), []),
        (m.CrawlRequest, at_site(), ["limit"]),
        (m.CrawlRequest, at_site(limit=5, delay=60), []),
        (m.CrawlRequest, at_site(limit=5, delay=61), ["delay"]),
        (m.CrawlRequest, at_site(limit=5, delay=0), ["delay"]),
        (m.CrawlRequest, at_site(limit=5, delay=1, maxConcurrency=2), ["maxConcurrency"]),
        (m.CrawlRequest, at_site(limit=5, includePaths=["^/$", "/blog/.*"]), []),
        (m.CrawlRequest, at_site(limit=5, includePaths=["/blog/.*"]), ["includePaths: no expression"]),
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
        (m.CrawlRequest, at_site(limit=5, includePaths=["*.html"]), ["includePaths: '*.html'"]),
        (m.CrawlRequest, at_site(limit=5, excludePaths=["(/a"]), ["excludePaths: '(/a'"]),
        (m.CrawlRequest, at_site(limit=5, scrapeOptions={"lockdown": True}), ["scrapeOptions.lockdown"]),
        (
            m.CrawlRequest,
            at_site(limit=5, scrapeOptions={"storeInCache": True, "actions": [{"type": "scrape"}]}),
            ["storeInCache"],
        ),
    ],
)
def test_own_warnings(model: type[m.RequestModel], body: dict[str, Any], warned: list[str]) -> None:
    found = model.model_validate(body).warnings()
    assert len(found) == len(warned), found
    assert all(text.startswith(start) for text, start in zip(found, warned, strict=True)), found


@pytest.mark.parametrize(
    "model, body",
    [
        (m.CrawlRequest, at_site(scrapeOptions={"headers": {"Cookie": "s3cr3t"}})),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert request.to_wire() == body
    assert "s3cr3t" not in repr(request)


ACTIVE = {
    "id": UUID,
    "teamId": "t",
    "url": SITE,
    "options": {"limit": 5, "scrapeOptions": {"headers": {"Cookie": "s3cr3t"}}},
    "created_at": "2026-08-21T10:00:00.000Z",
}
DOCUMENTED: list[tuple[type[m.ResponseModel], dict[str, Any]]] = [
    (m.ActiveCrawls, {"success": True, "crawls": [ACTIVE, {"id": UUID}]}),
    (
        m.CrawlParamsResponse,
        {
            "success": True,
            "data": {"includePaths": ["/a"], "maxDepth": 2, "delay": 500, "deduplicateSimilarURLs": True},
        },
    ),
]


@pytest.mark.rule("crawl-active", "crawl-preview")
@pytest.mark.parametrize("model, body", DOCUMENTED)
def test_a_documented_answer_comes_back_as_it_was(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body
    newer = {**body, "xNew": {"a": [None]}}
    assert model.model_validate_json(json.dumps(newer)).to_wire() == newer


@pytest.mark.parametrize(
    "model, body",
    [
        (m.ActiveCrawls, {"success": True}),
    ],
)
def test_what_is_no_such_answer_is_an_error(model: type[m.ResponseModel], body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(body))


@pytest.mark.rule("crawl-active")
def test_headers_of_running_crawls_stay_out_of_sight() -> None:
    crawls = m.ActiveCrawls.model_validate({"crawls": [ACTIVE]})
    assert "s3cr3t" not in repr(crawls)
    assert "s3cr3t" not in json.dumps(crawls.to_wire(mask_headers=True))


def test_python_names_lead_to_wire_names() -> None:
    assert m.ActiveCrawl.model_validate({"id": "c", "createdAt": "now"}).created_at == "now"
