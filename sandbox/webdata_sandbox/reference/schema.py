# SPDX-License-Identifier: Apache-2.0
"""JSON Schema documents of the service's request bodies.

Rules that involve several fields or need more than a pattern are in ``rules.py``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from .wire import Issue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jsonschema.exceptions import ValidationError

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
STRINGS: Schema = {"type": "array", "items": STRING}
WORDS: Schema = {"type": "string", "minLength": 1, "pattern": r"\S"}
MILLISECONDS: Schema = {"type": "integer", "minimum": 0}
UUID: Schema = {
    "type": "string",
    "pattern": r"\A[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z",
}
# Which names are accepted is a rule.
INTEGRATION: Schema = {"type": ["string", "null"]}


def _text(low: int = 0, high: int | None = None) -> Schema:
    schema: Schema = {"type": "string"}
    if low:
        schema["minLength"] = low
    if high is not None:
        schema["maxLength"] = high
    return schema


def _integer(low: int | None = None, high: int | None = None) -> Schema:
    schema: Schema = {"type": "integer"}
    if low is not None:
        schema["minimum"] = low
    if high is not None:
        schema["maximum"] = high
    return schema


def _one_of(*values: str) -> Schema:
    return {"enum": list(values)}


def _array(items: Schema, low: int = 0, high: int | None = None) -> Schema:
    schema: Schema = {"type": "array", "items": items}
    if low:
        schema["minItems"] = low
    if high is not None:
        schema["maxItems"] = high
    return schema


def _object(fields: Mapping[str, Schema], *required: str) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(fields), "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return schema


def _tagged(kinds: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object whose ``type`` selects one of ``kinds``."""
    chosen = [
        {"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": _with_type(schema)}
        for name, schema in kinds.items()
    ]
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": _one_of(*kinds)},
        "allOf": chosen,
    }


def _with_type(schema: Schema) -> Schema:
    if "oneOf" in schema:
        return {"oneOf": [_with_type(option) for option in schema["oneOf"]]}
    return {**schema, "properties": {"type": {}, **schema["properties"]}}


def _named_or_tagged(kinds: Mapping[str, Schema], *, names: tuple[str, ...] | None = None) -> Schema:
    """Return the schema of an item: a type name, or an object with ``type``."""
    return {
        "if": {"type": "string"},
        "then": _one_of(*(names or tuple(kinds))),
        "else": _tagged(kinds),
    }


NOTHING = _object({})
VIEWPORT = _object({"width": _integer(1, 7680), "height": _integer(1, 4320)}, "width", "height")
SCREENSHOT = _object({"fullPage": BOOLEAN, "quality": _integer(1, 100), "viewport": VIEWPORT})
PROMPT = _text(high=10_000)

FORMATS: dict[str, Schema] = {
    "markdown": NOTHING,
    "summary": NOTHING,
    "html": NOTHING,
    "rawHtml": NOTHING,
    "links": NOTHING,
    "images": NOTHING,
    "screenshot": SCREENSHOT,
    "json": _object({"schema": OBJECT, "prompt": PROMPT, "checkPromptInjection": BOOLEAN}),
    "changeTracking": _object(
        {
            "modes": _array(_one_of("git-diff", "json")),
            "schema": OBJECT,
            "prompt": STRING,
            "tag": {"type": ["string", "null"]},
        }
    ),
    "branding": NOTHING,
    "product": NOTHING,
    "menu": NOTHING,
    "audio": NOTHING,
    "video": NOTHING,
    "question": _object({"question": _text(1, 10_000)}, "question"),
    "highlights": _object({"query": _text(1, 10_000)}, "query"),
    # Not documented, but accepted by the service.
    "attributes": _object(
        {"selectors": _array(_object({"selector": STRING, "attribute": STRING}, "selector", "attribute"))}
    ),
    "query": _object({"prompt": PROMPT, "mode": _one_of("freeform", "directQuote")}, "prompt"),
    "rawBase64": NOTHING,
    "deterministicJson": _object({"schema": OBJECT, "prompt": PROMPT}),
}
# A type with a required field cannot be requested by name alone.
FORMAT_NAMES = tuple(name for name, schema in FORMATS.items() if "required" not in schema)

