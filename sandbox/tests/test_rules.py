# SPDX-License-Identifier: Apache-2.0
"""The sandbox's rules about request bodies: fields that depend on each other, formats of text, and where rules apply.

The type and the limit of a single field are no subject here. tests/unit/test_models_and_sandbox.py compares each of
them with the client's model. Patterns of text and fields that only the sandbox has are below.
"""

from __future__ import annotations

from typing import Any

import pytest

from webdata_sandbox.reference.rules import check

Body = dict[str, Any]

UUID = "0b0e3e1c-7d8a-4a53-9f7e-2f1f9a3b7c11"
PAGE = "https://weather.example/levels"
HOOK = "https://hooks.example/in"
SCRAPE = {"type": "scrape", "urls": [PAGE]}
SEARCH = {"type": "search", "queries": ["river"]}
WAIT_FOR_ELEMENT = {"type": "wait", "selector": "#a"}  # counts as one second

BASES: dict[str, Body] = {
    "search": {"query": "river"},
    "search.developer": {"query": "river"},
    "search.research.papers": {"query": "river"},
    "search.research.paper": {},
    "search.feedback": {"rating": "good"},
    "feedback": {"endpoint": "scrape", "jobId": UUID, "rating": "good"},
    "team.threat-protection": {"mode": "normal"},
    "monitor.create": {"name": "m", "schedule": {"cron": "0 * * * *"}, "targets": [SCRAPE]},
    "monitor.update": {},
    "scrapeOptions": {},
    "scrape": {"url": PAGE},
    "batch.scrape": {"urls": [PAGE]},
    "crawl": {"url": PAGE},
    "crawl.params": {"url": PAGE, "prompt": "only /blog"},
    "map": {"url": PAGE},
    "parse": {},
    "parse.reference": {"uploadRef": "x"},
    "extract": {"urls": [PAGE]},
    "agent": {"prompt": "levels"},
    "interact": {},
    "interact.execute": {"code": "exit 0"},
    "scrape.interact": {"code": "exit 0"},
}

