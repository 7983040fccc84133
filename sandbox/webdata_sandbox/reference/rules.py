# SPDX-License-Identifier: Apache-2.0
"""The service's rules that a JSON Schema cannot express: dependent fields and formats."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jsonschema import Draft4Validator, Draft7Validator, Draft202012Validator
from jsonschema.exceptions import best_match

from . import schedule as timetable
from .profiles import HEADERS_REFUSED, HOSTED, HTTPS_ONLY, QUERY_NEEDED, TBS_INVALID, Profile
from .schema import violations
from .scrape_options import format_names, type_of
from .time_filter import parse_tbs
from .urls import is_hostname, is_loopback, is_public, with_scheme
from .wire import Issue, Json, webhook_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BOTH_DOMAINS = "includeDomains and excludeDomains cannot both be specified"
NEEDS_GOAL = "A search target requires a non-empty goal"
BAD_PATTERN = "invalid_pattern"
"""Code of an invalid regular expression, which the service reports without ``code`` and ``details``."""
MAX_ACTIONS = 50
INTEGRATIONS = frozenset(
    {
        *("dify", "zapier", "pipedream", "raycast", "langchain", "crewai", "llamaindex", "n8n", "camelai"),
        *("make", "flowise", "metagpt", "relevanceai", "viasocket", "cli", "hermes", "gstack", "prometheus"),
    }
)
MANAGED_HEADERS = frozenset({"host", "content-type", "content-length", "connection", "transfer-encoding"})
MANAGED_HEADER_PREFIX = "x-firecrawl-"

_LACKING = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?<?[=!]|\\\d)")
"""Look-around or a backreference in a regular expression."""
_TLD = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")


def check(operation: str, body: Any, profile: Profile = HOSTED) -> list[Issue]:
    """Return the violations of a body; an empty list means that the service would accept it.

    :param operation: a key of :data:`~webdata_sandbox.reference.schema.BODIES`.
    :param profile: the server that checks it.
    """
    found = violations(operation, body, profile.name)
    if not found:  # the rules rely on valid types
        rules = _RULES.get(operation)
        waived = tuple(profile.waived)
        found = [issue for issue in rules(body) if not issue.message.startswith(waived)] if rules else []
        found.extend(_integration(body.get("integration")))
        if profile.countries is not None:
            found.extend(_countries(body, profile.countries))
    return found


def _integration(name: str | None) -> Iterator[Issue]:
    if name is not None and name not in INTEGRATIONS and not name.startswith("_"):
        text = f"expected one of {', '.join(sorted(INTEGRATIONS))}, or a name that begins with _"
        yield Issue(("integration",), text)


def _countries(body: Json, known: frozenset[str]) -> Iterator[Issue]:
    places: tuple[tuple[str, ...], ...] = ((), ("scrapeOptions",))
    for path in places:
        holder = body.get(path[0], {}) if path else body
        location = holder.get("location")
        country = location.get("country") if isinstance(location, dict) else None
        if country is not None and country.upper() not in known:
            yield Issue((*path, "location", "country"), f"not a country code of ISO 3166-1: {country!r}")


def check_search(body: Json) -> Iterator[Issue]:
    """Rules of a search request."""
    yield from _domains(body, ())
    if not body["query"].strip():
        yield Issue(("query",), QUERY_NEEDED)
    sources = body.get("sources", [])
    yield from _one_form(sources, "sources")
    categories = body.get("categories", [])
    yield from _one_form(categories, "categories")
    if len(kinds := set(map(type_of, categories))) > 1 and "developer" in kinds:
        yield Issue(("categories",), "developer cannot be combined with other categories")
    yield from _tbs(body, ())
    for number, source in enumerate(sources):
        if isinstance(source, dict):
            yield from _tbs(source, ("sources", number))
    if "threatProtection" in body:
        yield from _threat_lists(body["threatProtection"], ("threatProtection",))
    if "scrapeOptions" in body:
        yield from _retained(body["scrapeOptions"], body["scrapeOptions"], ("scrapeOptions",))
        for number, kind in enumerate(format_names(body["scrapeOptions"])):
            if kind == "changeTracking":
                yield Issue(("scrapeOptions", "formats", number), "changeTracking is not available in search")


def _one_form(items: list[Any], name: str) -> Iterator[Issue]:
    if len({isinstance(item, str) for item in items}) > 1:
        yield Issue((name,), f"{name} must be all strings or all objects")


def _tbs(holder: Json, path: tuple[str | int, ...]) -> Iterator[Issue]:
    if "tbs" in holder:
        try:
            parse_tbs(holder["tbs"])
        except ValueError as error:
            yield Issue((*path, "tbs"), f"{TBS_INVALID}: {error}")


def _domains(holder: Json, path: tuple[str | int, ...]) -> Iterator[Issue]:
    if holder.get("includeDomains") and holder.get("excludeDomains"):
        yield Issue(path, BOTH_DOMAINS)
    for name in ("includeDomains", "excludeDomains"):
        for number, domain in enumerate(holder.get(name, [])):
            if not is_hostname(domain.strip()):
                yield Issue((*path, name, number), f"not a hostname without protocol and path: {domain!r}")


def _threat_lists(policy: Json, path: tuple[str | int, ...]) -> Iterator[Issue]:
    for name in ("blacklist", "whitelist"):
        for number, entry in enumerate(policy.get(name, [])):
            domain = entry.removeprefix("*.")
            if not is_hostname(domain) or "." not in domain:
                yield Issue((*path, name, number), f"not a domain or *.domain: {entry!r}")
    for number, tld in enumerate(policy.get("blockedTlds", [])):
        if not _TLD.fullmatch(tld):
            yield Issue((*path, "blockedTlds", number), f"not a top-level domain in lower case: {tld!r}")


def check_scrape_options(options: Json, path: tuple[str | int, ...] = ()) -> Iterator[Issue]:
    """Rules of the scrape options object."""
    names = format_names(options)
    if names.count("screenshot") > 1:
        yield Issue((*path, "formats"), "at most one screenshot format is allowed")
    if "changeTracking" in names and "markdown" not in names:
        yield Issue((*path, "formats"), "changeTracking needs the markdown format")
    for number, item in enumerate(options.get("formats", [])):
        if isinstance(item, dict) and item["type"] == "json" and _is_unconstrained(item.get("schema")):
            yield Issue((*path, "formats", number, "schema"), "the schema describes no properties")
        if isinstance(item, dict):
            yield from _json_schema(item, (*path, "formats", number))
    if "timeout" in options and options.get("waitFor", 0) * 2 > options["timeout"]:
        yield Issue((*path, "waitFor"), "waitFor must not exceed half of timeout")
    if len(options.get("actions", [])) > MAX_ACTIONS:
        yield Issue((*path, "actions"), f"at most {MAX_ACTIONS} actions are allowed")
    waits = [action for action in options.get("actions", []) if action["type"] == "wait"]
    total = options.get("waitFor", 0) + sum(action.get("milliseconds", 1000) for action in waits)
    if waits and total > 60_000:
        yield Issue((*path, "actions"), "waits must not exceed 60 seconds in total")
    if "threatProtection" in options:
        yield from _threat_lists(options["threatProtection"], (*path, "threatProtection"))


def _is_unconstrained(schema: Any) -> bool:
    return (
        isinstance(schema, dict)
        and schema.get("type") == "object"
        and not schema.get("properties")
        and schema.get("additionalProperties") is True
    )


def check_scrape(body: Json) -> Iterator[Issue]:
    """Rules of a scrape."""
    yield from _url(body["url"], ("url",))
    yield from _retained(body, body)


def check_batch_scrape(body: Json) -> Iterator[Issue]:
    """Rules of a batch. The batch itself validates its URLs because it may skip invalid ones."""
    yield from _retained(body, body)
    yield from _job_fields({name: body[name] for name in ("webhook",) if name in body})


def check_crawl(body: Json) -> Iterator[Issue]:
    """Rules of a crawl."""
    yield from _url(body["url"], ("url",))
    yield from _patterns(body)
    yield from _retained(body, body.get("scrapeOptions", {}), ("scrapeOptions",))
    yield from _job_fields({name: body[name] for name in ("webhook",) if name in body})


def check_map(body: Json) -> Iterator[Issue]:
    """Rules of a map."""
    yield from _url(body["url"], ("url",))
    yield from _patterns(body)
    yield from _job_fields(body)


def _retained(body: Json, options: Json, path: tuple[str | int, ...] = ()) -> Iterator[Issue]:
    yield from check_scrape_options(options, path)
    if not body.get("zeroDataRetention"):
        return
    if "screenshot" in format_names(options):
        yield Issue((*path, "formats"), "screenshot is not available with zero data retention")
    if options.get("onlyCleanContent"):
        yield Issue((*path, "onlyCleanContent"), "onlyCleanContent is not available with zero data retention")


def _patterns(body: Json) -> Iterator[Issue]:
    for name in ("includePaths", "excludePaths"):
        for number, pattern in enumerate(body.get(name, [])):
            yield from _pattern(pattern, (name, number))


def _pattern(pattern: str, path: tuple[str | int, ...]) -> Iterator[Issue]:
    try:
        re.compile(pattern)
    except re.error as error:
        yield Issue(path, f"Invalid regular expression {pattern!r}: {error}", BAD_PATTERN)
    else:
        if _LACKING.search(pattern):
            text = f"{pattern!r}: look-around and backreferences are not supported"
            yield Issue(path, f"Invalid regular expression {text}", BAD_PATTERN)


def check_extract(body: Json) -> Iterator[Issue]:
    """Rules of an extract job. The job itself validates its URLs because it may skip invalid ones."""
    if not body.get("urls") and not body.get("prompt", "").strip():
        yield Issue((), "Either urls or prompt must be provided")
    yield from _json_schema(body)
    if "scrapeOptions" in body:
        yield from check_scrape_options(body["scrapeOptions"], ("scrapeOptions",))
    yield from _job_fields(body)


def check_agent(body: Json) -> Iterator[Issue]:
    """Rules of an agent run."""
    if not body["prompt"].strip():
        yield Issue(("prompt",), "Prompt cannot be empty")
    for number, url in enumerate(body.get("urls", [])):
        yield from _url(url, ("urls", number))
    exchange = body.get("exchange", {})
    answers = [name for name in ("approve", "decline") if name in exchange]
    if len(answers) > 1:
        yield Issue(("exchange",), "exchange.approve and exchange.decline cannot both be specified")
    if answers and "threadId" not in body:
        yield Issue(("threadId",), "exchange.approve and exchange.decline require threadId")
    if exchange.get("requireApproval") and body.get("mode") != "chat":
        yield Issue(("mode",), "exchange.requireApproval requires mode chat")
    yield from _json_schema(body)
    yield from _job_fields(body)


def _json_schema(body: Json, path: tuple[str | int, ...] = ()) -> Iterator[Issue]:
    """Rules of a JSON Schema. The service documents no draft, so a schema of any draft is accepted."""
    schema = body.get("schema", {})
    drafts = (Draft202012Validator, Draft7Validator, Draft4Validator)
    errors = [best_match(draft(draft.META_SCHEMA).iter_errors(schema)) for draft in drafts]
    if all(errors):
        yield Issue((*path, "schema"), f"Invalid JSON schema: {errors[0].message[:300]}")


def _job_fields(body: Json) -> Iterator[Issue]:
    if "threatProtection" in body:
        yield from _threat_lists(body["threatProtection"], ("threatProtection",))
    if "webhook" in body:
        webhook = body["webhook"]
        yield from _webhook(webhook_object(webhook))


def check_scrape_interact(body: Json) -> Iterator[Issue]:
    """Rules of a call that uses the browser of a scrape."""
    if "code" not in body and "prompt" not in body:
        yield Issue((), "Either code or prompt must be provided")


def check_developer_search(body: Json) -> Iterator[Issue]:
    """Rules of a developer search."""
    types = set(body.get("types", []))
    if types == {"doc"} and body.get("repos"):
        yield Issue(("repos",), "repos cannot match any requested type; add repository types or drop repos")
    if types and "doc" not in types and body.get("sources"):
        yield Issue(("sources",), "sources cannot match any requested type; add doc or drop sources")


def check_paper(body: Json) -> Iterator[Issue]:
    """Rules of a request for one paper."""
    if "k" in body and "query" not in body:
        yield Issue(("k",), "k is only valid when query is present")


SUBSTANCE = {
    "good": ("valuableSources",),
    "partial": ("valuableSources", "missingContent"),
    "bad": ("missingContent", "querySuggestions"),
}
ANY_SUBSTANCE = (
    *("issues", "note", "valuableSources", "missingContent", "querySuggestions", "url", "pageNumbers"),
)
LARGEST_METADATA = 8192


def check_search_feedback(body: Json) -> Iterator[Issue]:
    """Rules of feedback on a search."""
    yield from _topics(body)
    if not any(body.get(name) for name in SUBSTANCE[body["rating"]]):
        yield Issue((), "Feedback must be substantive.")


def check_feedback(body: Json) -> Iterator[Issue]:
    """Rules of feedback on any call."""
    yield from _topics(body)
    if not any(body.get(name) for name in ANY_SUBSTANCE):
        yield Issue((), "Feedback must be substantive.")
    size = len(json.dumps(body.get("metadata", {}), separators=(",", ":"), ensure_ascii=False).encode())
    if size > LARGEST_METADATA:
        yield Issue(("metadata",), "metadata must be 8KB or smaller")


def check_provider_feedback(body: Json) -> Iterator[Issue]:
    """Rules of feedback on data providers."""
    for number, item in enumerate(body.get("capabilityFeedback", [])):
        if item["issue"] == "new_capability_request" and "requestedFunctionality" not in item:
            place = ("capabilityFeedback", number, "requestedFunctionality")
            yield Issue(place, "Required for new_capability_request")


def _topics(body: Json) -> Iterator[Issue]:
    for number, item in enumerate(body.get("missingContent", [])):
        if not item["topic"].strip():
            yield Issue(("missingContent", number, "topic"), "String must contain at least 1 character(s)")


def check_monitor_create(body: Json) -> Iterator[Issue]:
    """Rules of a new monitor."""
    yield from _monitor_fields(body)
    if _searches(body) and not (body.get("goal") or "").strip() and body.get("judgeEnabled") is not False:
        yield Issue(("goal",), NEEDS_GOAL)


def check_monitor_update(body: Json) -> Iterator[Issue]:
    """Rules of a patch, except those that depend on the stored monitor."""
    if not body.keys() - {"origin"}:
        yield Issue((), "Update body cannot be empty")
    yield from _monitor_fields(body)


def _searches(body: Json) -> bool:
    return any(target["type"] == "search" for target in body.get("targets", []))


def _monitor_fields(body: Json) -> Iterator[Issue]:
    if "schedule" in body:
        yield from _schedule(body["schedule"])
    for number, target in enumerate(body.get("targets", [])):
        yield from _target(target, ("targets", number))
    if "webhook" in body:
        webhook = body["webhook"]
        yield from _webhook(webhook_object(webhook))


def _schedule(value: Json) -> Iterator[Issue]:
    if ("cron" in value) == ("text" in value):
        yield Issue(("schedule",), "Provide exactly one of cron or text")
        return
    try:
        zone = timetable.zone_of(value.get("timezone", "UTC"))
    except ValueError as error:
        yield Issue(("schedule", "timezone"), str(error))
        return
    field = "cron" if "cron" in value else "text"
    try:
        text = value["cron"] if field == "cron" else timetable.cron_of_text(value["text"])
        timetable.check_interval(timetable.parse_cron(text), zone, datetime.now(timezone.utc))
    except ValueError as error:
        yield Issue(("schedule", field), str(error))


def _target(target: Json, path: tuple[str | int, ...]) -> Iterator[Issue]:
    if target["type"] == "search":
        yield from _domains(target, path)
        return
    if target["type"] == "scrape":
        if ("urls" in target) == ("url" in target):
            yield Issue((*path, "urls"), "A scrape target requires urls")
        urls = target.get("urls", [])
    else:
        urls = []
    for number, url in enumerate(urls):
        yield from _url(url, (*path, "urls", number))
    if "url" in target:
        yield from _url(target["url"], (*path, "url"))


def _url(url: str, path: tuple[str | int, ...]) -> Iterator[Issue]:
    if "://" in url and not url.lower().startswith(("http://", "https://")):
        yield Issue(path, "unsupported protocol", "invalid_format", {"origin": "string", "format": "regex"})
    if not is_public(with_scheme(url)):
        yield Issue(path, f"Invalid URL: {url!r}")


def _webhook(webhook: Json) -> Iterator[Issue]:
    try:
        parts = urlsplit(webhook["url"])
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    if not host:
        yield Issue(("webhook", "url"), "Invalid webhook URL")
    elif parts.scheme not in ("http", "https"):
        yield Issue(("webhook", "url"), f"{HTTPS_ONLY}, not {parts.scheme}")
    elif parts.scheme == "http" and not is_loopback(host):
        # The service requires https. A receiver on this machine is accepted for development.
        yield Issue(("webhook", "url"), HTTPS_ONLY)
    refused = [
        name
        for name in webhook.get("headers", {})
        if name.lower() in MANAGED_HEADERS or name.lower().startswith(MANAGED_HEADER_PREFIX)
    ]
    if refused:
        yield Issue(("webhook", "headers"), f"{HEADERS_REFUSED}: {', '.join(refused)}")


_RULES: dict[str, Callable[[Any], Iterator[Issue]]] = {
    "search": check_search,
    "search.developer": check_developer_search,
    "search.research.paper": check_paper,
    "search.feedback": check_search_feedback,
    "feedback": check_feedback,
    "feedback.alexandria": check_provider_feedback,
    "team.threat-protection": lambda body: _threat_lists(body, ()),
    "monitor.create": check_monitor_create,
    "monitor.update": check_monitor_update,
    "scrapeOptions": check_scrape_options,
    "scrape": check_scrape,
    "batch.scrape": check_batch_scrape,
    "crawl": check_crawl,
    "crawl.params": lambda body: _url(body["url"], ("url",)),
    "map": check_map,
    "parse": check_scrape_options,
    "parse.reference": check_scrape_options,
    "extract": check_extract,
    "agent": check_agent,
    "scrape.interact": check_scrape_interact,
}