PARSERS: dict[str, Schema] = {
    "pdf": _object(
        {
            "mode": _one_of("fast", "auto", "ocr"),
            "maxPages": _integer(1, 10_000),
            "pages": BOOLEAN,
            "blocks": BOOLEAN,
            "pageMarkers": BOOLEAN,
        }
    ),
    "image": NOTHING,
}

PAPER = ("A0", "A1", "A2", "A3", "A4", "A5", "A6", "Letter", "Legal", "Tabloid", "Ledger")
ACTIONS: dict[str, Schema] = {
    "wait": {
        "oneOf": [
            _object({"milliseconds": _integer(1)}, "milliseconds"),
            _object({"selector": STRING}, "selector"),
        ]
    },
    "screenshot": SCREENSHOT,
    "click": _object({"selector": STRING, "all": BOOLEAN}, "selector"),
    "write": _object({"text": STRING}, "text"),
    "press": _object({"key": STRING}, "key"),
    "scroll": _object({"direction": _one_of("up", "down"), "selector": STRING}),
    "scrape": NOTHING,
    "executeJavascript": _object({"script": STRING}, "script"),
    "pdf": _object({"format": _one_of(*PAPER), "landscape": BOOLEAN, "scale": {"type": "number"}}),
}

THREAT_PROTECTION = _object(
    {
        "mode": _one_of("off", "normal", "manual-only", "zscaler"),
        "riskScoreThreshold": _integer(0, 100),
        "blacklist": _array(STRING, high=1000),
        "whitelist": _array(STRING, high=1000),
        "blockedTlds": _array(STRING, high=1000),
        "failurePolicy": _one_of("open", "closed"),
    }
)

THREAT_POLICY = _object({**THREAT_PROTECTION["properties"], "allowRequestOverrides": BOOLEAN}, "mode")

PII_ENTITIES = ("PERSON", "EMAIL", "PHONE", "LOCATION", "FINANCIAL", "SECRET")
PII = _object(
    {
        "mode": _one_of("accurate", "aggressive", "fast"),
        "entities": _array(_one_of(*PII_ENTITIES)),
        "replaceStyle": _one_of("tag", "mask", "remove"),
    }
)

SCRAPE_OPTIONS = _object(
    {
        "formats": _array(_named_or_tagged(FORMATS, names=FORMAT_NAMES)),
        "onlyMainContent": BOOLEAN,
        "onlyCleanContent": BOOLEAN,
        "includeTags": STRINGS,
        "excludeTags": STRINGS,
        "maxAge": MILLISECONDS,
        "minAge": MILLISECONDS,
        "headers": {"type": "object", "additionalProperties": STRING},
        "waitFor": _integer(0, 60_000),
        "mobile": BOOLEAN,
        "skipTlsVerification": BOOLEAN,
        "timeout": _integer(1000, 300_000),
        "parsers": _array(_named_or_tagged(PARSERS)),
        "actions": _array(_tagged(ACTIONS)),  # at most 50: a rule
        "location": _object(
            {"country": {"type": "string", "pattern": r"\A[A-Z]{2}\Z"}, "languages": STRINGS}
        ),
        "removeBase64Images": BOOLEAN,
        "blockAds": BOOLEAN,
        "proxy": _one_of("basic", "enhanced", "auto", "stealth"),
        "storeInCache": BOOLEAN,
        "lockdown": BOOLEAN,
        "redactPII": {"if": {"type": "object"}, "then": PII, "else": BOOLEAN},
        "profile": _object({"name": _text(1, 128), "saveChanges": BOOLEAN}, "name"),
        "threatProtection": THREAT_PROTECTION,
        "auditMetadata": _object({"username": _text(high=1024)}, "username"),
        # Not documented, but accepted by the service.
        "fastMode": BOOLEAN,
        "checkPromptInjection": BOOLEAN,
        "safeMode": BOOLEAN,
    }
)

