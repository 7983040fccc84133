"""The sandbox's own statement of the reference: what a request body may hold, as JSON Schema documents.

Rules that tie fields together or need more than a pattern are in ``rules.py``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from .wire import Issue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jsonschema.exceptions import ValidationError

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
STRINGS: Schema = {"type": "array", "items": STRING}
MILLISECONDS: Schema = {"type": "integer", "minimum": 0}
UUID: Schema = {
    "type": "string",
    "pattern": r"\A[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z",
}


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
    """Return the schema of an object whose ``type`` decides which of ``kinds`` holds."""
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
    """Return the schema of an item that is a plain type name or an object with ``type``."""
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
    "json": _object({"schema": OBJECT, "prompt": PROMPT}),
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
    # Known from the supplement only (4.2).
    "attributes": _object(
        {"selectors": _array(_object({"selector": STRING, "attribute": STRING}, "selector", "attribute"))}
    ),
    "query": _object({"prompt": PROMPT, "mode": _one_of("freeform", "directQuote")}, "prompt"),
    "rawBase64": NOTHING,
    "deterministicJson": _object({"schema": OBJECT, "prompt": PROMPT}),
}
# A type with a required field of its own cannot be asked for by its name alone.
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
        "mode": _one_of("off", "normal"),
        "riskScoreThreshold": _integer(0, 100),
        "blacklist": _array(STRING, high=1000),
        "whitelist": _array(STRING, high=1000),
        "blockedTlds": _array(STRING, high=1000),
        "failurePolicy": _one_of("open", "closed"),
    }
)

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
        "actions": _array(_tagged(ACTIONS), high=50),
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
        # Known from the supplement only (4.2).
        "fastMode": BOOLEAN,
        "checkPromptInjection": BOOLEAN,
        "safeMode": BOOLEAN,
    }
)

SOURCES: dict[str, Schema] = {
    "web": _object({"tbs": STRING, "location": STRING}),
    "images": NOTHING,
    "news": NOTHING,
}
CATEGORIES: dict[str, Schema] = dict.fromkeys(("codehost", "github", "research", "pdf"), NOTHING)

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
        "scrapeOptions": SCRAPE_OPTIONS,
        "threatProtection": THREAT_PROTECTION,
        # Known from the supplement only (1, 12).
        "lang": STRING,
        "filter": STRING,
        "origin": STRING,
        "integration": {"type": ["string", "null"]},
    },
    "query",
)

SCHEDULE = _object({"cron": _text(1, 128), "text": _text(1, 128), "timezone": STRING})
MONITOR_TARGETS: dict[str, Schema] = {
    "scrape": _object({"id": UUID, "urls": _array(STRING, 1), "url": STRING, "scrapeOptions": OBJECT}),
    # Crawl options are the request options of crawl; their names are not this sandbox's to judge.
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

BODIES: dict[str, Schema] = {
    "search": SEARCH,
    "monitor.create": MONITOR_CREATE,
    "monitor.update": MONITOR_UPDATE,
    "scrapeOptions": SCRAPE_OPTIONS,
}


@cache
def _validator(operation: str) -> Draft202012Validator:
    return Draft202012Validator(BODIES[operation])


def violations(operation: str, body: Any) -> list[Issue]:
    """Return what is wrong with a body by the schema alone.

    :param operation: a key of :data:`BODIES`.
    """
    errors = sorted(
        _validator(operation).iter_errors(body), key=lambda error: list(map(str, error.absolute_path))
    )
    return [_issue(error) for error in errors]


def _issue(error: ValidationError) -> Issue:
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        given = error.instance if isinstance(error.instance, dict) else {}
        strangers = sorted(set(given) - set(known))
        return Issue(
            path, f"Unrecognized key(s) in object: {', '.join(map(repr, strangers))}", "unrecognized_keys"
        )
    return Issue(path, error.message[:300], str(error.validator))