# Rule: operation, bodies that it accepts, bodies that it refuses, each with the operation's base.
RULES: dict[str, tuple[str, list[Body], list[Body]]] = {
    "query": ("search", [{"query": " x "}], [{"query": " "}]),
    "sources of one form": (
        "search",
        [{"sources": ["web", "news"]}, {"sources": [{"type": "web", "tbs": "qdr:d", "location": "Berlin"}]}],
        [{"sources": ["web", {"type": "news"}]}, {"sources": [{"type": "news", "tbs": "qdr:d"}]}],
    ),
    "categories that go together": (
        "search",
        [
            {"categories": ["gov", "pdf"]},
            {"categories": ["developer"]},
            {"categories": ["developer", "developer"]},
            {"categories": []},
        ],
        [
            {"categories": ["pdf", {"type": "pdf"}]},
            {"categories": ["developer", "gov"]},
            {"categories": [{"type": "developer"}, {"type": "pdf"}]},
        ],
    ),
    "domains": (
        "search",
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
    "tbs": (
        "search",
        [
            {"tbs": text}
            for text in (
                *("qdr:h", "qdr:d", "qdr:w", "qdr:m", "qdr:y", "sbd:1", "sbd:1,qdr:w"),
                "cdr:1,cd_min:02/29/2024,cd_max:02/29/2024",
                "cdr:1,cd_min:01/01/2024,cd_max:12/31/2024,sbd:1",
                "cdr:1,cd_min:1/1/2024,cd_max:01/2/2024",
            )
        ],
        [
            {"tbs": text}
            for text in (
                *("", "qdr", "qdr:", "qdr:q", "sbd:0", "cdr:1", "cdr:1,cd_min:01/01/2024", "x:1"),
                "cdr:1,cd_min:02/30/2024,cd_max:03/01/2024",
                "cdr:1,cd_min:03/02/2024,cd_max:03/01/2024",
                "cdr:1,cd_min:2024-01-01,cd_max:2024-01-02",
                "cdr:0,cd_min:01/01/2024,cd_max:01/02/2024",
                "cdr:1,cd_min:1/1/24,cd_max:01/02/2024",
                "qdr:d,qdr:w",
                "qdr:d,cdr:1,cd_min:01/01/2024,cd_max:01/02/2024",
            )
        ]
        + [{"sources": [{"type": "web", "tbs": "qdr:x"}]}],
    ),
    "threat lists": (
        "team.threat-protection",
        [
            {"blacklist": ["a.example", "*.b.example"], "whitelist": ["c.example"]},
            {"blockedTlds": ["zip", "xn--p1ai"]},
        ],
        [{"blacklist": [bad]} for bad in ("https://a.example", "a.example/x", "a.example:1", "example")]
        + [{"whitelist": ["*.*"]}]
        + [{"blockedTlds": [bad]} for bad in (".zip", "ZIP", "co.uk")],
    ),
    "formats that go together": (
        "scrape",
        [{"formats": ["screenshot", "markdown", {"type": "changeTracking"}]}],
        [
            {"formats": ["screenshot", "screenshot"]},
            {"formats": ["screenshot", {"type": "screenshot", "fullPage": True}]},
            {"formats": ["changeTracking"]},
            {"formats": ["html", {"type": "changeTracking"}]},
        ],
    ),
    "schemas of formats": (
        "scrape",
        [
            {"formats": [{"type": "json", "schema": schema}]}
            for schema in (
                {},
                {"type": "object"},
                {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
                {"maximum": 5, "exclusiveMaximum": True},  # draft 4
            )
        ],
        [
            {"formats": [{"type": "json", "schema": {"type": "object", "additionalProperties": True}}]},
            {"formats": [{"type": "json", "schema": {"type": "objekt"}}]},
            {"formats": ["markdown", {"type": "changeTracking", "schema": {"type": "objekt"}}]},
        ],
    ),
    "waits": (
        "scrape",
        [
            {"waitFor": 60_000},
            {"waitFor": 500, "timeout": 1000},
            {"actions": [{"type": "wait", "milliseconds": 60_000}]},
            {"waitFor": 29_000, "actions": [{"type": "wait", "milliseconds": 30_000}, WAIT_FOR_ELEMENT]},
        ],
        [
            {"waitFor": 501, "timeout": 1000},
            {"actions": [{"type": "wait", "milliseconds": 60_001}]},
            {"waitFor": 30_001, "actions": [{"type": "wait", "milliseconds": 30_000}]},
            {"waitFor": 29_001, "actions": [{"type": "wait", "milliseconds": 30_000}, WAIT_FOR_ELEMENT]},
        ],
    ),
    "zero data retention": (
        "scrape",
        [
            {"zeroDataRetention": True},
            {"zeroDataRetention": False, "formats": ["screenshot"], "onlyCleanContent": True},
        ],
        [
            {"zeroDataRetention": True, "formats": ["screenshot"]},
            {"zeroDataRetention": True, "onlyCleanContent": True},
        ],
    ),
    "addresses": (
        "scrape",
        [{"url": url} for url in ("weather.example", "http://10.1.2.3/x", "https://weather.example/a?b=c#d")],
        [{"url": url} for url in ("ftp://weather.example", "intranet", "https://", "localhost", "a b")],
    ),
    "patterns": (
        "crawl",
        [{"includePaths": ["^/a/.*$", "b"], "excludePaths": []}, {"excludePaths": [r"/(?:a)\\1", r"\(?!a"]}],
        [{"includePaths": ["("]}, {"excludePaths": ["a", "["]}]
        + [{"excludePaths": [text]} for text in ("/(?!a)", "(?=a)", "(?<!a)b", "a(?<=a)", r"(a)\1")],
    ),
    "webhooks": (
        "crawl",
        [{"webhook": url} for url in (HOOK, "http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]:1/x")]
        + [{"webhook": {"url": HOOK, "headers": {"X-Key": "k"}, "metadata": {"run": "r"}, "events": []}}],
        [
            {"webhook": url}
            for url in (
                *("no url", "http://[", "https://a.example:x", "ftp://a.example", "https://", ""),
                *("http://hooks.example/in", "http://10.0.0.1/"),
            )
        ]
        + [
            {"webhook": {"url": HOOK, "headers": {name: "x"}}}
            for name in (
                *("Host", "Content-Type", "Content-Length", "Connection"),
                *("transfer-encoding", "X-Firecrawl-Signature"),
            )
        ],
    ),
    "source of an extract": (
        "extract",
        [{"urls": [], "prompt": "x"}, {"prompt": ""}, {"urls": ["https://a.example/*"]}],
        [{"urls": []}, {"urls": [], "prompt": " "}],
    ),
    "schema of an extract": (
        "extract",
        [{"schema": {}}, {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}],
        [{"schema": {"type": "objekt"}}, {"schema": {"properties": {"a": {"type": 5}}}}],
    ),
    "an agent": (
        "agent",
        [
            {"prompt": "x"},
            {"urls": ["a.example"]},
            {"exchange": {"requireApproval": True}, "mode": "chat"},
            {"exchange": {"approve": {"approvalId": UUID}}, "threadId": UUID},
        ],
        [
            {"prompt": " "},
            {"urls": ["a.example", "nonsense"]},
            {"schema": {"type": "objekt"}},
            {"exchange": {"requireApproval": True}},
            {"exchange": {"requireApproval": True}, "mode": "extract"},
            {"exchange": {"decline": {"approvalId": UUID}}},
            {
                "exchange": {"approve": {"approvalId": UUID}, "decline": {"approvalId": UUID}},
                "threadId": UUID,
            },
        ],
    ),
    "code or a prompt": ("scrape.interact", [{}, {"prompt": "x"}], []),
    "a developer search": (
        "search.developer",
        [
            {"types": ["doc"], "sources": ["a"]},
            {"types": ["issue"], "repos": ["a/b"]},
            {"types": ["doc", "issue"], "repos": ["a/b"], "sources": ["a"]},
            {"repos": ["a"], "sources": ["a"]},
        ],
        [{"types": ["doc"], "repos": ["a/b"]}, {"types": ["issue"], "sources": ["a"]}],
    ),
    "passages of a paper": ("search.research.paper", [{"query": "q", "k": 5}], [{"k": 5}]),
    "substance of feedback on a search": (
        "search.feedback",
        [
            {"valuableSources": [{"url": PAGE}]},
            {"rating": "partial", "missingContent": [{"topic": "x"}]},
            {"rating": "bad", "querySuggestions": "x"},
        ],
        [
            {"querySuggestions": "x"},
            {"rating": "partial", "querySuggestions": "x"},
            {"rating": "bad", "valuableSources": [{"url": PAGE}]},
            {"rating": "partial", "missingContent": [{"topic": " "}]},
        ],
    ),
    "substance of feedback": (
        "feedback",
        [
            {"issues": ["slow"]},
            {"note": "n"},
            {"pageNumbers": [1]},
            {"url": PAGE, "metadata": {"a": "ä" * 4092}},
        ],
        [
            {},
            {"tags": ["a"]},
            {"note": ""},
            {"missingContent": [{"topic": " "}]},
            {"note": "n", "metadata": {"a": "ä" * 4093}},
        ],
    ),
    "schedules": (
        "monitor.create",
        [
            {"schedule": {"cron": "*/5 * * * *", "timezone": "Europe/Paris"}},
            {"schedule": {"text": "daily at 9:00 am"}},
        ],
        [
            {"schedule": bad}
            for bad in (
                {},
                {"cron": "0 * * * *", "text": "hourly"},
                {"timezone": "UTC"},
                *({"cron": "0 * * * *", "timezone": zone} for zone in ("Mars/Base", "", "Europe", "../etc")),
                {"text": "hourly", "timezone": "Mars/Base"},
                {"text": "twice a day"},
                {"cron": "* * * * *"},
                {"cron": "0 0 30 2 *"},
            )
        ],
    ),
    "scrape targets": (
        "monitor.create",
        [
            {"targets": [{**SCRAPE, "id": UUID}]},
            {"targets": [{"type": "scrape", "urls": ["weather.example/levels"]}]},
            {"targets": [{"type": "scrape", "url": PAGE}]},
            {"targets": [{**SCRAPE, "scrapeOptions": {"formats": ["nonsense"], "typo": 1}}]},
        ],
        [
            {"targets": [{"type": "scrape"}]},
            {"targets": [{**SCRAPE, "url": PAGE}]},
            {"targets": [{**SCRAPE, "id": "1"}]},
            {"targets": [{"type": "scrape", "urls": [PAGE, "localhost"]}]},
            {"targets": [{"type": "scrape", "url": "ftp://a.example"}]},
        ],
    ),
    "crawl targets": (
        "monitor.create",
        [{"targets": [{"type": "crawl", "url": PAGE, "crawlOptions": {"limit": "many", "anything": 1}}]}],
        [
            {"targets": [{"type": "crawl", "url": "intranet"}]},
            {"targets": [{"type": "crawl", "urls": [PAGE]}]},
        ],
    ),
    "search targets": (
        "monitor.create",
        [
            {"targets": [SEARCH], "goal": "g"},
            {"targets": [SEARCH], "judgeEnabled": False},
            {"targets": [{**SEARCH, "scrapeOptions": {"formats": []}}], "goal": "g"},
        ],
        [
            {"targets": [{**SEARCH, **bad}], "goal": "g"}
            for bad in (
                {"includeDomains": ["a.example"], "excludeDomains": ["b.example"]},
                {"includeDomains": ["https://a.example"]},
            )
        ]
        + [
            {"targets": [SEARCH]},
            {"targets": [SCRAPE, SEARCH], "goal": " "},
            {"targets": [SEARCH], "judgeEnabled": True},
        ],
    ),
    "an update": (
        "monitor.update",
        [
            *({"name": "x"}, {"status": "paused"}, {"goal": None}, {"goal": ""}, {"targets": [SEARCH]}),
            {"name": "x", "origin": "api"},
        ],
        [{}, {"origin": "api"}, {"schedule": {}}, {"webhook": None}],
    ),
    "fields of a search that only the sandbox has": (
        "search",
        [{"lang": "de", "filter": "0"}],
        [{"lang": 5}, {"filter": 5}],
    ),
    "fields of an upload that have no use": (
        "parse",
        [{"waitFor": 0, "mobile": False, "actions": [], "fastMode": True}],
        [{"waitFor": 1}, {"mobile": True}, {"actions": [WAIT_FOR_ELEMENT]}, {"fastMode": "yes"}],
    ),
    "fields of an extract that only the sandbox has": (
        "extract",
        [{"limit": 1, "timeout": 1}],
        [{"limit": 0}, {"timeout": 0}, {"limit": "1"}],
    ),
    "location of a session": (
        "interact",
        [{"location": {"country": "GB"}}],
        [{"location": {"country": "gb"}}, {"location": {"city": "x"}}],
    ),
    "session of a scrape": (
        "scrape.interact",
        [{"existingSessionId": UUID}],
        [{"existingSessionId": "x"}, {"existingSessionId": UUID + "0"}],
    ),
    "labels of a preview": (
        "crawl.params",
        [{"origin": "x", "integration": None}],
        [{"origin": 5}, {"integration": 5}],
    ),
    "labels of code": ("interact.execute", [{"origin": "x"}], [{"origin": 5}, {"integration": "x"}]),
    "labels of a monitor": ("monitor.create", [{"origin": "x"}], [{"origin": 5}, {"integration": "x"}]),
    "countries": (
        "scrape",
        [{"location": {"country": "GB"}}],
        [{"location": {"country": bad}} for bad in ("gb", "GBR", "G", "GB\n")],
    ),
    "recipients": (
        "monitor.create",
        [{"notification": {"email": {"recipients": ["a+b@c.example"]}}}],
        [{"notification": {"email": {"recipients": [bad]}}} for bad in ("a", "a@b", "a b@c.example")],
    ),
    "days": (
        "search.research.papers",
        [{"from": "2026-01-31"}],
        [{"from": "2026-1-31"}, {"to": "2026-01-311"}],
    ),
    "issues": ("feedback", [{"issues": ["a_b-9"]}], [{"issues": [bad]} for bad in ("-a", "A", "a b")]),
    "addresses of feedback": (
        "feedback",
        [{"url": "http://a"}],
        [{"note": "n", "url": bad} for bad in ("a.example", "https://", "ftp://a.example", "https:///x")],
    ),
    "names of version 1": (
        "crawl",
        [],
        [{"maxDepth": 2}, {"allowBackwardCrawling": True}, {"ignoreSitemap": True}],
    ),
}


@pytest.mark.rule("caller-labels", "urls", "threat-lists", "threat-tlds", "search-query", "search-sources")
@pytest.mark.rule("search-categories", "search-domains", "search-tbs", "scrape-wait-for", "scrape-actions")
@pytest.mark.rule("scrape-waits-together", "action-wait", "format-json", "format-one-screenshot")
@pytest.mark.rule("format-change-tracking", "zdr-excludes", "scrape-url", "crawl-paths", "crawl-version-1")
@pytest.mark.rule("parse-unsupported")
@pytest.mark.rule("agent-prompt", "agent-urls", "agent-schema", "agent-server-fields", "session-further")
@pytest.mark.rule("scrape-interact", "developer-scope", "research-paper", "schedule-form")
@pytest.mark.rule("schedule-timezone", "schedule-interval", "target-urls", "target-url", "target-domains")
@pytest.mark.rule("target-crawl-options", "target-options-unchecked", "monitor-search-goal")
@pytest.mark.rule("monitor-update", "monitor-update-empty", "monitor-webhook-stays", "webhook-url")
@pytest.mark.rule("webhook-headers", "webhook-short-form")
@pytest.mark.parametrize("rule", RULES)
def test_both_sides_of_a_rule(rule: str) -> None:
    operation, accepted, refused = RULES[rule]
    base = BASES[operation]
    assert [(body, found) for body in accepted if (found := check(operation, {**base, **body}))] == []
    assert [body for body in refused if not check(operation, {**base, **body})] == []


Path = tuple[str | int, ...]

BLACKLIST = {"threatProtection": {"blacklist": ["https://a.example"]}}
NO_HOOK: Body = {"webhook": {"url": "http://a.example"}}
IN_BLACKLIST: Path = ("threatProtection", "blacklist", 0)
AT_HOOK: Path = ("webhook", "url")

# One body for each rule that an operation shares with others, and the field that breaks it.
APPLIES: dict[str, list[tuple[Body, Path]]] = {
    "search": [
        (BLACKLIST, IN_BLACKLIST),
        ({"scrapeOptions": BLACKLIST}, ("scrapeOptions", *IN_BLACKLIST)),
        ({"scrapeOptions": {"waitFor": 501, "timeout": 1000}}, ("scrapeOptions", "waitFor")),
        (
            {"scrapeOptions": {"zeroDataRetention": True, "formats": ["screenshot"]}},
            ("scrapeOptions", "formats"),
        ),
        (
            {"scrapeOptions": {"formats": ["markdown", "changeTracking"]}},
            ("scrapeOptions", "formats", 1),
        ),
        ({"excludeDomains": ["a.example", "b/"]}, ("excludeDomains", 1)),
        ({"sources": [{"type": "web"}, {"type": "web", "tbs": "x"}]}, ("sources", 1, "tbs")),
    ],
    "scrapeOptions": [({"waitFor": 501, "timeout": 1000}, ("waitFor",))],
    "scrape": [(BLACKLIST, IN_BLACKLIST)],
    "batch.scrape": [
        (BLACKLIST, IN_BLACKLIST),
        ({"waitFor": 501, "timeout": 1000}, ("waitFor",)),
        ({"zeroDataRetention": True, "formats": ["screenshot"]}, ("formats",)),
        (NO_HOOK, AT_HOOK),
    ],
    "crawl": [
        ({"url": "intranet"}, ("url",)),
        ({"scrapeOptions": BLACKLIST}, ("scrapeOptions", *IN_BLACKLIST)),
        ({"scrapeOptions": {"waitFor": 501, "timeout": 1000}}, ("scrapeOptions", "waitFor")),
        (
            {"zeroDataRetention": True, "scrapeOptions": {"onlyCleanContent": True}},
            ("scrapeOptions", "onlyCleanContent"),
        ),
        ({"excludePaths": ["a", "("]}, ("excludePaths", 1)),
        (NO_HOOK, AT_HOOK),
    ],
    "crawl.params": [({"url": "intranet"}, ("url",))],
    "map": [
        ({"url": "intranet"}, ("url",)),
        ({"includePaths": ["("]}, ("includePaths", 0)),
        (BLACKLIST, IN_BLACKLIST),
    ],
    "parse": [({"formats": [{"type": "json", "schema": {"type": "x"}}]}, ("formats", 0, "schema"))],
    "parse.reference": [({"formats": [{"type": "json", "schema": {"type": "x"}}]}, ("formats", 0, "schema"))],
    "extract": [
        (BLACKLIST, IN_BLACKLIST),
        ({"scrapeOptions": {"waitFor": 501, "timeout": 1000}}, ("scrapeOptions", "waitFor")),
        (NO_HOOK, AT_HOOK),
    ],
    "agent": [(BLACKLIST, IN_BLACKLIST), ({"urls": [PAGE, "x"]}, ("urls", 1)), (NO_HOOK, AT_HOOK)],
    "monitor.create": [
        ({"schedule": {"cron": "61 * * * *"}}, ("schedule", "cron")),
        ({"targets": [SCRAPE, {"type": "scrape", "urls": ["x"]}]}, ("targets", 1, "urls", 0)),
        (NO_HOOK, AT_HOOK),
    ],
    "monitor.update": [
        ({"schedule": {"text": "x"}}, ("schedule", "text")),
        ({"targets": [{**SEARCH, "includeDomains": ["a/"]}]}, ("targets", 0, "includeDomains", 0)),
        ({"webhook": "http://a.example"}, AT_HOOK),
    ],
}


@pytest.mark.rule("error-details", "map-url", "map-further", "crawl-url", "crawl-preview", "crawl-webhook")
@pytest.mark.rule("crawl-scrape-options", "crawl-zero-data-retention", "batch-webhook", "batch-options")
@pytest.mark.rule("search-scrape-options", "scrape-zero-data-retention", "monitor-webhook")
@pytest.mark.parametrize("operation", APPLIES)
def test_a_shared_rule_applies_and_names_the_field(operation: str) -> None:
    found = [
        [issue.path for issue in check(operation, {**BASES[operation], **body})]
        for body, _ in APPLIES[operation]
    ]
    assert found == [[path] for _, path in APPLIES[operation]]


@pytest.mark.rule("error-details", "monitor-mandatory")
@pytest.mark.parametrize(
    ("operation", "body", "path", "code"),
    [
        ("search", {"query": "x", "limit": 0}, ("limit",), "too_small"),
        (
            "search",
            {"query": "x", "scrapeOptions": {"parsers": ["pdf", {"type": "pdf", "maxPages": 0}]}},
            ("scrapeOptions", "parsers", 1, "maxPages"),
            "too_small",
        ),
        ("scrape", {"url": PAGE, "nonsense": 1}, (), "unrecognized_keys"),
        ("monitor.create", {"name": "m", "targets": [SCRAPE]}, ("schedule",), "invalid_type"),
        ("scrape.interact", {}, (), "custom"),
        ("search", None, (), "invalid_type"),
        ("monitor.update", [{}], (), "invalid_type"),
    ],
)
def test_what_an_issue_says(operation: str, body: Any, path: Path, code: str) -> None:
    assert [(issue.path, issue.code) for issue in check(operation, body)] == [(path, code)]


def test_control_api_validates_without_doing(sandbox, api) -> None:
    assert sandbox.control.validate("search", {"query": "x"}) == []
    assert sandbox.control.validate("search", {"query": "x", "limit": 0})[0]["path"] == ["limit"]
    assert sandbox.control.requests() == []


@pytest.mark.parametrize("operation", ["scrape", "batch.scrape", "crawl", "crawl.params-preview", "map"])
def test_the_routes_hold_the_rules(sandbox, api, operation: str) -> None:
    body = {"url": PAGE, "urls": [PAGE], "prompt": "x", "nonsense": 1}
    answer = api.http.post(f"/v2/{operation.replace('.', '/')}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")
    assert "nonsense" in answer.json()["error"] + str(answer.json().get("details"))
    assert api.balance() == 100_000
    assert sandbox.control.jobs("crawl") == sandbox.control.jobs("batch_scrape") == []
