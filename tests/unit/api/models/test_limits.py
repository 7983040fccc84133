"""Every limit that the models hold, from both sides."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import Row, assert_limits, each

UUID = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
CRON = {"cron": "*/30 * * * *"}
SCRAPE = {"type": "scrape", "urls": ["https://example.com"]}


def search(**given: Any) -> dict[str, Any]:
    return {"query": "q", **given}


def action(kind: str, **given: Any) -> dict[str, Any]:
    return {"actions": [{"type": kind, **given}]}


def fmt(kind: str, **given: Any) -> dict[str, Any]:
    return {"formats": ["markdown", {"type": kind, **given}]}


def monitor(**given: Any) -> dict[str, Any]:
    return {"name": "n", "schedule": CRON, "targets": [SCRAPE], **given}


def search_target(**given: Any) -> dict[str, Any]:
    return {"type": "search", "queries": ["q"], **given}


# What is limited: model, body around the value, path of the error, values that pass, values that do not.
VIEWPORT = {"width": 1, "height": 1}
ROWS: dict[str, Row] = {
    # Search.
    "query": (
        m.SearchRequest,
        lambda v: {"query": v},
        "query",
        ["x", "x" * 500],
        ["", " ", "x" * 501, 5, None],
    ),
    "limit": (
        m.SearchRequest,
        lambda v: search(limit=v),
        "limit",
        [1, 100],
        [0, 101, -1, True, 1.5, "x", ""],
    ),
    "search timeout": (m.SearchRequest, lambda v: search(timeout=v), "timeout", [1, 60_000], [0, -1, False]),
    "country": (
        m.SearchRequest,
        lambda v: search(country=v),
        "country",
        ["US", "de"],
        ["USA", "U", "U1", ""],
    ),
    "search location": (
        m.SearchRequest,
        lambda v: search(location=v),
        "location",
        ["Berlin,Germany"],
        ["", 5],
    ),
    "safe": (m.SearchRequest, lambda v: search(safe=v), "safe", [True, False], [1, 0, "yes", "", []]),
    "highlights": (m.SearchRequest, lambda v: search(highlights=v), "highlights", [False], [0, "off"]),
    "ignoreInvalidURLs": (
        m.SearchRequest,
        lambda v: search(ignoreInvalidURLs=v),
        "ignoreInvalidURLs",
        [True, False],
        [1, "1"],
    ),
    "enterprise": (
        m.SearchRequest,
        lambda v: search(enterprise=[v]),
        "enterprise.0",
        ["anon", "zdr"],
        ["ZDR", "other", 1],
    ),
    "source": (
        m.SearchRequest,
        lambda v: search(sources=[v]),
        "sources.0",
        [
            "web",
            "images",
            "news",
            {"type": "web"},
            {"type": "images"},
            {"type": "news"},
            {"type": "web", "tbs": "qdr:d", "location": "Germany"},
        ],
        ["videos", {"type": "videos"}, {}, 5, None, {"type": 5}],
    ),
    "tbs of a source": (
        m.SearchRequest,
        lambda v: search(sources=[{"type": "web", "tbs": v}]),
        "sources.0.tbs",
        ["qdr:w"],
        ["qdr:q"],
    ),
    "category": (
        m.SearchRequest,
        lambda v: search(categories=[v]),
        "categories.0",
        [
            "codehost",
            "research",
            "pdf",
            "github",
            "developer",
            "gov",
            {"type": "codehost"},
            {"type": "research"},
            {"type": "pdf"},
        ],
        ["code", "PDF", {"type": "x"}, {}, 1],
    ),
    "includeDomains": (
        m.SearchRequest,
        lambda v: search(includeDomains=[v]),
        "includeDomains.0",
        [
            "example.com",
            "docs.example.com",
            "EXAMPLE.com",
            "münchen.de",
            "a" * 63 + ".com",
            "1.2.3.4",
            f"{'.'.join(['a' * 60] * 4)}.{'b' * 9}",
        ],
        [
            "https://example.com",
            "example.com/docs",
            "example.com:80",
            "*.example.com",
            "",
            " example.com",
            "example..com",
            ".com",
            "-a.com",
            "a-.com",
            "a_b.com",
            "_dmarc.example.com",
            "a" * 64 + ".com",
            f"{'.'.join(['a' * 60] * 4)}.{'b' * 10}",
            5,
        ],
    ),
    "excludeDomains": (
        m.SearchRequest,
        lambda v: search(excludeDomains=[v]),
        "excludeDomains.0",
        ["example.com"],
        ["http://example.com", "example.com?x=1", "a b.com"],
    ),
    # Scrape options.
    "maxAge": (m.ScrapeOptions, lambda v: {"maxAge": v}, "maxAge", [0, 63_072_000_000], [-1, True, "x"]),
    "minAge": (m.ScrapeOptions, lambda v: {"minAge": v}, "minAge", [0, 1], [-1]),
    "waitFor": (m.ScrapeOptions, lambda v: {"waitFor": v}, "waitFor", [0, 60_000], [-1, 60_001]),
    "scrape timeout": (m.ScrapeOptions, lambda v: {"timeout": v}, "timeout", [1000, 300_000], [999, 300_001]),
    "proxy": (
        m.ScrapeOptions,
        lambda v: {"proxy": v},
        "proxy",
        ["basic", "enhanced", "auto", "stealth"],
        ["Basic", "none", ""],
    ),
    "includeTags": (
        m.ScrapeOptions,
        lambda v: {"includeTags": v},
        "includeTags",
        [[], ["main"]],
        ["main", {}],
    ),
    "excludeTags": (
        m.ScrapeOptions,
        lambda v: {"excludeTags": v},
        "excludeTags",
        [["#ad", ".x"]],
        ["nav", 5],
    ),
    "headers": (
        m.ScrapeOptions,
        lambda v: {"headers": v},
        "headers",
        [{}, {"Cookie": "a=b; c=d", "X-Tab": "a\tb", "X-Empty": ""}],
        [{"A": 5}, {"A": None}, {5: "a"}, {"": "a"}, {"A B": "c"}, {"A": "b\r\nC: d"}, "A: b", []],
    ),
    "country of location": (
        m.ScrapeOptions,
        lambda v: {"location": {"country": v}},
        "location.country",
        ["US", "DE"],
        ["us", "USA", "U", "", "U1", "US\n"],
    ),
    "languages": (
        m.ScrapeOptions,
        lambda v: {"location": {"languages": v}},
        "location.languages",
        [["de-DE", "en"]],
        ["de", {}],
    ),
    "profile name": (
        m.ScrapeOptions,
        lambda v: {"profile": {"name": v}},
        "profile.name",
        ["p", "p" * 128],
        ["", "p" * 129, 5],
    ),
    "audit username": (
        m.ScrapeOptions,
        lambda v: {"auditMetadata": {"username": v}},
        "auditMetadata.username",
        ["", "u" * 1024],
        ["u" * 1025, 5],
    ),
    "redactPII": (
        m.ScrapeOptions,
        lambda v: {"redactPII": v},
        "redactPII",
        [True, False, {}, {"mode": "fast", "entities": ["EMAIL"], "replaceStyle": "mask"}],
        [1, "yes", []],
    ),
    "PII mode": (
        m.ScrapeOptions,
        lambda v: {"redactPII": {"mode": v}},
        "redactPII.mode",
        ["accurate", "aggressive", "fast"],
        ["slow"],
    ),
    "PII entity": (
        m.ScrapeOptions,
        lambda v: {"redactPII": {"entities": [v]}},
        "redactPII.entities.0",
        ["PERSON", "EMAIL", "PHONE", "LOCATION", "FINANCIAL", "SECRET"],
        ["email", "NAME"],
    ),
    "PII style": (
        m.ScrapeOptions,
        lambda v: {"redactPII": {"replaceStyle": v}},
        "redactPII.replaceStyle",
        ["tag", "mask", "remove"],
        ["hash"],
    ),
    **{
        name: (m.ScrapeOptions, lambda v, name=name: {name: v}, name, [True, False], [1, "no", "", {}])
        for name in (
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
            "safeMode",
        )
    },
    # Formats.
    "format": (
        m.ScrapeOptions,
        lambda v: {"formats": [v]},
        "formats.0",
        [
            "markdown",
            "summary",
            "html",
            "rawHtml",
            "links",
            "images",
            "screenshot",
            "json",
            "branding",
            "product",
            "menu",
            "audio",
            "video",
            "rawBase64",
            "deterministicJson",
            {"type": "markdown"},
            {"type": "rawHtml"},
            {"type": "screenshot"},
            {"type": "json"},
            {"type": "menu"},
            {"type": "deterministicJson", "prompt": "p"},
        ],
        [
            "Markdown",
            "raw_html",
            "question",
            "highlights",
            "attributes",
            "query",
            "",
            5,
            None,
            [],
            {},
            {"type": "x"},
        ],
    ),
    "quality": (
        m.ScrapeOptions,
        lambda v: fmt("screenshot", quality=v),
        "formats.1.quality",
        [1, 100],
        [0, 101],
    ),
    "viewport": (
        m.ScrapeOptions,
        lambda v: fmt("screenshot", viewport=v),
        "formats.1.viewport",
        [VIEWPORT, {"width": 1920, "height": 1080}],
        ["1x1", 5],
    ),
    "viewport width": (
        m.ScrapeOptions,
        lambda v: fmt("screenshot", viewport={"height": 1, **v}),
        "formats.1.viewport.width",
        [{"width": 1}],
        [{}, {"width": 0}, {"width": True}],
    ),
    "viewport height": (
        m.ScrapeOptions,
        lambda v: fmt("screenshot", viewport={"width": 1, **v}),
        "formats.1.viewport.height",
        [{"height": 1}],
        [{}, {"height": 0}, {"height": 1.5}],
    ),
    "fullPage": (
        m.ScrapeOptions,
        lambda v: fmt("screenshot", fullPage=v),
        "formats.1.fullPage",
        [True],
        [1],
    ),
    "json schema": (
        m.ScrapeOptions,
        lambda v: fmt("json", schema=v),
        "formats.1.schema",
        [
            {},
            {"type": "object", "properties": {"price": {"type": ["number", "null"]}}, "required": ["price"]},
            {"items": [{"type": "string"}]},
            {"pattern": r"^\p{L}+$"},
            {"maximum": 5, "exclusiveMaximum": True},
        ],
        ["{}", [], {"type": "money"}, {"properties": []}, {"enum": {1}}, {"const": float("nan")}, {1: 2}],
    ),
    "json prompt": (m.ScrapeOptions, lambda v: fmt("json", prompt=v), "formats.1.prompt", ["p"], [5]),
    "change tracking mode": (
        m.ScrapeOptions,
        lambda v: fmt("changeTracking", modes=[v]),
        "formats.1.modes.0",
        ["git-diff", "json"],
        ["diff", ""],
    ),
    "change tracking tag": (
        m.ScrapeOptions,
        lambda v: fmt("changeTracking", tag=v),
        "formats.1.tag",
        ["t", None],
        [5],
    ),
    "question": (
        m.ScrapeOptions,
        lambda v: fmt("question", question=v),
        "formats.1.question",
        ["?", "q" * 10_000],
        ["", "q" * 10_001, None],
    ),
    "highlights query": (
        m.ScrapeOptions,
        lambda v: fmt("highlights", query=v),
        "formats.1.query",
        ["x", "q" * 10_000],
        ["", "q" * 10_001, None],
    ),
    "query prompt": (
        m.ScrapeOptions,
        lambda v: fmt("query", prompt=v, mode="directQuote"),
        "formats.1.prompt",
        ["p" * 10_000],
        ["p" * 10_001],
    ),
    "attribute selectors": (
        m.ScrapeOptions,
        lambda v: fmt("attributes", selectors=v),
        "formats.1.selectors",
        [[{"selector": "a", "attribute": "href"}]],
        ["a", None],
    ),
    # Parsers.
    "parser": (
        m.ScrapeOptions,
        lambda v: {"parsers": [v]},
        "parsers.0",
        [
            "pdf",
            "image",
            {"type": "pdf"},
            {"type": "image"},
            {"type": "pdf", "pages": True, "blocks": False, "pageMarkers": True},
        ],
        ["docx", {"type": "docx"}, {}, 5],
    ),
    "parser mode": (
        m.ScrapeOptions,
        lambda v: {"parsers": [{"type": "pdf", "mode": v}]},
        "parsers.0.mode",
        ["fast", "auto", "ocr"],
        ["slow"],
    ),
    "parser maxPages": (
        m.ScrapeOptions,
        lambda v: {"parsers": [{"type": "pdf", "maxPages": v}]},
        "parsers.0.maxPages",
        [1, 10_000],
        [0, 10_001],
    ),
    # Actions.
    "actions": (
        m.ScrapeOptions,
        lambda v: {"actions": [{"type": "scrape"}] * v},
        "actions",
        [0, 1, 50],
        [51],
    ),
    "action": (
        m.ScrapeOptions,
        lambda v: {"actions": [v]},
        "actions.0",
        [
            {"type": "wait", "milliseconds": 1},
            {"type": "wait", "selector": "#a"},
            {"type": "screenshot", "fullPage": True, "quality": 1, "viewport": VIEWPORT},
            {"type": "click", "selector": "a", "all": True},
            {"type": "write", "text": ""},
            {"type": "press", "key": "Enter"},
            {"type": "scroll"},
            {"type": "scroll", "direction": "up", "selector": "#a"},
            {"type": "scrape"},
            {"type": "executeJavascript", "script": "1"},
            {"type": "pdf", "format": "A4", "landscape": True, "scale": 0.5},
        ],
        [
            "scrape",
            {"type": "sleep"},
            {},
            5,
            {"type": "wait"},
            {"type": "wait", "milliseconds": 1, "selector": "a"},
        ],
    ),
    "wait milliseconds": (
        m.ScrapeOptions,
        lambda v: action("wait", milliseconds=v),
        "actions.0.milliseconds",
        [1],
        [0, -5, True],
    ),
    "wait has nothing else": (
        m.ScrapeOptions,
        lambda v: action("wait", milliseconds=1, **v),
        "actions.0.all",
        [{}],
        [{"all": True}],
    ),
    "click selector": (
        m.ScrapeOptions,
        lambda v: action("click", **v),
        "actions.0.selector",
        [{"selector": "a"}],
        [{}, {"selector": ""}],
    ),
    "write text": (m.ScrapeOptions, lambda v: action("write", **v), "actions.0.text", [{"text": "t"}], [{}]),
    "press key": (
        m.ScrapeOptions,
        lambda v: action("press", **v),
        "actions.0.key",
        [{"key": " "}],
        [{}, {"key": ""}],
    ),
    "scroll direction": (
        m.ScrapeOptions,
        lambda v: action("scroll", direction=v),
        "actions.0.direction",
        ["up", "down"],
        ["left"],
    ),
    "script": (
        m.ScrapeOptions,
        lambda v: action("executeJavascript", **v),
        "actions.0.script",
        [{"script": "1"}],
        [{}, {"script": ""}],
    ),
    "paper": (
        m.ScrapeOptions,
        lambda v: action("pdf", format=v),
        "actions.0.format",
        ["A0", "A1", "A2", "A3", "A4", "A5", "A6", "Letter", "Legal", "Tabloid", "Ledger"],
        ["A7", "a4", "B5"],
    ),
    "pdf scale": (
        m.ScrapeOptions,
        lambda v: action("pdf", scale=v),
        "actions.0.scale",
        [1, 0.5],
        [True, "x", float("inf")],
    ),
    "action quality": (
        m.ScrapeOptions,
        lambda v: action("screenshot", quality=v),
        "actions.0.quality",
        [1, 100],
        [0, 101],
    ),
    # Threat protection.
    "threat mode": (m.ThreatProtection, lambda v: {"mode": v}, "mode", ["off", "normal"], ["on", "", True]),
    "threshold": (
        m.ThreatProtection,
        lambda v: {"riskScoreThreshold": v},
        "riskScoreThreshold",
        [0, 100],
        [-1, 101],
    ),
    "failurePolicy": (
        m.ThreatProtection,
        lambda v: {"failurePolicy": v},
        "failurePolicy",
        ["open", "closed"],
        ["shut"],
    ),
    **{
        f"{name} item": (
            m.ThreatProtection,
            lambda v, name=name: {name: [v]},
            f"{name}.0",
            ["example.com", "*.example.com", "xn--mnchen-3ya.de"],
            [
                "https://example.com",
                "example.com/a",
                "example.com:80",
                "a.*.com",
                "*",
                "*.",
                "**.a.com",
                "",
                5,
            ],
        )
        for name in ("blacklist", "whitelist")
    },
    "blockedTlds item": (
        m.ThreatProtection,
        lambda v: {"blockedTlds": [v]},
        "blockedTlds.0",
        ["zip", "xyz", "xn--p1ai"],
        [".zip", "ZIP", "co.uk", "", "*"],
    ),
    **{
        f"{name} length": (
            m.ThreatProtection,
            lambda v, name=name: {name: ["com"] * v},
            name,
            [0, 1000],
            [1001],
        )
        for name in ("blacklist", "whitelist", "blockedTlds")
    },
    # Webhook.
    "webhook url": (
        m.WebhookConfig,
        lambda v: {"url": v},
        "url",
        [
            "https://example.com/a?b=c",
            "https://example.com:8443",
            "http://127.0.0.1:8080/x",
            "http://[::1]:9/x",
            "http://localhost/x",
            "http://127.8.9.1",
        ],
        [
            "http://example.com",
            "http://10.0.0.1",
            "http://localhost.example.com",
            "ftp://example.com",
            "example.com",
            "https://",
            "",
            "https://a b",
            "https://a\n",
            "https://[::1",
            "https://a:99999",
            "//a",
            "http://0.0.0.0",
            5,
        ],
    ),
    "webhook metadata": (
        m.WebhookConfig,
        lambda v: {"url": "https://a.example", "metadata": v},
        "metadata",
        [{}, {"dag": "d", "run": ""}],
        [{"a": 1}, {"a": None}, {"a": {}}, {"a": True}, "a", [], {1: "a"}],
    ),
    "webhook headers": (
        m.WebhookConfig,
        lambda v: {"url": "https://a.example", "headers": v},
        "headers",
        [{"X-Secret": "s"}],
        [{"X": 1}, "X"],
    ),
    "webhook events": (
        m.WebhookConfig,
        lambda v: {"url": "https://a.example", "events": [v]},
        "events.0",
        ["started", "page", "completed", "failed", "action", "anything"],
        ["", 5],
    ),
    "monitor webhook events": (
        m.MonitorWebhookConfig,
        lambda v: {"url": "https://a.example", "events": v},
        "events",
        [[], ["monitor.page"], ["monitor.page", "monitor.check.completed"]],
        [["page"], ["check.completed"], ["completed"], ["monitor.page", "started"], "monitor.page"],
    ),
    # Monitor.
    "name": (
        m.MonitorCreateRequest,
        lambda v: monitor(name=v),
        "name",
        ["n", "n" * 256],
        ["", "n" * 257, None],
    ),
    "targets": (
        m.MonitorCreateRequest,
        lambda v: monitor(targets=[SCRAPE] * v),
        "targets",
        [1, 50],
        [0, 51],
    ),
    "target": (
        m.MonitorCreateRequest,
        lambda v: monitor(targets=[v], goal="g"),
        "targets.0",
        [SCRAPE, {"type": "crawl", "url": "https://a.example"}, search_target()],
        ["scrape", {"urls": ["https://a.example"]}, {"type": "map"}, 5],
    ),
    "goal": (
        m.MonitorCreateRequest,
        lambda v: monitor(goal=v),
        "goal",
        ["", "g" * 2000, None],
        ["g" * 2001, 5],
    ),
    "judgeEnabled": (
        m.MonitorCreateRequest,
        lambda v: monitor(judgeEnabled=v),
        "judgeEnabled",
        [True, False],
        [1, "on"],
    ),
    "retentionDays": (
        m.MonitorCreateRequest,
        lambda v: monitor(retentionDays=v),
        "retentionDays",
        [1, 365],
        [0, 366, True],
    ),
    "update name": (
        m.MonitorUpdateRequest,
        lambda v: {"name": v},
        "name",
        ["n" * 256],
        ["", "n" * 257],
    ),
    "update goal": (m.MonitorUpdateRequest, lambda v: {"goal": v}, "goal", [None, "g" * 2000], ["g" * 2001]),
    "update retentionDays": (
        m.MonitorUpdateRequest,
        lambda v: {"retentionDays": v},
        "retentionDays",
        [1, 365],
        [0, 366],
    ),
    "update targets": (
        m.MonitorUpdateRequest,
        lambda v: {"targets": [SCRAPE] * v},
        "targets",
        [1, 50],
        [0, 51],
    ),
    "update status": (
        m.MonitorUpdateRequest,
        lambda v: {"status": v},
        "status",
        ["active", "paused"],
        ["deleted", "Active"],
    ),
    "recipients": (
        m.EmailNotification,
        lambda v: {"recipients": [f"a{n}@example.com" for n in range(v)]},
        "recipients",
        [0, 25],
        [26],
    ),
    "recipient": (
        m.EmailNotification,
        lambda v: {"recipients": [v]},
        "recipients.0",
        ["a@example.com", "first.last+tag@sub.example.co.uk"],
        ["a", "a@", "@a.com", "a@b", "a b@c.de", "a@b@c.de", "A <a@b.de>", "a@b.de,c@d.de", 5],
    ),
    "includeDiffs": (m.EmailNotification, lambda v: {"includeDiffs": v}, "includeDiffs", [True], [1]),
    "enabled": (m.EmailNotification, lambda v: {"enabled": v}, "enabled", [False], [0]),
    # Targets.
    "target id": (
        m.ScrapeTarget,
        lambda v: {**SCRAPE, "id": v},
        "id",
        [UUID, UUID.upper()],
        ["1", UUID[1:], f"{{{UUID}}}", UUID.replace("-", ""), 5],
    ),
    "target urls": (
        m.ScrapeTarget,
        lambda v: {"type": "scrape", "urls": v},
        "urls",
        [["https://a.example"], ["http://a.example/x?y#z", "a.example"]],
        [[], "https://a.example", None],
    ),
    "target url": (
        m.CrawlTarget,
        lambda v: {"type": "crawl", "url": v},
        "url",
        ["https://a.example"],
        ["", " ", "ftp://a.example", "https://", "https:///x", "https://a .example", None],
    ),
    "crawl limit": (
        m.CrawlTarget,
        lambda v: {"type": "crawl", "url": "https://a.example", "crawlOptions": {"limit": v}},
        "crawlOptions.limit",
        [1, 10_000],
        [0, -1, True],
    ),
    "crawl depth": (
        m.CrawlOptions,
        lambda v: {"maxDiscoveryDepth": v},
        "maxDiscoveryDepth",
        [0, 5],
        [-1],
    ),
    "crawl maxDepth": (m.CrawlOptions, lambda v: {"maxDepth": v}, "maxDepth", [0], [-1]),
    "crawl delay": (m.CrawlOptions, lambda v: {"delay": v}, "delay", [0, 0.5, 60], [-1, True, float("nan")]),
    "crawl concurrency": (m.CrawlOptions, lambda v: {"maxConcurrency": v}, "maxConcurrency", [1], [0]),
    "crawl sitemap": (
        m.CrawlOptions,
        lambda v: {"sitemap": v},
        "sitemap",
        ["skip", "include", "only"],
        ["no"],
    ),
    **{
        f"crawl {name}": (m.CrawlOptions, lambda v, name=name: {name: v}, name, [True, False], [1])
        for name in (
            "regexOnFullURL",
            "ignoreQueryParameters",
            "deduplicateSimilarURLs",
            "crawlEntireDomain",
            "allowExternalLinks",
            "allowSubdomains",
            "ignoreRobotsTxt",
        )
    },
    "queries": (
        m.SearchTarget,
        lambda v: search_target(queries=["q"] * v),
        "queries",
        [1, 12],
        [0, 13],
    ),
    "a query of a target": (
        m.SearchTarget,
        lambda v: search_target(queries=[v]),
        "queries.0",
        ["q", "q" * 256],
        ["", "q" * 257],
    ),
    "searchWindow": (
        m.SearchTarget,
        lambda v: search_target(searchWindow=v),
        "searchWindow",
        ["5m", "15m", "1h", "6h", "24h", "7d"],
        ["1d", "10m", 5],
    ),
    "maxResults": (m.SearchTarget, lambda v: search_target(maxResults=v), "maxResults", [1, 50], [0, 51]),
    **{
        f"target {name}": (
            m.SearchTarget,
            lambda v, name=name: search_target(**{name: ["a.com"] * v}),
            name,
            [0, 50],
            [51],
        )
        for name in ("includeDomains", "excludeDomains")
    },
    "search target has no scrape options": (
        m.SearchTarget,
        lambda v: search_target(**v),
        "scrapeOptions",
        [{}],
        [{"scrapeOptions": {}}],
    ),
}


@pytest.mark.rule("scrape-formats", "scrape-switches", "scrape-clean-content", "scrape-tags")
@pytest.mark.rule("scrape-headers", "scrape-max-age", "scrape-min-age", "scrape-wait-for", "scrape-timeout")
@pytest.mark.rule("scrape-tls", "scrape-parsers", "scrape-actions", "scrape-location", "scrape-proxy")
@pytest.mark.rule("scrape-store", "scrape-lockdown", "scrape-pii", "scrape-profile", "scrape-audit")
@pytest.mark.rule("scrape-extra-switches", "format-plain", "format-screenshot", "format-json")
@pytest.mark.rule("format-change-tracking", "format-question", "format-highlights", "format-further")
@pytest.mark.rule("parser-pdf", "parser-image", "action-wait", "action-screenshot", "action-click")
@pytest.mark.rule("action-write", "action-press", "action-scroll", "action-scrape", "action-script")
@pytest.mark.rule("action-pdf", "threat-mode", "threat-score", "threat-lists", "threat-tlds")
@pytest.mark.rule("threat-failure", "search-query", "search-limit", "search-sources", "search-categories")
@pytest.mark.rule("search-domains", "search-tbs", "search-location", "search-safe", "search-timeout")
@pytest.mark.rule("search-ignore-invalid-urls", "search-highlights", "search-enterprise", "crawl-paths")
@pytest.mark.rule("crawl-depth", "crawl-sitemap", "crawl-similar", "crawl-limit", "crawl-scope")
@pytest.mark.rule("crawl-external", "crawl-robots", "crawl-delay", "crawl-max-concurrency", "monitor-name")
@pytest.mark.rule("monitor-targets", "monitor-goal", "monitor-judge", "monitor-retention")
@pytest.mark.rule("monitor-notification", "target-urls", "target-url", "target-crawl-options")
@pytest.mark.rule("target-queries", "target-search-window", "target-max-results", "target-domains")
@pytest.mark.rule("target-ids", "target-no-scrape-options", "monitor-update", "webhook-url")
@pytest.mark.rule("webhook-headers", "webhook-metadata", "webhook-events-monitor")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)