UPLOAD_FORMATS = {
    name: FORMATS[name] for name in ("markdown", "summary", "html", "rawHtml", "links", "images", "json")
}
PARSE = _object(
    {
        "formats": _array(_named_or_tagged(UPLOAD_FORMATS)),
        "timeout": _integer(1, 300_000),
        "proxy": _one_of("basic", "auto"),
        "zeroDataRetention": BOOLEAN,
        "origin": STRING,
        "integration": INTEGRATION,
        **{
            name: SCRAPE_OPTIONS["properties"][name]
            for name in (
                *("onlyMainContent", "includeTags", "excludeTags", "headers", "parsers"),
                *("skipTlsVerification", "removeBase64Images", "blockAds", "redactPII", "auditMetadata"),
            )
        },
        # The official client sends this field with every upload that has options.
        "fastMode": BOOLEAN,
        # Options of pages are allowed only with values that have no effect (PARSE_UNSUPPORTED_OPTIONS).
        "waitFor": {"const": 0},
        "mobile": {"const": False},
        "actions": _array({}, high=0),
    }
)

PARSE_REFERENCE = _object({**PARSE["properties"], "uploadRef": _text(1)}, "uploadRef")
PARSE_UPLOAD = _object(
    {
        "filename": _text(1, 512),
        "contentType": _text(1, 255),
        # The maximum depends on the server.
        "declaredSizeBytes": _integer(1),
    },
    "filename",
)

TTL, ACTIVITY_TTL = _integer(30, 3600), _integer(10, 3600)
CODE = {
    "code": _text(1, 100_000),
    "language": _one_of("python", "node", "bash"),
    "timeout": _integer(1, 300),
    "origin": STRING,
}
INTERACT = _object(
    {
        "ttl": TTL,
        "activityTtl": ACTIVITY_TTL,
        "streamWebView": BOOLEAN,
        "profile": SCRAPE_OPTIONS["properties"]["profile"],
        "origin": STRING,
        "integration": INTEGRATION,
        # Not documented, but accepted by the service.
        "blockAds": BOOLEAN,
        "location": _object({"country": {"type": "string", "pattern": r"\A[A-Z]{2}\Z"}}),
        "recordSession": BOOLEAN,
    }
)
EXECUTE = _object(CODE, "code")
SCRAPE_INTERACT = _object(
    {
        **CODE,
        "prompt": _text(1, 10_000),
        # Not documented, but accepted by the service.
        "ttl": TTL,
        "activityTtl": ACTIVITY_TTL,
        "existingSessionId": UUID,
    }
)


def _job_webhook(*events: str, metadata: Schema = OBJECT) -> Schema:
    """Return the schema of a job's webhook: a plain URL or an object; its events have no prefix (16.3)."""
    fields = {
        "url": _text(1),
        "headers": {"type": "object", "additionalProperties": STRING},
        "metadata": metadata,
        "events": _array(_one_of(*events)),
    }
    return {"if": {"type": "string"}, "then": {}, "else": _object(fields, "url")}


