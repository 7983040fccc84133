# SPDX-License-Identifier: Apache-2.0
"""Values that validators accept and refuse, and the field that an error names.

Types, numbers, and lengths of single fields are compared with the sandbox's schema, a separate statement, in
tests/unit/test_models_and_sandbox.py, and `test_drawn_requests` draws values within them. Here, each validator has one
field that uses it, and lists of choices are complete where that comparison does not reach.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from airflow_provider_webdata.api import models as m
from tests.support.request_fields import edges, request_endpoints
from tests.unit.api.models.tables import (
    HOOK,
    SCRAPE_TARGET,
    SEARCH_TARGET,
    SITE,
    UUID,
    Body,
    Row,
    at_site,
    monitor,
    problems,
)

VIEWPORT = {"width": 1, "height": 1}


def search(**fields: Any) -> Body:
    return {"query": "q", **fields}


def of_format(kind: str, **options: Any) -> Body:
    return at_site(formats=["markdown", {"type": kind, **options}])


def of_threat(**fields: Any) -> Body:
    return at_site(threatProtection=fields)


def of_target(**options: Any) -> Body:
    return monitor(targets=[{"type": "crawl", "url": SITE, "crawlOptions": options}])


# fmt: off
ROWS: dict[str, Row] = {
    # Validators.
    "whole number": (m.SearchRequest, lambda v: search(limit=v), "limit", [1, 100], [0, 101, True, 1.5, "x", ""]),
    "number": (m.CrawlRequest, lambda v: at_site(delay=v), "delay", [0, 0.5, 60, 61],
               [-1, True, "soon", float("nan"), float("inf")]),
    "switch": (m.SearchRequest, lambda v: search(safe=v), "safe", [True, False], [1, 0, "yes", "", []]),
    "text": (m.SearchRequest, lambda v: {"query": v}, "query", ["x", "x" * 500], ["", " ", "x" * 501, 5, None]),
    "list": (m.ScrapeRequest, lambda v: at_site(includeTags=v), "includeTags", [[], ["main"]],
             ["main", {}, [""], [5]]),
    "map of text": (
        m.BatchScrapeRequest, lambda v: {"urls": [SITE], "webhook": {"url": HOOK, "metadata": v}}, "webhook.metadata",
        [{}, {"dag": "d", "run": ""}], [{"a": 1}, {"a": None}, {"a": {}}, {"a": True}, "a", [], {1: "a"}]),
    "headers": (
        m.ScrapeRequest, lambda v: at_site(headers=v), "headers",
        [{}, {"Cookie": "a=b; c=d", "X-Tab": "a\tb", "X-Empty": ""}],
        [{"A": 5}, {"A": None}, {5: "a"}, {"": "a"}, {"A B": "c"}, {"A": "b\r\nC: d"}, "A: b", []]),
    "JSON Schema": (
        m.ScrapeRequest, lambda v: of_format("json", schema=v), "formats.1.schema",
        [{}, {"properties": {"a": {"type": ["number", "null"]}}, "required": ["a"]}, {"items": [{"type": "string"}]},
         {"pattern": r"^\p{L}+$"}, {"maximum": 5, "exclusiveMaximum": True}],
        ["{}", [], {"type": "money"}, {"properties": []}, {"enum": {1}}, {"const": float("nan")}, {1: 2}]),
    "host name": (
        m.SearchRequest, lambda v: search(includeDomains=[v]), "includeDomains.0",
        ["docs.example.com", "EXAMPLE.com", "münchen.de", "a" * 63 + ".com", "1.2.3.4",
         f"{'.'.join(['a' * 60] * 4)}.{'b' * 9}"],
        ["https://example.com", "example.com/docs", "example.com:80", "*.example.com", "", " example.com",
         "example..com", ".com", "-a.com", "a-.com", "a_b.com", "_dmarc.example.com", "a" * 64 + ".com",
         f"{'.'.join(['a' * 60] * 4)}.{'b' * 10}", 5]),
    "integration": (
        m.SearchRequest, lambda v: search(integration=v), "integration", ["n8n", "prometheus", "_", "_airflow"],
        ["airflow", "N8N", " _x", "x_", "", 5]),
    "domain pattern": (
        m.ScrapeRequest, lambda v: of_threat(blacklist=[v]), "threatProtection.blacklist.0",
        ["example.com", "*.example.com", "xn--mnchen-3ya.de"],
        ["https://example.com", "example.com/a", "example.com:80", "a.*.com", "*", "*.", "**.a.com", "", 5]),
    "top-level domain": (
        m.ScrapeRequest, lambda v: of_threat(blockedTlds=[v]), "threatProtection.blockedTlds.0",
        ["zip", "xyz", "xn--p1ai"], [".zip", "ZIP", "co.uk", "", "*"]),
    "web address": (
        m.ScrapeRequest, lambda v: {"url": v}, "url", ["https://a.example/x?y#z", "a.example", "HTTP://A.EXAMPLE"],
        ["", " ", "ftp://a.example", "https://", "https:///x", "https://a .example", "a b", 5, None]),
    "receiver": (
        m.BatchScrapeRequest, lambda v: {"urls": [SITE], "webhook": {"url": v}}, "webhook.url",
        ["https://example.com/a?b=c", "https://example.com:8443", "http://127.0.0.1:8080/x", "http://[::1]:9/x",
         "http://localhost/x", "http://10.0.0.1"],
        ["ftp://example.com", "example.com", "https://", "", "https://a b", "https://a\n", "https://[::1",
         "https://a:99999", "//a", 5]),
    "e-mail address": (
        m.MonitorCreateRequest, lambda v: monitor(notification={"email": {"recipients": [v]}}),
        "notification.email.recipients.0", ["a@example.com", "first.last+tag@sub.example.co.uk"],
        ["a", "a@", "@a.com", "a@b", "a b@c.de", "a@b@c.de", "A <a@b.de>", "a@b.de,c@d.de", 5]),
    "identifier": (
        m.BatchScrapeRequest, lambda v: {"urls": [SITE], "appendToId": v}, "appendToId", [UUID, UUID.upper()],
        ["1", UUID[1:], f"{{{UUID}}}", UUID.replace("-", ""), "", 5]),
    "day": (
        m.PaperSearchRequest, lambda v: search(to=v), "to", ["2026-01-31", "2024-02-29"],
        ["2026-02-31", "20260131", "31.01.2026", "2026-1-1", "", 5]),
    "code": (
        m.ExecuteRequest, lambda v: {"code": v}, "code",
        ["x", " ", "x" * 100_000, "ä" * 50_000, "\n", "𐍈" * 25_000],
        ["", "x" * 100_001, "ä" * 50_000 + "x", "𐍈" * 25_000 + "x", 5, b"x", "\ud800", None]),
    "country": (m.ScrapeRequest, lambda v: at_site(location={"country": v}), "location.country", ["US", "DE"],
                ["USA", "U", "", "U1", "US\n"]),
    "country of a search": (m.SearchRequest, lambda v: search(country=v), "country", ["US"],
                            ["USA", "U", "U1", ""]),
    # Choices of objects that differ by their type.
    "source": (
        m.SearchRequest, lambda v: search(sources=[v]), "sources.0",
        ["web", "images", "news", {"type": "web", "tbs": "qdr:d", "location": "Germany"}, {"type": "images"},
         {"type": "news"}],
        ["videos", {"type": "videos"}, {}, 5, None, {"type": 5}]),
    "time filter of a source": (m.SearchRequest, lambda v: search(sources=[{"type": "web", "tbs": v}]),
                                "sources.0.tbs", ["qdr:w"], ["qdr:q"]),
    "category": (
        m.SearchRequest, lambda v: search(categories=[v]), "categories.0",
        ["codehost", "research", "pdf", "developer", "gov", "github", {"type": "codehost"}, {"type": "gov"}],
        ["code", "PDF", {"type": "x"}, {}, 1]),
    "format": (
        m.ScrapeRequest, lambda v: at_site(formats=[v]), "formats.0",
        ["markdown", "summary", "html", "rawHtml", "links", "images", "screenshot", "json", "branding", "product",
         "menu", "audio", "video", "rawBase64", "deterministicJson", {"type": "markdown"}, {"type": "menu"},
         {"type": "screenshot", "fullPage": True, "quality": 1, "viewport": VIEWPORT}, {"type": "json", "prompt": "p"},
         {"type": "deterministicJson", "prompt": "p"}, {"type": "question", "question": "?"},
         {"type": "highlights", "query": "x"}, {"type": "query", "prompt": "p", "mode": "freeform"},
         {"type": "query", "prompt": "p", "mode": "directQuote"},
         {"type": "attributes", "selectors": [{"selector": "a", "attribute": "href"}]}],
        ["Markdown", "raw_html", "question", "highlights", "attributes", "query", "", 5, None, [],
         {}, {"type": "x"}]),
    "change tracking": (
        m.ScrapeRequest, lambda v: of_format("changeTracking", modes=v), "formats.1.modes", [["git-diff", "json"]],
        [["diff"], [""], "json"]),
    "attribute selectors": (
        m.ScrapeRequest, lambda v: of_format("attributes", selectors=v), "formats.1.selectors",
        [[{"selector": "a", "attribute": "href"}]], ["a", None]),
    "parser": (
        m.ScrapeRequest, lambda v: at_site(parsers=[v]), "parsers.0",
        ["pdf", "image", {"type": "image"}, {"type": "pdf", "pages": True, "blocks": False, "pageMarkers": True},
         {"type": "pdf", "mode": "fast"}, {"type": "pdf", "mode": "auto"}, {"type": "pdf", "mode": "ocr"}],
        ["docx", {"type": "docx"}, {}, 5]),
    "action": (
        m.ScrapeRequest, lambda v: at_site(actions=[v]), "actions.0",
        [{"type": "wait", "milliseconds": 1}, {"type": "wait", "selector": "#a"},
         {"type": "screenshot", "fullPage": True, "quality": 1, "viewport": VIEWPORT},
         {"type": "click", "selector": "a", "all": True}, {"type": "write", "text": ""},
         {"type": "press", "key": "Enter"}, {"type": "scroll", "direction": "up"},
         {"type": "scroll", "direction": "down", "selector": "#a"}, {"type": "scrape"},
         {"type": "executeJavascript", "script": "1"}, {"type": "pdf", "landscape": True, "scale": 0.5}],
        ["scrape", {"type": "sleep"}, {}, 5]),
    "paper of a PDF": (
        m.ScrapeRequest, lambda v: at_site(actions=[{"type": "pdf", "format": v}]), "actions.0.format",
        ["A0", "A1", "A2", "A3", "A4", "A5", "A6", "Letter", "Legal", "Tabloid", "Ledger"], ["A7", "a4", "B5"]),
    "redaction": (
        m.ScrapeRequest, lambda v: at_site(redactPII=v), "redactPII",
        [True, False, {}, {"entities": ["PERSON", "EMAIL", "PHONE", "LOCATION", "FINANCIAL", "SECRET"]},
         {"mode": "accurate"}, {"mode": "aggressive", "replaceStyle": "tag"},
         {"mode": "fast", "replaceStyle": "mask"}, {"replaceStyle": "remove"}],
        [1, "yes", [], {"entities": ["email"]}, {"mode": "slow"}, {"replaceStyle": "hash"}]),
    "format of a file": (
        m.ParseOptions, lambda v: {"formats": [v]}, "formats.0",
        ["markdown", "summary", "html", "rawHtml", "links", "images", "json", {"type": "html"},
         {"type": "json", "prompt": "p", "schema": {}}],
        ["screenshot", "branding", "changeTracking", "audio", "question", "rawBase64", "pdf", 5,
         {"type": "screenshot"}, {"type": "json", "quality": 1}, {"type": "html", "prompt": "p"}]),
    "target": (
        m.MonitorCreateRequest, lambda v: monitor(targets=[v], goal="g"), "targets.0",
        [SCRAPE_TARGET, {"type": "crawl", "url": SITE},
         *({**SEARCH_TARGET, "searchWindow": window} for window in ("5m", "15m", "1h", "6h", "24h", "7d"))],
        ["scrape", {"urls": [SITE]}, {"type": "map"}, 5, {**SEARCH_TARGET, "searchWindow": "1d"},
         {**SEARCH_TARGET, "scrapeOptions": {}}]),
    # The service does not check options of a target.
    "pages of a target": (m.MonitorCreateRequest, lambda v: of_target(limit=v), "targets.0.crawlOptions.limit",
                          [1, 10_000], [0, -1, True]),
    "depth of a target": (m.MonitorCreateRequest, lambda v: of_target(maxDepth=v), "targets.0.crawlOptions.maxDepth",
                          [0], [-1]),
    "sitemap of a target": (m.MonitorCreateRequest, lambda v: of_target(sitemap=v), "targets.0.crawlOptions.sitemap",
                            ["skip", "include", "only"], ["no"]),
}
# fmt: on


@pytest.mark.rule(
    "urls", "scrape-url", "scrape-headers", "scrape-location", "scrape-formats", "scrape-parsers"
)
@pytest.mark.rule("scrape-actions", "scrape-pii", "format-plain", "format-screenshot", "format-json")
@pytest.mark.rule("format-change-tracking", "format-question", "format-highlights", "format-further")
@pytest.mark.rule("parser-pdf", "parser-image", "action-wait", "action-screenshot", "action-click")
@pytest.mark.rule("action-write", "action-press", "action-scroll", "action-scrape", "action-script")
@pytest.mark.rule("action-pdf", "threat-lists", "threat-tlds", "search-query", "search-limit", "search-safe")
@pytest.mark.rule("search-sources", "search-categories", "search-domains", "search-tbs", "search-location")
@pytest.mark.rule("crawl-delay", "batch-append", "webhook-url", "webhook-metadata", "webhook-headers")
@pytest.mark.rule("parse-formats", "parse-unsupported", "code-text", "research-days")
@pytest.mark.rule("monitor-notification", "target-search-window", "target-crawl-options")
@pytest.mark.rule("target-ids", "target-no-scrape-options")
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_values(row: Row) -> None:
    """An accepted value is sent unchanged, and an error names the field of a refused one."""
    model, body, path, accepted, refused = row
    for value in accepted:
        assert model.model_validate(body(value)).to_wire() == body(value)
    for value in refused:
        found = problems(model, body(value))
        assert found, f"{value!r} is accepted"
        assert all(f"{at}.".startswith(f"{path}.") for at in found), found


def test_errors_name_the_field_beyond_its_limit() -> None:
    """In every request."""
    elsewhere = []
    for model in request_endpoints():
        for edge in edges(model):
            path = edge.path.replace("*", "nonsense")
            found = {} if edge.within else problems(model, edge.body)
            # The tried item may stand behind another that it needs.
            elsewhere += [
                (model.__name__, path, at)
                for at in found
                if not f"{at.replace('.1', '.0')}.".startswith(f"{path}.")
            ]
    assert elsewhere == []


# Fields whose text may be blank, as in a form that a page fills in.
MAY_BE_BLANK = {
    "actions.0.key",
    "actions.0.text",
    "auditMetadata.username",
    "code",
    "formats.0.prompt",
    "formats.0.tag",
    "goal",
    "profile.name",
    "sources.0",
}


def with_value(body: Body, path: str, value: Any) -> tuple[Any, Body]:
    """Return the value at a path, and a copy of the body with another one; of a list, the last item."""
    body = copy.deepcopy(body)
    *outer, last = [-1 if part == "0" else part for part in path.split(".")]
    inner: Any = body
    for part in outer:
        inner = inner[part]
    before = inner[last]
    inner[last] = value
    return before, body


@pytest.mark.slow
def test_every_field_refuses_blank_text_and_numbers_for_switches() -> None:
    """In every request."""
    accepted = set()
    for model in request_endpoints():
        for edge in edges(model):
            if edge.within:
                before, blank = with_value(edge.body, edge.path, " ")
                if isinstance(before, str) and not problems(model, blank):
                    accepted.add(re.sub(r"^(targets\.0\.)?scrapeOptions\.", "", edge.path))
                for value in (0, 1, "yes", "") if isinstance(before, bool) else ():
                    assert problems(model, with_value(edge.body, edge.path, value)[1]), (edge.path, value)
    assert accepted == MAY_BE_BLANK
