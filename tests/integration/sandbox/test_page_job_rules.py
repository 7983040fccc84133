"""Both sides of every rule of the bodies of scrape, batch scrape, crawl, crawl params and map."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.sandbox.reference.rules import check

UUID = "0b0e3e1c-7d8a-4a53-9f7e-2f1f9a3b7c11"
PAGE = "https://weather.example/levels"
HOOK = "https://hooks.example/in"

BASES: dict[str, dict[str, Any]] = {
    "scrape": {"url": PAGE},
    "batch.scrape": {"urls": [PAGE]},
    "crawl": {"url": PAGE},
    "crawl.params": {"url": PAGE, "prompt": "only /blog"},
    "map": {"url": PAGE},
}

Row = tuple[str, str, list[dict[str, Any]], list[dict[str, Any]]]


def booleans(operation: str, *names: str) -> list[Row]:
    return [
        (operation, name, [{name: True}, {name: False}], [{name: "yes"}, {name: 1}, {name: None}])
        for name in names
    ]


def between(operation: str, name: str, low: int, high: int | None = None) -> Row:
    good = [{name: low}, *([{name: high}] if high is not None else [{name: 10**7}])]
    bad = [{name: low - 1}, {name: str(low)}, {name: low + 0.5}, {name: None}]
    return (operation, name, good, bad + ([{name: high + 1}] if high is not None else []))


SHARED: list[Row] = [
    row
    for operation in BASES
    for row in (
        (operation, "unknown key", [{}], [{"nonsense": 1}, {"max_age": 1}]),
        (operation, "origin", [{"origin": "x"}], [{"origin": 5}]),
        (operation, "integration", [{"integration": None}, {"integration": "x"}], [{"integration": 5}]),
    )
]
ADDRESSES: list[Row] = [
    (
        operation,
        "url",
        [
            {"url": "weather.example"},
            {"url": "http://10.1.2.3/x"},
            {"url": "https://weather.example/a?b=c#d"},
        ],
        [{"url": ""}, {"url": "ftp://weather.example"}, {"url": "intranet"}, {"url": "https://"}, {"url": 5}],
    )
    for operation in ("scrape", "crawl", "crawl.params", "map")
]
WEBHOOKS: list[Row] = [
    (
        operation,
        "webhook",
        [
            {"webhook": HOOK},
            {"webhook": "http://127.0.0.1:9/x"},
            {"webhook": {"url": HOOK, "events": ["started", "page", "completed", "failed"]}},
            {"webhook": {"url": HOOK, "events": [], "headers": {"X-Key": "k"}, "metadata": {"run": "r"}}},
        ],
        [
            {"webhook": {}},
            {"webhook": 5},
            {"webhook": "no url"},
            {"webhook": "http://hooks.example/in"},
            {"webhook": {"url": HOOK, "events": ["crawl.page"]}},
            {"webhook": {"url": HOOK, "events": ["batch_scrape.completed"]}},
            {"webhook": {"url": HOOK, "events": ["action"]}},
            {"webhook": {"url": HOOK, "headers": {"X-Firecrawl-Signature": "x"}}},
            {"webhook": {"url": HOOK, "headers": {"X-Key": 5}}},
            {"webhook": {"url": HOOK, "secret": "s"}},
        ],
    )
    for operation in ("batch.scrape", "crawl")
]


def options(operation: str, nested: str | None) -> list[Row]:
    """Scrape options stand at the top level of a scrape and a batch, and nested in a crawl."""

    def put(**fields: Any) -> dict[str, Any]:
        return {nested: fields} if nested else fields

    return [
        (
            operation,
            "options",
            [
                put(formats=["markdown", {"type": "links"}]),
                put(formats=[]),
                put(timeout=1000),
                put(timeout=300_000),
                put(maxAge=0),
                put(waitFor=500, timeout=1000),
                put(headers={"a": "b"}, location={"country": "GB"}, proxy="stealth"),
                put(parsers=[{"type": "pdf", "maxPages": 10_000}], onlyMainContent=False),
                put(actions=[{"type": "wait", "milliseconds": 1}] * 50),
            ],
            [
                put(formats=["nonsense"]),
                put(formats=["question"]),
                put(timeout=999),
                put(timeout=300_001),
                put(maxAge=-1),
                put(waitFor=501, timeout=1000),
                put(location={"country": "gb"}),
                put(proxy="fast"),
                put(parsers=[{"type": "pdf", "maxPages": 10_001}]),
                put(actions=[{"type": "wait", "milliseconds": 1}] * 51),
                put(formats=[{"type": "changeTracking"}]),
            ],
        ),
        (
            operation,
            "zeroDataRetention",
            [{"zeroDataRetention": True}, {"zeroDataRetention": False, **put(formats=["screenshot"])}],
            [{"zeroDataRetention": True, **put(formats=["screenshot"])}, {"zeroDataRetention": "yes"}],
        ),
    ]


BATCH: list[Row] = [
    (
        "batch.scrape",
        "urls",
        [{"urls": [PAGE, PAGE]}, {"urls": ["not a url"]}, {"urls": [f"{PAGE}?{n}" for n in range(2000)]}],
        [{"urls": []}, {"urls": PAGE}, {"urls": [5]}, {"urls": None}],
    ),
    between("batch.scrape", "maxConcurrency", 1),
    *booleans("batch.scrape", "ignoreInvalidURLs"),
    ("batch.scrape", "appendToId", [{"appendToId": UUID}], [{"appendToId": "x"}, {"appendToId": UUID + "0"}]),
    ("batch.scrape", "nested options", [], [{"scrapeOptions": {"formats": ["links"]}}]),
]
CRAWL: list[Row] = [
    ("crawl", "prompt", [{"prompt": "x" * 10_000}], [{"prompt": "x" * 10_001}, {"prompt": 5}]),
    *[
        ("crawl", name, [{name: []}, {name: ["^/a/.*$", "b"]}], [{name: "a"}, {name: ["("]}, {name: [5]}])
        for name in ("includePaths", "excludePaths")
    ],
    between("crawl", "limit", 1),
    between("crawl", "maxDiscoveryDepth", 0),
    between("crawl", "maxConcurrency", 1),
    ("crawl", "sitemap", [{"sitemap": v} for v in ("skip", "include", "only")], [{"sitemap": "both"}]),
    (
        "crawl",
        "delay",
        [{"delay": 0.1}, {"delay": 60}],
        [{"delay": 0}, {"delay": 60.1}, {"delay": -1}, {"delay": "1"}],
    ),
    (
        "crawl",
        "robotsUserAgent",
        [{"robotsUserAgent": "Bot"}],
        [{"robotsUserAgent": 5}, {"robotsUserAgent": None}],
    ),
    ("crawl", "version 1", [], [{"maxDepth": 2}, {"allowBackwardCrawling": True}, {"ignoreSitemap": True}]),
    ("crawl", "top level options", [], [{"formats": ["markdown"]}, {"timeout": 5000}]),
    *booleans(
        "crawl",
        *("regexOnFullURL", "ignoreQueryParameters", "deduplicateSimilarURLs", "crawlEntireDomain"),
        *("allowExternalLinks", "allowSubdomains", "ignoreRobotsTxt"),
    ),
]
PARAMS: list[Row] = [
    (
        "crawl.params",
        "prompt",
        [{"prompt": "x"}, {"prompt": "x" * 10_000}],
        [{"prompt": ""}, {"prompt": "x" * 10_001}, {"prompt": None}],
    ),
    ("crawl.params", "limit", [], [{"limit": 5}]),
]
MAP: list[Row] = [
    between("map", "limit", 1, 100_000),
    between("map", "timeout", 1),
    ("map", "search", [{"search": ""}, {"search": "a b"}], [{"search": ["a"]}]),
    ("map", "sitemap", [{"sitemap": v} for v in ("skip", "include", "only")], [{"sitemap": True}]),
    ("map", "location", [{"location": {"country": "GB"}}], [{"location": {"country": "gb"}}]),
    (
        "map",
        "auditMetadata",
        [{"auditMetadata": {"username": "x" * 1024}}],
        [{"auditMetadata": {"username": "x" * 1025}}, {"auditMetadata": {}}],
    ),
    (
        "map",
        "threatProtection",
        [{"threatProtection": {"mode": "normal", "blacklist": ["*.bad.example"]}}],
        [
            {"threatProtection": {"mode": "loud"}},
            {"threatProtection": {"riskScoreThreshold": 101}},
            {"threatProtection": {"blacklist": ["https://bad.example"]}},
        ],
    ),
    ("map", "scrape options", [], [{"formats": ["links"]}, {"scrapeOptions": {}}, {"webhook": HOOK}]),
    *booleans("map", "includeSubdomains", "ignoreQueryParameters", "ignoreCache"),
]

ROWS = [
    *SHARED,
    *ADDRESSES,
    *WEBHOOKS,
    *options("scrape", None),
    *options("batch.scrape", None),
    *options("crawl", "scrapeOptions"),
    ("scrape", "jobs only", [], [{"webhook": HOOK}, {"maxConcurrency": 1}, {"limit": 1}]),
    *BATCH,
    *CRAWL,
    *PARAMS,
    *MAP,
]
CASES = [
    pytest.param(operation, body, good, id=f"{operation}-{name}-{'takes' if good else 'refuses'}-{number}")
    for operation, name, taken, refused in ROWS
    for good, bodies in ((True, taken), (False, refused))
    for number, body in enumerate(bodies)
]


@pytest.mark.rule("request-unknown-keys", "caller-labels", "urls", "format-change-tracking", "zdr-excludes")
@pytest.mark.rule("scrape-url", "scrape-top-level", "scrape-zero-data-retention", "map-url", "map-search")
@pytest.mark.rule("map-sitemap", "map-switches", "map-limit", "map-timeout", "map-further", "batch-urls")
@pytest.mark.rule("batch-webhook", "batch-max-concurrency", "batch-ignore-invalid-urls", "batch-append")
@pytest.mark.rule("batch-options", "crawl-url", "crawl-prompt", "crawl-paths", "crawl-depth", "crawl-sitemap")
@pytest.mark.rule("crawl-similar", "crawl-limit", "crawl-scope", "crawl-external", "crawl-robots")
@pytest.mark.rule("crawl-delay", "crawl-max-concurrency", "crawl-webhook", "crawl-scrape-options")
@pytest.mark.rule("crawl-zero-data-retention", "crawl-version-1", "crawl-preview", "webhook-url")
@pytest.mark.rule("webhook-headers", "webhook-events", "webhook-short-form")
@pytest.mark.parametrize(("operation", "body", "good"), CASES)
def test_rule(operation: str, body: dict[str, Any], good: bool) -> None:
    found = check(operation, {**BASES[operation], **body})
    assert (not found) is good, [issue.to_wire() for issue in found]


@pytest.mark.rule("scrape-url", "map-url", "batch-urls", "crawl-url", "crawl-preview")
@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("scrape", {}),
        ("batch.scrape", {}),
        ("crawl", {"prompt": "only /blog"}),
        ("crawl.params", {"url": PAGE}),
        ("crawl.params", {"prompt": "x"}),
        ("map", {"search": "x"}),
        ("crawl", []),
        ("map", None),
        ("scrape", PAGE),
    ],
)
def test_what_must_be_given(operation: str, body: Any) -> None:
    assert check(operation, body)


@pytest.mark.parametrize(
    "path", ["/v2/scrape", "/v2/batch/scrape", "/v2/crawl", "/v2/crawl/params-preview", "/v2/map"]
)
def test_the_routes_hold_the_rules(sandbox, api, path: str) -> None:
    answer = api.http.post(path, json={"url": PAGE, "urls": [PAGE], "prompt": "x", "nonsense": 1})
    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")
    assert "nonsense" in answer.json()["error"] + str(answer.json()["details"])
    assert api.balance() == 100_000
    assert sandbox.control.jobs("crawl") == sandbox.control.jobs("batch_scrape") == []