LABELS: dict[str, Schema] = {"origin": STRING, "integration": INTEGRATION}
DOMAIN_TOOLS: dict[str, Schema] = {
    "domainTools": BOOLEAN,
    "toolDetail": _one_of("compact", "summary", "full"),
}
SCRAPE = _object(
    {
        "url": _text(1),
        **SCRAPE_OPTIONS["properties"],
        "zeroDataRetention": BOOLEAN,
        **DOMAIN_TOOLS,
        **LABELS,
    },
    "url",
)
PROVIDER_CALLS = _object(
    {
        "alexandria": _array(
            _object(
                {
                    "provider": WORDS,
                    "capability": WORDS,
                    "options": OBJECT,
                    # Not documented, but sent by the official MCP server.
                    "version": {**WORDS, "maxLength": 128},
                },
                "provider",
                "capability",
            ),
            1,
            10,
        ),
        "timeout": _integer(1, 300_000),
        **LABELS,
    },
    "alexandria",
)
FIND_TOOLS = _object(
    {
        "query": _text(1, 2000),
        "urls": _array(_text(1), 1, 100),
        **{name: _array(WORDS, 1, 50) for name in ("providers", "categories", "groups", "capabilities")},
        "level": _one_of("categories", "providers", "groups", "tools"),
        "expand": _array(_one_of("options", "response", "examples")),
        "limit": _integer(1, 100),
        "offset": _integer(0),
    }
)
BATCH_SCRAPE = _object(
    {
        "urls": _array(STRING, 1),
        "webhook": _job_webhook("started", "page", "completed", "failed"),
        "maxConcurrency": _integer(1),
        "ignoreInvalidURLs": BOOLEAN,
        **SCRAPE_OPTIONS["properties"],
        "zeroDataRetention": BOOLEAN,
        "appendToId": UUID,  # Not documented, but accepted by the service.
        **LABELS,
    },
    "urls",
)
SITEMAP = _one_of("skip", "include", "only")
CRAWL_OPTIONS: dict[str, Schema] = {
    "excludePaths": STRINGS,
    "includePaths": STRINGS,
    "regexOnFullURL": BOOLEAN,
    "maxDiscoveryDepth": _integer(0),
    "sitemap": SITEMAP,
    "ignoreQueryParameters": BOOLEAN,
    "deduplicateSimilarURLs": BOOLEAN,
    "limit": _integer(1),
    "crawlEntireDomain": BOOLEAN,
    "allowExternalLinks": BOOLEAN,
    "allowSubdomains": BOOLEAN,
    "ignoreRobotsTxt": BOOLEAN,
    "robotsUserAgent": STRING,
    "delay": {"type": "number", "exclusiveMinimum": 0, "maximum": 60},
}
CRAWL = _object(
    {
        "url": _text(1),
        "prompt": PROMPT,
        **CRAWL_OPTIONS,
        "maxConcurrency": _integer(1),
        "webhook": _job_webhook("started", "page", "completed", "failed"),
        "scrapeOptions": SCRAPE_OPTIONS,
        "zeroDataRetention": BOOLEAN,
        **LABELS,
    },
    "url",
)
CRAWL_PARAMS = _object({"url": _text(1), "prompt": _text(1, 10_000), **LABELS}, "url", "prompt")
MAP = _object(
    {
        "url": _text(1),
        "search": STRING,
        "sitemap": SITEMAP,
        "includeSubdomains": BOOLEAN,
        "ignoreQueryParameters": BOOLEAN,
        "ignoreCache": BOOLEAN,
        "limit": _integer(1, 100_000),
        "timeout": _integer(1),
        "location": SCRAPE_OPTIONS["properties"]["location"],
        "auditMetadata": SCRAPE_OPTIONS["properties"]["auditMetadata"],
        "threatProtection": THREAT_PROTECTION,
        **LABELS,
        # Not documented, but accepted by the service.
        "headers": {"type": "object", "additionalProperties": STRING},
        "filterByPath": BOOLEAN,
        "useIndex": BOOLEAN,
        "includePaths": STRINGS,
        "excludePaths": STRINGS,
    },
    "url",
)

