"""The sandbox's statement of the reference, both sides of every rule."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.sandbox.reference.rules import check

SCRAPE = {"type": "scrape", "urls": ["https://weather.example/levels"]}
SEARCH = {"type": "search", "queries": ["river"]}
UUID = "0b0e3e1c-7d8a-4a53-9f7e-2f1f9a3b7c11"


def formats(*items: Any) -> dict[str, Any]:
    return {"scrapeOptions": {"formats": list(items)}}


def options(**fields: Any) -> dict[str, Any]:
    return {"scrapeOptions": fields}


def threats(**fields: Any) -> dict[str, Any]:
    return {"threatProtection": fields}


# field, bodies the service takes, bodies it refuses (each merged into {"query": "river"})
SEARCH_ROWS: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("query", [{"query": "x" * 500}], [{"query": "x" * 501}, {"query": ""}, {"query": " "}, {"query": 5}]),
    (
        "limit",
        [{"limit": 1}, {"limit": 100}],
        [{"limit": 0}, {"limit": 101}, {"limit": "5"}, {"limit": True}, {"limit": 1.5}],
    ),
    (
        "sources",
        [
            {"sources": ["web", "images", "news"]},
            {"sources": [{"type": "web", "tbs": "qdr:d", "location": "Berlin"}]},
        ],
        [
            {"sources": ["books"]},
            {"sources": [{"type": "news", "tbs": "qdr:d"}]},
            {"sources": [{}]},
            {"sources": "web"},
            {"sources": ["web", {"type": "news"}]},
            {"sources": [{"type": "web", "tbs": "qdr:x"}]},
        ],
    ),
    (
        "categories",
        [
            {"categories": ["codehost", "research", "pdf"]},
            {"categories": [{"type": "github"}]},
            {"categories": ["gov", "pdf"]},
            {"categories": ["developer"]},
            {"categories": []},
        ],
        [
            {"categories": ["books"]},
            {"categories": [{"kind": "pdf"}]},
            {"categories": ["pdf", {"type": "pdf"}]},
            {"categories": ["developer", "gov"]},
            {"categories": [{"type": "developer"}, {"type": "pdf"}]},
        ],
    ),
    (
        "domains",
        [
            {"includeDomains": ["a.example", "B.EXAMPLE"]},
            {"excludeDomains": ["a.b.example"]},
            {"includeDomains": ["x" * 63 + ".example"]},
            {"includeDomains": [], "excludeDomains": ["a.example"]},
        ],
        [{"includeDomains": ["a.example"], "excludeDomains": ["b.example"]}]
        + [
            {"includeDomains": [bad]}
            for bad in ("https://a.example", "a.example/x", "a.example:80", "", "-a.example", "a_b.example")
        ]
        + [{"excludeDomains": [".".join(["x" * 60] * 5)]}, {"excludeDomains": ["x" * 64 + ".example"]}],
    ),
    (
        "tbs",
        [{"tbs": text} for text in ("qdr:h", "qdr:d", "qdr:w", "qdr:m", "qdr:y", "sbd:1", "sbd:1,qdr:w")]
        + [
            {"tbs": "cdr:1,cd_min:02/29/2024,cd_max:02/29/2024"},
            {"tbs": "cdr:1,cd_min:01/01/2024,cd_max:12/31/2024,sbd:1"},
            {"tbs": "cdr:1,cd_min:1/1/2024,cd_max:01/2/2024"},
        ],
        [
            {"tbs": text}
            for text in ("", "qdr", "qdr:", "qdr:q", "sbd:0", "cdr:1", "cdr:1,cd_min:01/01/2024", "x:1")
        ]
        + [
            {"tbs": "cdr:1,cd_min:02/30/2024,cd_max:03/01/2024"},
            {"tbs": "cdr:1,cd_min:03/02/2024,cd_max:03/01/2024"},
        ]
        + [
            {"tbs": "cdr:1,cd_min:2024-01-01,cd_max:2024-01-02"},
            {"tbs": "qdr:d,qdr:w"},
            {"tbs": "cdr:1,cd_min:1/1/24,cd_max:01/02/2024"},
        ]
        + [{"tbs": "qdr:d,cdr:1,cd_min:01/01/2024,cd_max:01/02/2024"}],
    ),
    (
        "booleans",
        [{"safe": True, "ignoreInvalidURLs": False, "highlights": True}],
        [{"safe": 1}, {"highlights": "true"}],
    ),
    (
        "timeout",
        [{"timeout": 1}, {"timeout": 300_000}],
        [{"timeout": 0}, {"timeout": -5}, {"timeout": "60000"}],
    ),
    (
        "enterprise",
        [{"enterprise": ["anon"]}, {"enterprise": ["zdr", "default"]}],
        [{"enterprise": ["x"]}, {"enterprise": "zdr"}],
    ),
    (
        "labels",
        [{"origin": "api", "integration": None}],
        [{"unknown": 1}, {"scrape_options": {}}, {"ignoreInvalidUrls": True}],
    ),
    (
        "formats",
        [formats("markdown", {"type": "html"})],
        [formats("pdf"), formats({"type": "x"}), formats({}), formats(1)],
    ),
    (
        "formats.question",
        [formats({"type": "question", "question": "x" * 10_000})],
        [
            formats("question"),
            formats({"type": "question"}),
            formats({"type": "question", "question": "x" * 10_001}),
        ],
    ),
    (
        "formats.highlights",
        [formats({"type": "highlights", "query": "x" * 10_000})],
        [
            formats("highlights"),
            formats({"type": "highlights"}),
            formats({"type": "highlights", "query": "x" * 10_001}),
        ],
    ),
    (
        "formats.screenshot",
        [
            formats(
                {
                    "type": "screenshot",
                    "fullPage": True,
                    "quality": 1,
                    "viewport": {"width": 7680, "height": 4320},
                }
            ),
            formats({"type": "screenshot", "quality": 100}),
            formats("screenshot"),
        ],
        [formats({"type": "screenshot", "quality": bad}) for bad in (0, 101)]
        + [formats({"type": "screenshot", "viewport": bad}) for bad in ({"width": 1}, {"height": 1}, {})]
        + [
            formats({"type": "screenshot", "viewport": {"width": 7681, "height": 1}}),
            formats("screenshot", "screenshot"),
        ],
    ),
    (
        "formats.json",
        [
            formats(
                {
                    "type": "json",
                    "schema": {"type": "object", "properties": {"a": {}}},
                    "prompt": "x" * 10_000,
                }
            )
        ],
        [
            formats({"type": "json", "prompt": "x" * 10001}),
            formats({"type": "json", "schema": []}),
            formats({"type": "json", "schema": {"type": "object", "additionalProperties": True}}),
        ],
    ),
    ("formats.changeTracking", [], [formats("markdown", "changeTracking"), formats("changeTracking")]),
    ("formats.markdown", [formats({"type": "markdown"})], [formats({"type": "markdown", "fullPage": True})]),
    (
        "timeout of a scrape",
        [options(timeout=1000), options(timeout=300_000)],
        [options(timeout=999), options(timeout=300_001)],
    ),
    (
        "waitFor",
        [options(waitFor=60_000), options(waitFor=500, timeout=1000)],
        [options(waitFor=60_001), options(waitFor=501, timeout=1000), options(waitFor=-1)],
    ),
    (
        "parsers",
        [
            options(parsers=[]),
            options(parsers=["pdf"]),
            options(parsers=[{"type": "pdf", "mode": "ocr", "maxPages": 10000}]),
            options(
                parsers=[{"type": "pdf", "maxPages": 1, "pages": True, "blocks": True, "pageMarkers": True}]
            ),
        ],
        [options(parsers=[{"type": "pdf", "maxPages": bad}]) for bad in (0, 10_001, "1")]
        + [options(parsers=[{"type": "pdf", "mode": "slow"}]), options(parsers=[{"type": "pdf", "x": 1}])]
        + [options(parsers=["docx"]), options(parsers=[{"mode": "fast"}])],
    ),
    (
        "actions.wait",
        [
            options(actions=[{"type": "wait", "milliseconds": 1}]),
            options(actions=[{"type": "wait", "selector": "#a"}]),
            options(actions=[{"type": "wait", "milliseconds": 60000}]),
        ],
        [
            options(actions=[{"type": "wait"}]),
            options(actions=[{"type": "wait", "milliseconds": 0}]),
            options(actions=[{"type": "wait", "milliseconds": 1, "selector": "#a"}]),
            options(actions=[{"type": "wait", "milliseconds": 60001}]),
            options(waitFor=30001, actions=[{"type": "wait", "milliseconds": 30000}]),
        ],
    ),
    (
        "actions",
        [
            options(actions=[{"type": "click", "selector": "a", "all": True}, {"type": "write", "text": ""}]),
            options(actions=[{"type": "press", "key": "Enter"}, {"type": "scroll"}, {"type": "scrape"}]),
            options(actions=[{"type": "scroll", "direction": "up", "selector": "#a"}]),
            options(
                actions=[{"type": "executeJavascript", "script": "1"}, {"type": "screenshot", "quality": 100}]
            ),
            options(actions=[{"type": "pdf", "format": "Ledger", "landscape": True, "scale": 0.5}]),
            options(actions=[{"type": "scroll"}] * 50),
        ],
        [
            options(actions=[{"type": "click"}]),
            options(actions=[{"type": "write"}]),
            options(actions=[{"type": "press"}]),
            options(actions=[{"type": "scroll", "direction": "left"}]),
            options(actions=[{"type": "executeJavascript"}]),
            options(actions=[{"type": "pdf", "format": "A7"}]),
            options(actions=[{"type": "hover"}]),
            options(actions=[{}]),
            options(actions=[{"type": "screenshot", "viewport": {"width": 5}}]),
            options(actions=[{"type": "scroll"}] * 51),
        ],
    ),
    (
        "location",
        [options(location={"country": "DE", "languages": ["de-DE"]})],
        [
            options(location={"country": "de"}),
            options(location={"country": "DEU"}),
            options(location={"city": "x"}),
        ],
    ),
    (
        "proxy",
        [options(proxy=good) for good in ("basic", "enhanced", "auto", "stealth")],
        [options(proxy="fast")],
    ),
    (
        "profile",
        [options(profile={"name": "x" * 128, "saveChanges": False})],
        [
            options(profile={"name": ""}),
            options(profile={"name": "x" * 129}),
            options(profile={"saveChanges": True}),
        ],
    ),
    (
        "redactPII",
        [
            options(redactPII=True),
            options(redactPII={"mode": "fast", "entities": ["EMAIL"], "replaceStyle": "mask"}),
            options(redactPII={}),
        ],
        [
            options(redactPII="yes"),
            options(redactPII={"mode": "x"}),
            options(redactPII={"entities": ["AGE"]}),
            options(redactPII={"replaceStyle": "x"}),
            options(redactPII={"extra": 1}),
        ],
    ),
    (
        "auditMetadata",
        [options(auditMetadata={"username": "x" * 1024})],
        [options(auditMetadata={}), options(auditMetadata={"username": "x" * 1025})],
    ),
    ("headers", [options(headers={"Cookie": "a=b"})], [options(headers={"Cookie": 1}), options(headers=[])]),
    (
        "tags",
        [options(includeTags=["main"], excludeTags=[".ad"])],
        [options(includeTags="main"), options(excludeTags=[1])],
    ),
    ("ages", [options(maxAge=0, minAge=1)], [options(maxAge=-1), options(minAge="1")]),
    ("unknown option", [], [options(only_main_content=True), options(onlymaincontent=True)]),
    (
        "threat protection",
        [
            threats(mode="normal", riskScoreThreshold=0),
            threats(riskScoreThreshold=100, failurePolicy="open"),
            threats(
                blacklist=["a.example", "*.b.example"] * 500,
                whitelist=["c.example"],
                blockedTlds=["zip", "xn--p1ai"],
            ),
            options(threatProtection={"mode": "off"}),
        ],
        [
            threats(mode="strict"),
            threats(riskScoreThreshold=-1),
            threats(riskScoreThreshold=101),
            threats(blacklist=["a.example"] * 1001),
            threats(blacklist=["https://a.example"]),
            threats(whitelist=["*.*"]),
            threats(blockedTlds=[".zip"]),
            threats(blockedTlds=["ZIP"]),
            threats(blockedTlds=["co.uk"]),
            threats(failurePolicy="ajar"),
            threats(x=1),
            threats(blacklist=["a.example/x"]),
            threats(blacklist=["a.example:1"]),
        ],
    ),
]

BASE = {"name": "m", "schedule": {"cron": "0 * * * *"}, "targets": [SCRAPE]}

MONITOR_ROWS: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("name", [{"name": "x"}, {"name": "x" * 256}], [{"name": ""}, {"name": "x" * 257}, {"name": None}]),
    (
        "schedule",
        [
            {"schedule": {"cron": "*/5 * * * *", "timezone": "Europe/Paris"}},
            {"schedule": {"text": "daily at 9:00 am"}},
        ],
        [
            {"schedule": bad}
            for bad in ({}, {"cron": "0 * * * *", "text": "hourly"}, {"timezone": "UTC"}, "hourly")
        ]
        + [
            {"schedule": {"cron": "0 * * * *", "timezone": bad}}
            for bad in ("Mars/Base", "", "Europe", "../etc")
        ]
        + [{"schedule": {"text": "hourly", "timezone": "Mars/Base"}}, {"schedule": {"cron": "* * * * *"}}]
        + [
            {"schedule": {"cron": "0 0 30 2 *"}},
            {"schedule": {"text": "twice a day"}},
            {"schedule": {"cron": "0 " * 65}},
        ],
    ),
    (
        "targets",
        [{"targets": [SCRAPE] * 50}],
        [{"targets": []}, {"targets": [SCRAPE] * 51}, {"targets": SCRAPE}],
    ),
    (
        "scrape target",
        [
            {"targets": [{**SCRAPE, "id": UUID}]},
            {"targets": [{"type": "scrape", "urls": ["weather.example/levels"]}]},
            {"targets": [{"type": "scrape", "url": "https://weather.example"}]},
            {"targets": [{**SCRAPE, "scrapeOptions": {"formats": ["nonsense"], "typo": 1}}]},
        ],
        [{"targets": [{"type": "scrape"}]}, {"targets": [{"type": "scrape", "urls": []}]}]
        + [
            {"targets": [{**SCRAPE, "id": "1"}]},
            {"targets": [{**SCRAPE, "queries": ["x"]}]},
            {"targets": [{"urls": []}]},
        ]
        + [
            {"targets": [{"type": "scrape", "urls": [bad]}]}
            for bad in ("ftp://a.example", "localhost", "https://", "a b")
        ],
    ),
    (
        "crawl target",
        [
            {
                "targets": [
                    {"type": "crawl", "url": "https://a.example", "crawlOptions": {"limit": 5, "anything": 1}}
                ]
            }
        ],
        [
            {"targets": [{"type": "crawl"}]},
            {"targets": [{"type": "crawl", "url": "https://a.example", "limit": 5}]},
            {"targets": [{"type": "crawl", "urls": ["https://a.example"]}]},
        ],
    ),
    (
        "search target",
        [
            {
                "targets": [
                    {**SEARCH, "queries": ["x" * 256] * 12, "searchWindow": window, "maxResults": 50}
                ],
                "goal": "g",
            }
            for window in ("5m", "15m", "1h", "6h", "24h", "7d")
        ]
        + [
            {"targets": [SEARCH], "judgeEnabled": False},
            {"targets": [{**SEARCH, "includeDomains": ["a.example"] * 50}], "goal": "g"},
        ],
        [
            {"targets": [{**SEARCH, **bad}], "goal": "g"}
            for bad in (
                {"queries": []},
                {"queries": ["x"] * 13},
                {"queries": ["x" * 257]},
                {"queries": [""]},
                {"searchWindow": "2h"},
                {"maxResults": 0},
                {"maxResults": 51},
                {"includeDomains": ["a.example"] * 51},
                {"includeDomains": ["a.example"], "excludeDomains": ["b.example"]},
                {"includeDomains": ["https://a.example"]},
            )
        ]
        + [
            {"targets": [SEARCH]},
            {"targets": [SEARCH], "goal": " "},
            {"targets": [SEARCH], "judgeEnabled": True},
        ],
    ),
    ("goal", [{"goal": "x" * 2000}, {"goal": None}], [{"goal": "x" * 2001}, {"goal": 1}]),
    ("judgeEnabled", [{"judgeEnabled": True}], [{"judgeEnabled": None}, {"judgeEnabled": "true"}]),
    (
        "retentionDays",
        [{"retentionDays": 1}, {"retentionDays": 365}],
        [{"retentionDays": 0}, {"retentionDays": 366}],
    ),
    (
        "notification",
        [
            {"notification": {}},
            {
                "notification": {
                    "email": {"enabled": True, "includeDiffs": True, "recipients": ["a@b.example"] * 25}
                }
            },
        ],
        [
            {"notification": {"email": {"recipients": ["a@b.example"] * 26}}},
            {"notification": {"email": {"recipients": ["a"]}}},
            {"notification": {"mail": {}}},
            {"notification": {"email": {"enabled": 1}}},
        ],
    ),
    (
        "webhook",
        [
            {
                "webhook": {
                    "url": "https://a.example/hook",
                    "headers": {"X-Key": "k"},
                    "metadata": {"a": "b"},
                    "events": ["monitor.page", "monitor.check.completed"],
                }
            }
        ]
        + [
            {"webhook": {"url": good}}
            for good in ("http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]:1/x")
        ],
        [
            {"webhook": {"url": bad}}
            for bad in (
                "http://[",
                "https://a.example:x",
                "http://a.example/x",
                "ftp://a.example",
                "a.example",
                "",
                "http://10.0.0.1/",
            )
        ]
        + [
            {"webhook": {"url": "https://a.example", **bad}}
            for bad in (
                {"events": ["page"]},
                {"headers": {"Host": "x"}},
                {"headers": {"x-firecrawl-signature": "x"}},
                {"headers": {"A": 1}},
                {"secret": "x"},
            )
        ]
        + [{"webhook": None}, {"webhook": {}}],
    ),
    ("labels", [{"origin": "api"}], [{"integration": "x"}, {"status": "paused"}, {"retention_days": 5}]),
]

UPDATE_ROWS: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("status", [{"status": "paused"}, {"status": "active"}], [{"status": "deleted"}, {"status": None}]),
    ("one field", [{"name": "x"}], [{}, {"origin": "api"}]),
    ("webhook", [{"webhook": {"url": "https://a.example"}}], [{"webhook": None}]),
    ("goal", [{"goal": None}, {"goal": ""}], [{"goal": "x" * 2001}]),
    ("no mandatory fields", [{"retentionDays": 5}], [{"targets": []}, {"schedule": {}}]),
]


def cases(operation: str, base: dict[str, Any], rows: Any) -> list[Any]:
    return [
        pytest.param(
            operation,
            {**base, **body},
            good,
            id=f"{operation}-{name}-{'takes' if good else 'refuses'}-{number}",
        )
        for name, *sides in rows
        for good, bodies in zip((True, False), sides, strict=True)
        for number, body in enumerate(bodies)
    ]


@pytest.mark.rule("caller-labels", "scrape-formats", "scrape-tags", "scrape-headers", "scrape-max-age")
@pytest.mark.rule("scrape-min-age", "scrape-wait-for", "scrape-timeout", "scrape-actions", "scrape-location")
@pytest.mark.rule("scrape-proxy", "scrape-pii", "scrape-profile", "scrape-audit", "scrape-waits-together")
@pytest.mark.rule("format-plain", "format-screenshot", "format-json", "format-question", "format-highlights")
@pytest.mark.rule("format-one-screenshot", "parser-pdf", "parser-empty", "action-wait", "action-screenshot")
@pytest.mark.rule("action-click", "action-write", "action-press", "action-scroll", "action-scrape")
@pytest.mark.rule("action-script", "action-pdf", "threat-mode", "threat-score", "threat-lists", "threat-tlds")
@pytest.mark.rule("threat-failure", "search-query", "search-limit", "search-sources", "search-categories")
@pytest.mark.rule("search-domains", "search-tbs", "search-safe", "search-timeout")
@pytest.mark.rule("search-ignore-invalid-urls", "search-highlights", "search-enterprise")
@pytest.mark.rule("search-scrape-options", "monitor-name", "monitor-targets", "monitor-goal", "monitor-judge")
@pytest.mark.rule("monitor-retention", "monitor-notification", "monitor-webhook", "monitor-search-goal")
@pytest.mark.rule("monitor-webhook-stays", "target-urls", "target-url", "target-crawl-options")
@pytest.mark.rule("target-queries", "target-search-window", "target-max-results", "target-domains")
@pytest.mark.rule("schedule-form", "schedule-timezone", "schedule-length", "schedule-interval")
@pytest.mark.rule("monitor-update", "monitor-update-empty", "webhook-url", "webhook-headers")
@pytest.mark.rule("webhook-events-monitor")
@pytest.mark.parametrize(
    ("operation", "body", "good"),
    cases("search", {"query": "river"}, SEARCH_ROWS)
    + cases("monitor.create", BASE, MONITOR_ROWS)
    + cases("monitor.update", {}, UPDATE_ROWS),
)
def test_rule(operation: str, body: dict[str, Any], good: bool) -> None:
    issues = check(operation, body)
    assert (not issues) is good, issues


@pytest.mark.rule("monitor-mandatory")
@pytest.mark.parametrize("missing", ["name", "schedule", "targets"])
def test_mandatory_fields_of_a_monitor(missing: str) -> None:
    issues = check("monitor.create", {name: value for name, value in BASE.items() if name != missing})
    assert [issue.code for issue in issues] == ["required"]
    assert missing in issues[0].message


@pytest.mark.rule("error-details")
@pytest.mark.parametrize(
    ("operation", "body", "path"),
    [
        ("search", {"query": "x", "limit": 0}, ("limit",)),
        (
            "search",
            {"query": "x", **options(parsers=["pdf", {"type": "pdf", "maxPages": 0}])},
            ("scrapeOptions", "parsers", 1, "maxPages"),
        ),
        ("search", {"query": "x", "excludeDomains": ["a.example", "b/"]}, ("excludeDomains", 1)),
        ("monitor.create", {**BASE, "schedule": {"cron": "61 * * * *"}}, ("schedule", "cron")),
        (
            "monitor.create",
            {**BASE, "targets": [SCRAPE, {"type": "scrape", "urls": ["x"]}]},
            ("targets", 1, "urls", 0),
        ),
        ("monitor.create", {**BASE, "webhook": {"url": "x"}}, ("webhook", "url")),
    ],
)
def test_issues_name_the_place(operation: str, body: dict[str, Any], path: tuple[str | int, ...]) -> None:
    assert [issue.path for issue in check(operation, body)] == [path]


@pytest.mark.parametrize("body", [None, 5, "x", [], [{}]])
@pytest.mark.parametrize("operation", ["search", "monitor.create", "monitor.update"])
def test_a_body_is_an_object(operation: str, body: Any) -> None:
    assert [issue.code for issue in check(operation, body)] == ["type"]


def test_control_api_validates_without_doing(sandbox, api) -> None:
    assert sandbox.control.validate("search", {"query": "x"}) == []
    assert sandbox.control.validate("search", {"query": "x", "limit": 0})[0]["path"] == ["limit"]
    assert sandbox.control.requests() == []
