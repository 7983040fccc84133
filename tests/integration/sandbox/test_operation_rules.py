"""Both sides of every rule of the bodies of parse, extract, agent and interact."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.sandbox.reference.rules import check

UUID = "0b0e3e1c-7d8a-4a53-9f7e-2f1f9a3b7c11"
URLS = ["https://weather.example/levels"]
JOB_HOOK = "https://hooks.example/in"

BASES: dict[str, dict[str, Any]] = {
    "parse": {},
    "extract": {"urls": URLS},
    "agent": {"prompt": "levels"},
    "interact": {},
    "interact.execute": {"code": "exit 0"},
    "scrape.interact": {"code": "exit 0"},
}

Row = tuple[str, str, list[dict[str, Any]], list[dict[str, Any]]]


def booleans(operation: str, *names: str) -> list[Row]:
    return [
        (operation, name, [{name: True}, {name: False}], [{name: "yes"}, {name: 1}, {name: None}])
        for name in names
    ]


def webhooks(operation: str, *events: str) -> list[Row]:
    def hook(**fields: Any) -> dict[str, Any]:
        return {"webhook": {"url": JOB_HOOK, **fields}}

    return [
        (
            operation,
            "webhook",
            [
                {"webhook": JOB_HOOK},
                {"webhook": "http://127.0.0.1:9/x"},
                hook(events=list(events), headers={"X-Key": "k"}, metadata={"run": "r"}),
                hook(events=[]),
            ],
            [
                {"webhook": "http://hooks.example/in"},
                {"webhook": "no url"},
                {"webhook": {}},
                {"webhook": 5},
                hook(events=[f"{operation}.started"]),
                hook(events=["page"]),
                hook(headers={"X-Firecrawl-Signature": "x"}),
                hook(headers={"Host": "x"}),
                hook(headers={"X-Key": 5}),
                hook(secret="s"),
            ],
        )
    ]


SHARED: list[Row] = [
    row
    for operation in ("extract", "agent", "parse")
    for row in (
        (operation, "unknown key", [{}], [{"nonsense": 1}]),
        (operation, "origin", [{"origin": "x"}], [{"origin": 5}]),
        (operation, "integration", [{"integration": None}, {"integration": "x"}], [{"integration": 5}]),
    )
]

PARSE: list[Row] = [
    (
        "parse",
        "formats",
        [
            {"formats": ["markdown", "summary", "html", "rawHtml", "links", "images", "json"]},
            {"formats": [{"type": "json", "prompt": "x" * 10_000, "schema": {"type": "object"}}, "markdown"]},
            {"formats": []},
        ],
        [
            {"formats": ["audio"]},
            {"formats": [{"type": "json", "prompt": "x" * 10_001}]},
            {"formats": [{}]},
            {"formats": "markdown"},
            {"formats": [{"type": "question", "question": "?"}]},
        ],
    ),
    (
        "parse",
        "timeout",
        [{"timeout": 1}, {"timeout": 300_000}],
        [{"timeout": 0}, {"timeout": 300_001}, {"timeout": "5"}, {"timeout": 1.5}],
    ),
    (
        "parse",
        "proxy",
        [{"proxy": "basic"}, {"proxy": "auto"}],
        [{"proxy": "enhanced"}, {"proxy": "stealth"}],
    ),
    (
        "parse",
        "parsers",
        [{"parsers": []}, {"parsers": ["pdf"]}, {"parsers": [{"type": "pdf", "maxPages": 1, "pages": True}]}],
        [
            {"parsers": [{"type": "pdf", "maxPages": 0}]},
            {"parsers": [{"type": "pdf", "x": 1}]},
            {"parsers": [5]},
        ],
    ),
    ("parse", "headers", [{"headers": {"a": "b"}}], [{"headers": {"a": 1}}, {"headers": []}]),
    (
        "parse",
        "tags",
        [{"includeTags": ["p"], "excludeTags": []}],
        [{"includeTags": "p"}, {"excludeTags": [1]}],
    ),
    (
        "parse",
        "redactPII",
        [{"redactPII": True}, {"redactPII": {"mode": "fast", "entities": ["EMAIL"]}}],
        [{"redactPII": {"mode": "slow"}}, {"redactPII": "yes"}],
    ),
    (
        "parse",
        "auditMetadata",
        [{"auditMetadata": {"username": "x" * 1024}}],
        [{"auditMetadata": {"username": "x" * 1025}}, {"auditMetadata": {}}],
    ),
    (
        "parse",
        "what a file has no use for",
        [{"waitFor": 0, "mobile": False, "actions": []}],
        [
            {"waitFor": 1},
            {"mobile": True},
            {"actions": [{"type": "wait", "milliseconds": 1}]},
            {"maxAge": 0},
            {"lockdown": True},
            {"storeInCache": True},
        ],
    ),
    *booleans(
        "parse",
        *(
            "onlyMainContent",
            "skipTlsVerification",
            "removeBase64Images",
            "blockAds",
            "zeroDataRetention",
            "fastMode",
        ),
    ),
]

EXTRACT: list[Row] = [
    (
        "extract",
        "urls",
        [{"urls": URLS * 10}, {"urls": [], "prompt": "x"}, {"urls": ["https://a.example/*"]}],
        [{"urls": URLS * 11}, {"urls": []}, {"urls": "x"}, {"urls": [5]}],
    ),
    (
        "extract",
        "prompt",
        [{"prompt": "x" * 10_000}, {"prompt": ""}, {"systemPrompt": "x" * 10_000}],
        [
            {"prompt": "x" * 10_001},
            {"prompt": 5},
            {"urls": [], "prompt": " "},
            {"systemPrompt": "x" * 10_001},
        ],
    ),
    (
        "extract",
        "schema",
        [{"schema": {}}, {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}],
        [{"schema": []}, {"schema": {"type": "objekt"}}, {"schema": {"properties": {"a": {"type": 5}}}}],
    ),
    (
        "extract",
        "scrapeOptions",
        [{"scrapeOptions": {"formats": ["markdown"], "timeout": 1000}}],
        [{"scrapeOptions": {"timeout": 999}}, {"scrapeOptions": {"timeout": 1000, "waitFor": 501}}],
    ),
    (
        "extract",
        "threatProtection",
        [{"threatProtection": {"mode": "normal", "blacklist": ["*.a.example"]}}],
        [{"threatProtection": {"mode": "on"}}, {"threatProtection": {"blacklist": ["https://a.example"]}}],
    ),
    ("extract", "agent", [{"agent": {"model": "FIRE-1"}}], [{"agent": {"model": "FIRE-2"}}]),
    ("extract", "limit", [{"limit": 1, "timeout": 1}], [{"limit": 0}, {"timeout": 0}]),
    *webhooks("extract", "started", "completed", "failed"),
    (
        "extract",
        "webhook events of agents",
        [],
        [{"webhook": {"url": JOB_HOOK, "events": [name]}} for name in ("action", "cancelled")],
    ),
    *booleans(
        "extract",
        *("enableWebSearch", "ignoreSitemap", "includeSubdomains", "showSources", "ignoreInvalidURLs"),
        "allowExternalLinks",
    ),
]

AGENT: list[Row] = [
    ("agent", "prompt", [{"prompt": "x"}, {"prompt": "x" * 10_000}], [{"prompt": ""}, {"prompt": " "}]),
    ("agent", "prompt length", [], [{"prompt": "x" * 10_001}, {"prompt": None}]),
    (
        "agent",
        "urls",
        [{"urls": URLS}, {"urls": ["a.example"]}, {"urls": []}],
        [{"urls": ["nonsense"]}, {"urls": "x"}],
    ),
    (
        "agent",
        "schema",
        [{"schema": {"type": "object"}}],
        [{"schema": {"type": "objekt"}}, {"schema": "object"}],
    ),
    (
        "agent",
        "maxCredits",
        [{"maxCredits": 1}, {"maxCredits": 2500.5}, {"maxCredits": 10_000}],
        [{"maxCredits": 0}, {"maxCredits": -1}, {"maxCredits": "5"}],
    ),
    (
        "agent",
        "model",
        [{"model": name} for name in ("spark-2", "spark-1-mini", "spark-1-pro")],
        [{"model": "spark-3"}, {"model": None}],
    ),
    ("agent", "effort", [{"effort": name} for name in ("low", "medium", "high")], [{"effort": "most"}]),
    ("agent", "mode", [{"mode": "extract"}, {"mode": "chat"}], [{"mode": "other"}]),
    ("agent", "threadId", [{"threadId": UUID}], [{"threadId": "5"}]),
    (
        "agent",
        "location",
        [{"location": {"country": "DE"}}],
        [{"location": {"country": "de"}}, {"location": "DE"}],
    ),
    ("agent", "auditMetadata", [{"auditMetadata": {"username": "x"}}], [{"auditMetadata": {}}]),
    (
        "agent",
        "threatProtection",
        [{"threatProtection": {}}],
        [{"threatProtection": {"riskScoreThreshold": 101}}],
    ),
    *webhooks("agent", "started", "action", "completed", "failed", "cancelled"),
    *booleans("agent", "strictConstrainToURLs", "zeroDataRetention"),
]

LIFETIMES: list[Row] = [
    row
    for operation in ("interact", "scrape.interact")
    for row in (
        (
            operation,
            "ttl",
            [{"ttl": 30}, {"ttl": 3600}],
            [{"ttl": 29}, {"ttl": 3601}, {"ttl": "60"}, {"ttl": 60.5}],
        ),
        (
            operation,
            "activityTtl",
            [{"activityTtl": 10}, {"activityTtl": 3600}],
            [{"activityTtl": 9}, {"activityTtl": 3601}],
        ),
        (operation, "unknown key", [{}], [{"nonsense": 1}]),
    )
]
CODE: list[Row] = [
    row
    for operation in ("interact.execute", "scrape.interact")
    for row in (
        (
            operation,
            "code",
            [{"code": "x"}, {"code": "ä" * 100_000}],
            [{"code": ""}, {"code": "x" * 100_001}, {"code": 5}],
        ),
        (
            operation,
            "language",
            [{"language": name} for name in ("python", "node", "bash")],
            [{"language": "ruby"}, {"language": None}],
        ),
        (
            operation,
            "timeout",
            [{"timeout": 1}, {"timeout": 300}],
            [{"timeout": 0}, {"timeout": 301}, {"timeout": 1.5}],
        ),
    )
]
INTERACT: list[Row] = [
    (
        "interact",
        "profile",
        [{"profile": {"name": "x" * 128}}, {"profile": {"name": "p", "saveChanges": False}}],
        [{"profile": {"name": ""}}, {"profile": {"name": "x" * 129}}, {"profile": {}}, {"profile": "p"}],
    ),
    ("interact", "location", [{"location": {"country": "GB"}}], [{"location": {"country": "gb"}}]),
    *booleans("interact", "streamWebView", "blockAds", "recordSession"),
    ("interact.execute", "prompt", [], [{"prompt": "x"}]),
    (
        "scrape.interact",
        "prompt",
        [{"prompt": "x"}, {"prompt": "x" * 10_000}],
        [{"prompt": ""}, {"prompt": "x" * 10_001}],
    ),
    ("scrape.interact", "existingSessionId", [{"existingSessionId": UUID}], [{"existingSessionId": "x"}]),
]

CASES = [
    pytest.param(operation, body, good, id=f"{operation}-{name}-{'takes' if good else 'refuses'}-{number}")
    for operation, name, taken, refused in [*SHARED, *PARSE, *EXTRACT, *AGENT, *LIFETIMES, *CODE, *INTERACT]
    for good, bodies in ((True, taken), (False, refused))
    for number, body in enumerate(bodies)
]


@pytest.mark.rule("parse-formats", "parse-timeout", "parse-proxy", "parse-further", "parse-unsupported")
@pytest.mark.rule("extract-source", "extract-prompts", "extract-schema", "extract-switches")
@pytest.mark.rule("extract-ignore-invalid-urls", "extract-further", "extract-server-fields", "agent-prompt")
@pytest.mark.rule("agent-urls", "agent-schema", "agent-max-credits", "agent-model", "agent-further")
@pytest.mark.rule("agent-server-fields", "session-ttl", "session-activity-ttl", "session-profile")
@pytest.mark.rule("session-further", "code-text", "code-language", "code-timeout", "scrape-interact")
@pytest.mark.rule("webhook-events-steps")
@pytest.mark.parametrize(("operation", "body", "good"), CASES)
def test_rule(operation: str, body: dict[str, Any], good: bool) -> None:
    found = check(operation, {**BASES[operation], **body})
    assert (not found) is good, [issue.to_wire() for issue in found]


@pytest.mark.rule("extract-source", "agent-prompt", "code-text", "scrape-interact")
@pytest.mark.parametrize(
    ("operation", "body", "taken"),
    [
        ("extract", {}, False),
        ("extract", {"prompt": "x"}, True),
        ("agent", {}, False),
        ("interact", {}, True),
        ("interact.execute", {}, False),
        ("scrape.interact", {}, False),
        ("scrape.interact", {"prompt": "x"}, True),
        ("scrape.interact", {"code": "x"}, True),
        ("parse", {}, True),
        ("parse", [], False),
        ("agent", "x", False),
        ("extract", None, False),
    ],
)
def test_what_must_be_given(operation: str, body: Any, taken: bool) -> None:
    assert (not check(operation, body)) is taken