EXTRACT = _object(
    {
        "urls": _array(STRING, high=10),
        "prompt": PROMPT,
        "schema": OBJECT,
        "enableWebSearch": BOOLEAN,
        "ignoreSitemap": BOOLEAN,
        "includeSubdomains": BOOLEAN,
        "showSources": BOOLEAN,
        "ignoreInvalidURLs": BOOLEAN,
        "scrapeOptions": SCRAPE_OPTIONS,
        "threatProtection": THREAT_PROTECTION,
        "origin": STRING,
        # Not documented, but accepted by the service.
        "systemPrompt": PROMPT,
        "allowExternalLinks": BOOLEAN,
        "agent": _object({"model": _one_of("FIRE-1")}),
        "webhook": _job_webhook("started", "completed", "failed"),
        "integration": INTEGRATION,
        "limit": _integer(1),
        "timeout": _integer(1),
    }
)
ANSWER_FOR_AGENT = {"approvalId": UUID}
EXCHANGE = _object(
    {
        "enabled": BOOLEAN,
        "toolkits": _array(STRING, high=5),
        "maxCalls": _integer(1, 30),
        "requireApproval": BOOLEAN,
        "approve": _object({**ANSWER_FOR_AGENT, "callIds": STRINGS, "always": BOOLEAN}, "approvalId"),
        "decline": _object(ANSWER_FOR_AGENT, "approvalId"),
        "onTermsRequired": _one_of("skip", "ask"),
    }
)
AGENT = _object(
    {
        "prompt": _text(1, 10_000),
        "urls": _array(STRING),
        "strictConstrainToURLs": BOOLEAN,
        "schema": OBJECT,
        "maxCredits": {"type": "number", "exclusiveMinimum": 0},
        "model": _one_of("spark-2", "spark-1-mini", "spark-1-pro"),
        "auditMetadata": SCRAPE_OPTIONS["properties"]["auditMetadata"],
        "threatProtection": THREAT_PROTECTION,
        "origin": STRING,
        # Not documented, but accepted by the service.
        "webhook": _job_webhook("started", "action", "completed", "failed", "cancelled"),
        "effort": _one_of("low", "medium", "high"),
        "mode": _one_of("extract", "chat"),
        "threadId": UUID,
        "exchange": EXCHANGE,
        "location": _object({"country": {"type": "string", "pattern": r"\A[A-Z]{2}\Z"}}),
        "zeroDataRetention": BOOLEAN,
        "integration": INTEGRATION,
    },
    "prompt",
)

SOURCES: dict[str, Schema] = {
    "web": _object({"tbs": STRING, "location": STRING}),
    "images": NOTHING,
    "news": NOTHING,
    "alexandria": NOTHING,
}
CATEGORIES: dict[str, Schema] = dict.fromkeys(
    ("codehost", "github", "research", "pdf", "developer", "gov"), NOTHING
)

SEARCH = _object(
    {
        "query": _text(1, 500),
        "limit": _integer(1, 100),
        "sources": _array(_named_or_tagged(SOURCES)),
        "categories": _array(_named_or_tagged(CATEGORIES)),
        "includeDomains": STRINGS,
        "excludeDomains": STRINGS,
        "tbs": STRING,
        "location": STRING,
        "country": STRING,
        "safe": BOOLEAN,
        "timeout": _integer(1),
        "ignoreInvalidURLs": BOOLEAN,
        "highlights": BOOLEAN,
        "enterprise": _array(_one_of("anon", "zdr", "default")),
        **DOMAIN_TOOLS,
        "scrapeOptions": _object({**SCRAPE_OPTIONS["properties"], "zeroDataRetention": BOOLEAN}),
        "threatProtection": THREAT_PROTECTION,
        # Not documented, but accepted by the service.
        "lang": STRING,
        "filter": STRING,
        "origin": STRING,
        "integration": INTEGRATION,
    },
    "query",
)

SCHEDULE = _object({"cron": _text(1, 128), "text": _text(1, 128), "timezone": STRING})
MONITOR_TARGETS: dict[str, Schema] = {
    "scrape": _object({"id": UUID, "urls": _array(STRING, 1), "url": STRING, "scrapeOptions": OBJECT}),
    # Crawl options are the request options of crawl; the service stores them unchecked.
    "crawl": _object({"id": UUID, "url": STRING, "crawlOptions": OBJECT, "scrapeOptions": OBJECT}, "url"),
    "search": _object(
        {
            "id": UUID,
            "queries": _array(_text(1, 256), 1, 12),
            "searchWindow": _one_of("5m", "15m", "1h", "6h", "24h", "7d"),
            "maxResults": _integer(1, 50),
            "includeDomains": _array(STRING, high=50),
            "excludeDomains": _array(STRING, high=50),
            "scrapeOptions": OBJECT,
        },
        "queries",
    ),
}
WEBHOOK = _object(
    {
        "url": _text(1),
        "headers": {"type": "object", "additionalProperties": STRING},
        "metadata": OBJECT,
        "events": _array(_one_of("monitor.page", "monitor.check.completed")),
    },
    "url",
)
NOTIFICATION = _object(
    {
        "email": _object(
            {
                "enabled": BOOLEAN,
                "includeDiffs": BOOLEAN,
                "recipients": _array({"type": "string", "pattern": r"\A[^@\s]+@[^@\s]+\.[^@\s]+\Z"}, high=25),
            }
        ),
        "slack": OBJECT,
    }
)
_MONITOR_FIELDS: dict[str, Schema] = {
    "name": _text(1, 256),
    "schedule": SCHEDULE,
    "targets": _array(_tagged(MONITOR_TARGETS), 1, 50),
    "goal": {"type": ["string", "null"], "maxLength": 2000},
    "judgeEnabled": BOOLEAN,
    "notification": NOTIFICATION,
    "retentionDays": _integer(1, 365),
    "webhook": {"if": {"type": "string"}, "then": {}, "else": WEBHOOK},
    "origin": STRING,
}
MONITOR_CREATE = _object(_MONITOR_FIELDS, "name", "schedule", "targets")
MONITOR_UPDATE = _object({**_MONITOR_FIELDS, "status": _one_of("active", "paused")})

LONG_URL: Schema = {"type": "string", "pattern": r"\Ahttps?://[^\s/?#]"}
NAMES = _array({"type": "string", "pattern": r"\A[a-z0-9][a-z0-9_-]*\Z", "maxLength": 80}, high=20)
SEARCH_FEEDBACK_FIELDS: dict[str, Schema] = {
    "rating": _one_of("good", "partial", "bad"),
    "valuableSources": _array(_object({"url": LONG_URL, "reason": _text(high=1000)}, "url"), high=50),
    "missingContent": _array(
        _object({"topic": _text(1, 200), "description": _text(high=2000)}, "topic"), high=20
    ),
    "querySuggestions": _text(high=2000),
    **LABELS,
}
SEARCH_FEEDBACK = _object(SEARCH_FEEDBACK_FIELDS, "rating")
FEEDBACK = _object(
    {
        **SEARCH_FEEDBACK_FIELDS,
        "endpoint": _one_of("search", "scrape", "parse", "map"),
        "jobId": UUID,
        "missingContent": {**SEARCH_FEEDBACK_FIELDS["missingContent"], "maxItems": 50},
        "issues": NAMES,
        "tags": NAMES,
        "note": _text(high=4000),
        "url": LONG_URL,
        "pageNumbers": _array(_integer(1), high=100),
        "metadata": OBJECT,
    },
    *("endpoint", "jobId", "rating"),
)

DETAIL, NAME = {**WORDS, "maxLength": 2000}, {**WORDS, "maxLength": 200}
PROVIDER_FEEDBACK = _object(
    {
        "endpoint": _one_of("alexandria"),
        "rating": _one_of("good", "partial", "bad"),
        "requestedWebsite": _object(
            {"url": {**LONG_URL, "maxLength": 2048}, "requestedFunctionality": DETAIL},
            *("url", "requestedFunctionality"),
        ),
        "rationale": DETAIL,
        "providerFeedback": _array(
            _object(
                {
                    "name": NAME,
                    "issue": _one_of(
                        "missing_provider", "insufficient_coverage", "provider_unavailable", "other"
                    ),
                    "why": DETAIL,
                },
                *("name", "issue", "why"),
            ),
            high=20,
        ),
        "capabilityFeedback": _array(
            _object(
                {
                    "name": NAME,
                    "provider": NAME,
                    "issue": _one_of(
                        *("new_capability_request", "missing_capability", "insufficient_functionality"),
                        *("incorrect_result", "execution_error", "other"),
                    ),
                    "why": DETAIL,
                    "requestedFunctionality": DETAIL,
                },
                *("name", "provider", "issue", "why"),
            ),
            high=20,
        ),
        **LABELS,
    },
    *("endpoint", "rating", "requestedWebsite", "rationale"),
)

DAY = {"type": "string", "pattern": r"\A\d{4}-\d{2}-\d{2}\Z"}
DEVELOPER_SEARCH = _object(
    {
        "query": WORDS,
        "k": _integer(1, 100),
        "types": _array(_one_of("doc", "issue", "pull_request", "readme")),
        "repos": _array(WORDS),
        "sources": _array(_text(1, 512), high=20),
        "skills": _one_of("only"),
        "passages": _integer(1, 5),
        "language": WORDS,
        # A string in the documentation, a list in the official client.
        "topic": {"anyOf": [WORDS, _array(WORDS)]},
        "license": WORDS,
        "min_stars": _integer(0),
        "max_stars": _integer(0),
        "archived": BOOLEAN,
        "fork": BOOLEAN,
        **LABELS,
    },
    "query",
)
PAPER_SEARCH = _object(
    {
        "query": WORDS,
        "k": _integer(1, 500),
        "authors": _array(WORDS),
        "categories": _array(WORDS),
        "from": DAY,
        "to": DAY,
        **LABELS,
    },
    "query",
)
ONE_PAPER = _object({"query": WORDS, "k": _integer(1, 50), **LABELS})
SIMILAR_PAPERS = _object(
    {
        "intent": WORDS,
        "mode": _one_of("similar", "citers", "references"),
        "k": _integer(1, 500),
        "rerank": BOOLEAN,
        "anchor": _array(WORDS),
        **LABELS,
    },
    "intent",
)
BODIES: dict[str, Schema] = {
    "search": SEARCH,
    "search.developer": DEVELOPER_SEARCH,
    "search.research.papers": PAPER_SEARCH,
    "search.research.paper": ONE_PAPER,
    "search.research.similar": SIMILAR_PAPERS,
    "search.feedback": SEARCH_FEEDBACK,
    "feedback": FEEDBACK,
    "feedback.alexandria": PROVIDER_FEEDBACK,
    "team.threat-protection": THREAT_POLICY,
    "monitor.create": MONITOR_CREATE,
    "monitor.update": MONITOR_UPDATE,
    "scrapeOptions": SCRAPE_OPTIONS,
    "scrape": SCRAPE,
    "scrape.alexandria": PROVIDER_CALLS,
    "alexandria.find-tools": FIND_TOOLS,
    "batch.scrape": BATCH_SCRAPE,
    "crawl": CRAWL,
    "crawl.params": CRAWL_PARAMS,
    "map": MAP,
    "parse": PARSE,
    "parse.reference": PARSE_REFERENCE,
    "parse.upload-url": PARSE_UPLOAD,
    "extract": EXTRACT,
    "agent": AGENT,
    "interact": INTERACT,
    "interact.execute": EXECUTE,
    "scrape.interact": SCRAPE_INTERACT,
}


SELF_HOSTED_SCRAPE_OPTIONS: dict[str, Schema] = {
    **SCRAPE_OPTIONS["properties"],
    "timeout": _integer(1000),
    # Which countries exist is a rule.
    "location": _object({"country": STRING, "languages": STRINGS}),
    "useMock": STRING,
}
SELF_HOSTED_WEBHOOK = _job_webhook(
    *("completed", "failed", "page", "started"),
    metadata={"type": "object", "additionalProperties": STRING},
)
ANY_NUMBER: Schema = {"type": "number"}


def _changed(body: Schema, *gone: str, **fields: Schema) -> Schema:
    """Return a body with some fields added, replaced, or removed."""
    properties = {name: schema for name, schema in body["properties"].items() if name not in gone}
    return {**body, "properties": {**properties, **fields}}


# Where a self-hosted server differs (sandbox/docs/service.md#self-hosted-servers).
SELF_HOSTED_BODIES: dict[str, Schema] = {
    **BODIES,
    "scrapeOptions": _object(SELF_HOSTED_SCRAPE_OPTIONS),
    "scrape": _changed(SCRAPE, "domainTools", "toolDetail", **SELF_HOSTED_SCRAPE_OPTIONS),
    "batch.scrape": _changed(BATCH_SCRAPE, webhook=SELF_HOSTED_WEBHOOK, **SELF_HOSTED_SCRAPE_OPTIONS),
    "crawl": _changed(
        CRAWL,
        webhook=SELF_HOSTED_WEBHOOK,
        limit=ANY_NUMBER,
        maxDiscoveryDepth=ANY_NUMBER,
        scrapeOptions=_object(SELF_HOSTED_SCRAPE_OPTIONS),
    ),
    "map": _changed(
        MAP,
        location=SELF_HOSTED_SCRAPE_OPTIONS["location"],
        crawlEntireDomain=BOOLEAN,
        allowSubdomains=BOOLEAN,
        ignoreRobotsTxt=BOOLEAN,
        maxDiscoveryDepth=ANY_NUMBER,
        delay=ANY_NUMBER,
    ),
    "search": _changed(
        SEARCH,
        "domainTools",
        "toolDetail",
        query=STRING,
        sources=_array(_named_or_tagged({name: SOURCES[name] for name in ("web", "images", "news")})),
        categories=_array(
            _named_or_tagged(dict.fromkeys(("github", "research", "pdf", "developer"), NOTHING))
        ),
        scrapeOptions=_object({**SELF_HOSTED_SCRAPE_OPTIONS, "zeroDataRetention": BOOLEAN}),
    ),
    "extract": _changed(EXTRACT, scrapeOptions=_object(SELF_HOSTED_SCRAPE_OPTIONS)),
}
BODIES_BY_PROFILE = {"hosted": BODIES, "gateway": BODIES, "self-hosted": SELF_HOSTED_BODIES}

LIMITS = {
    "minimum": ("too_small", "minimum", True),
    "exclusiveMinimum": ("too_small", "minimum", False),
    "minLength": ("too_small", "minimum", True),
    "minItems": ("too_small", "minimum", True),
    "maximum": ("too_big", "maximum", True),
    "exclusiveMaximum": ("too_big", "maximum", False),
    "maxLength": ("too_big", "maximum", True),
    "maxItems": ("too_big", "maximum", True),
}
ORIGINS = {str: "string", list: "array", int: "number", float: "number"}


@cache
def _validator(operation: str, profile: str) -> Draft202012Validator:
    return Draft202012Validator(BODIES_BY_PROFILE[profile][operation])


def violations(operation: str, body: Any, profile: str = "hosted") -> list[Issue]:
    """Return the violations of a body's JSON Schema, without the rules of ``rules.py``.

    :param operation: a key of :data:`BODIES`.
    :param profile: a key of :data:`BODIES_BY_PROFILE`.
    """
    errors = sorted(
        _validator(operation, profile).iter_errors(body),
        key=lambda error: list(map(str, error.absolute_path)),
    )
    return [issue for error in errors for issue in _issues(error)]


def _issues(error: ValidationError) -> Iterator[Issue]:
    path, rule, message = tuple(error.absolute_path), str(error.validator), error.message[:300]
    instance: Any = error.instance
    bound: Any = error.validator_value
    facts: dict[str, Any]
    schema = error.schema if isinstance(error.schema, dict) else {}
    if rule == "additionalProperties":
        unknown = sorted(set(instance) - set(schema.get("properties", {})))
        names = ", ".join(f'"{name}"' for name in unknown)
        text = f"Unrecognized {'key' if len(unknown) == 1 else 'keys'}: {names}"
        yield Issue(path, text, "unrecognized_keys", {"keys": unknown})
    elif rule == "required":
        name = next(name for name in bound if message.startswith(repr(name)))
        expected = _expected(schema.get("properties", {}).get(name, {}))
        text = f"expected {expected}, received undefined"
        yield Issue((*path, name), text, "invalid_type", {"expected": expected})
    elif rule == "type":
        expected = _expected(schema)
        fraction = expected == "number" and isinstance(instance, float)
        facts = {"expected": "int", "format": "safeint"} if fraction else {"expected": expected}
        yield Issue(path, message, "invalid_type", facts)
    elif rule in ("enum", "const"):
        yield Issue(path, message, "invalid_value", {"values": bound if rule == "enum" else [bound]})
    elif rule == "pattern":
        yield Issue(path, message, "invalid_format", {"origin": "string", "format": "regex"})
    elif rule in LIMITS:
        code, limit, inclusive = LIMITS[rule]
        facts = {"origin": ORIGINS[type(instance)], limit: bound, "inclusive": inclusive}
        yield Issue(path, message, code, facts)
    else:
        yield Issue(path, message)


def _expected(schema: Schema) -> str:
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    return "number" if kind == "integer" else str(kind)
