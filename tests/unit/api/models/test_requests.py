# SPDX-License-Identifier: Apache-2.0
"""Requests: the wire form, refusals with their hints, warnings, notes, and secrets."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.api.servers import HOSTED, SELF_HOSTED
from tests.unit.api.models.tables import (
    CRON,
    HOOK,
    SCRAPE_TARGET,
    SEARCH_TARGET,
    SECRET,
    SITE,
    UUID,
    Body,
    at_site,
    ids,
    monitor,
    problems,
)

Model: TypeAlias = type[m.RequestModel]

ZDR = {"zeroDataRetention": True}
APPROVAL = {"approve": {"approvalId": UUID}}
REFUSAL = {"decline": {"approvalId": UUID}}
CLICK = {"type": "click", "selector": "a"}


def search(**fields: Any) -> Body:
    return {"query": "q", **fields}


def prompt(**fields: Any) -> Body:
    return {"prompt": "p", **fields}


def hook(*events: str) -> Body:
    return {"url": HOOK, "events": [*events]}


# fmt: off
# Model, given fields, and the body.
SENT: list[tuple[Model, Body, Body]] = [
    # Names in Python spelling, inside of other objects too.
    (m.SearchRequest, search(scrape_options={"only_main_content": False, "redact_pii": {"replace_style": "tag"}}),
     search(scrapeOptions={"onlyMainContent": False, "redactPII": {"replaceStyle": "tag"}})),
    (m.ScrapeRequest, at_site(formats=[{"type": "json", "schema_": {}}], parsers=[{"type": "pdf", "max_pages": 2}]),
     at_site(formats=[{"type": "json", "schema": {}}], parsers=[{"type": "pdf", "maxPages": 2}])),
    (m.MonitorUpdateRequest, {"judge_enabled": False, "notification": {"email": {"include_diffs": True}}},
     {"judgeEnabled": False, "notification": {"email": {"includeDiffs": True}}}),
    (m.PaperSearchRequest, search(from_date="2026-01-01", to_date="2026-02-01"),
     search(**{"from": "2026-01-01", "to": "2026-02-01"})),
    # Text, as templates render it, and short forms.
    (m.SearchRequest, search(limit=" 100 "), search(limit=100)),
    (m.SearchRequest, search(limit=5.0), search(limit=5)),
    (m.SearchRequest, search(safe="false "), search(safe=False)),
    (m.ScrapeRequest, at_site(redactPII="TRUE"), at_site(redactPII=True)),
    (m.CrawlRequest, at_site(delay="1.5"), at_site(delay=1.5)),
    (m.CrawlRequest, at_site(delay="2"), at_site(delay=2)),
    (m.SearchRequest, search(sources=("web", "news")), search(sources=["web", "news"])),
    (m.MonitorCreateRequest, monitor(webhook=HOOK), monitor(webhook={"url": HOOK})),
    (m.MonitorCreateRequest, monitor(schedule=" 0 5 * * *"), monitor(schedule={"cron": " 0 5 * * *"})),
    (m.MonitorUpdateRequest, {"schedule": "daily at 9:00"}, {"schedule": {"text": "daily at 9:00"}}),
    (m.MonitorCreateRequest, monitor(targets=[SEARCH_TARGET, SITE, SITE + "b"], goal="g"),
     monitor(targets=[SEARCH_TARGET, {"type": "scrape", "urls": [SITE, SITE + "b"]}], goal="g")),
    (m.ScrapeRequest, at_site(formats=[{"type": "json", "schema": m.Viewport}]),
     at_site(formats=[{"type": "json", "schema": m.Viewport.model_json_schema()}])),
    # None is sent only where the service documents null; defaults are not sent.
    (m.SearchRequest, search(limit=None, scrapeOptions={"maxAge": None}), search(scrapeOptions={})),
    (m.MonitorUpdateRequest, {"goal": None}, {"goal": None}),
    (m.ScrapeRequest, at_site(formats=["markdown", {"type": "changeTracking", "tag": None}], parsers=[]),
     at_site(formats=["markdown", {"type": "changeTracking", "tag": None}], parsers=[])),
    # Objects of other models; their type is always sent.
    (m.ScrapeRequest, at_site(formats=["markdown", m.ScreenshotFormat(full_page=True)],
                              actions=[m.WaitAction(milliseconds=5), m.ClickAction(selector="a")]),
     at_site(formats=["markdown", {"type": "screenshot", "fullPage": True}],
             actions=[{"type": "wait", "milliseconds": 5}, CLICK])),
    # What rules between fields allow.
    (m.SearchRequest, search(scrapeOptions={"formats": ["markdown"], **ZDR}),
     search(scrapeOptions={"formats": ["markdown"], **ZDR})),
    (m.MonitorCreateRequest, monitor(targets=[{**SCRAPE_TARGET, "scrapeOptions": {"formats": ["changeTracking"]}}]),
     monitor(targets=[{**SCRAPE_TARGET, "scrapeOptions": {"formats": ["changeTracking"]}}])),
    (m.MonitorUpdateRequest, {"targets": [SEARCH_TARGET]}, {"targets": [SEARCH_TARGET]}),
    (m.MonitorUpdateRequest, {"targets": [SEARCH_TARGET], "goal": None}, {"targets": [SEARCH_TARGET], "goal": None}),
    (m.AgentRequest, prompt(exchange=APPROVAL, threadId=UUID), prompt(exchange=APPROVAL, threadId=UUID)),
    (m.AgentRequest, prompt(exchange=REFUSAL, threadId=UUID), prompt(exchange=REFUSAL, threadId=UUID)),
    (m.AgentRequest, prompt(exchange={"requireApproval": True}, mode="chat"),
     prompt(exchange={"requireApproval": True}, mode="chat")),
    (m.AgentRequest, prompt(exchange={"requireApproval": False}), prompt(exchange={"requireApproval": False})),
    (m.DeveloperSearchRequest, search(repos=["a/b"], types=["doc", "issue"]),
     search(repos=["a/b"], types=["doc", "issue"])),
    (m.DeveloperSearchRequest, search(sources=["a"], types=["doc"]), search(sources=["a"], types=["doc"])),
    (m.DeveloperSearchRequest, search(sources=["a"], repos=["a/b"], types=[]),
     search(sources=["a"], repos=["a/b"], types=[])),
    (m.DeveloperSearchRequest, search(repos=[], types=["doc"]), search(repos=[], types=["doc"])),
    (m.PaperRequest, {}, {}),
]

# Model, fields, path of the problem, and a part of its text.
REFUSED: list[tuple[Model, Body, str, str]] = [
    # Names: the nearest one, or where the field belongs.
    (m.SearchRequest, search(limt=5), "limt", "'limit'"),
    (m.SearchRequest, search(Include_Domains=[]), "Include_Domains", "write include_domains=[...]"),
    (m.ScrapeRequest, at_site(redactPii=True), "redactPii", "'redactPII'"),
    (m.ScrapeRequest, at_site(zzz=1), "zzz", "the fields are formats, onlyMainContent,"),
    (m.ScrapeRequest, at_site(formats=[{"type": "json", "shema": {}}]), "formats.0.shema", "'schema'"),
    (m.ScrapeTarget, {**SCRAPE_TARGET, "scrapeOptions": {"formats": ["markdown", {"type": "deterministicJson"}]}},
     "scrapeOptions.formats.1", "'changeTracking'"),
    (m.ScrapeRequest, at_site(location={"county": "US"}), "location.county", "'country'"),
    (m.AgentRequest, prompt(max_credit=5), "max_credit", "'maxCredits' (in Python: 'max_credits')"),
    (m.ScrapeRequest, at_site(maxAge=1, max_age=1), "", "'maxAge' and 'max_age'"),
    (m.SearchRequest, search(only_main_content=True), "only_main_content",
     'write scrape_options={"only_main_content": ...}'),
    (m.CrawlRequest, at_site(formats=["html"]), "formats", 'write scrape_options={"formats": ...}'),
    (m.InteractRequest, {"saveChanges": True}, "saveChanges", 'write profile={"save_changes": ...}'),
    (m.ScrapeTarget, {**SCRAPE_TARGET, "formats": []}, "formats", 'write scrape_options={"formats": ...}'),
    (m.CrawlTarget, at_site(type="crawl", limit=1), "limit", 'write crawl_options={"limit": ...}'),
    (m.ScrapeRequest, at_site(scrapeOptions={}), "scrapeOptions",
     "write only_main_content=... (pass each option of a page as an argument)"),
    (m.BatchScrapeRequest, {"urls": [SITE], "scrape_options": {}}, "scrape_options", "write only_main_content=..."),
    # A mapping that a template rendered to text.
    (m.MonitorCreateRequest, monitor(schedule=' {"text": "daily"}'), "schedule", "render_template_as_native_obj=True"),
    # Names of version 1 of the service.
    (m.CrawlRequest, at_site(maxDepth=2), "maxDepth", "write max_discovery_depth=..."),
    (m.CrawlRequest, at_site(max_depth=2), "max_depth", "write max_discovery_depth=..."),
    (m.CrawlRequest, at_site(allowBackwardLinks=True), "allowBackwardLinks", "write crawl_entire_domain=..."),
    (m.CrawlRequest, at_site(allowBackwardCrawling=True), "allowBackwardCrawling", "write crawl_entire_domain=..."),
    (m.CrawlRequest, at_site(ignore_sitemap=True), "ignore_sitemap", 'write sitemap="skip" (or "include" for false)'),
    (m.CrawlOptions, {"ignoreSitemap": True}, "ignoreSitemap", 'write sitemap="skip"'),
    # Choices.
    (m.ScrapeRequest, at_site(formats=["markdwn"]), "formats.0", "did you mean 'markdown'?"),
    (m.ScrapeRequest, at_site(formats=["question"]), "formats.0", "an object with type 'question'"),
    (m.ScrapeRequest, at_site(actions=[{"type": "clik"}]), "actions.0", "did you mean 'click'?"),
    (m.ScrapeRequest, at_site(actions=[{"type": "frobnicate"}]), "actions.0", "use one of wait, screenshot"),
    (m.ScrapeRequest, at_site(parsers=[{}]), "parsers.0", "needs a 'type': one of pdf, image"),
    (m.SearchRequest, search(sources=[{"type": "news", "tbs": "qdr:d"}]), "sources.0.tbs", "no such"),
    (m.MonitorCreateRequest, monitor(webhook=hook("page")), "webhook.events", "'monitor.page'"),
    (m.MonitorCreateRequest, monitor(webhook=hook("zzz")), "webhook.events", "monitor.check.completed"),
    (m.CrawlRequest, at_site(webhook=hook("crawl.page")), "webhook.events",
     "omit the prefix of a job's events; did you mean 'page'?"),
    (m.CrawlRequest, at_site(webhook=hook("zzz")), "webhook.events", "use one of started, page, completed, failed"),
    (m.AgentRequest, prompt(webhook=hook("agent.complete")), "webhook.events", "'completed'"),
    (m.MonitorSchedule, {**CRON, "timezone": "Europe/Berln"}, "timezone", "'Europe/Berlin'"),
    (m.SearchRequest, search(include_domains="a.com"), "include_domains", "`| tojson`"),
    # Fields that exclude or need each other.
    (m.SearchRequest, search(includeDomains=["a.com"], excludeDomains=["b.com"]), "excludeDomains",
     "are mutually exclusive"),
    (m.SearchTarget, {**SEARCH_TARGET, "includeDomains": [], "excludeDomains": []}, "excludeDomains", "exclusive"),
    (m.SearchRequest, search(sources=["web", {"type": "news"}]), "sources", "does not accept a mixture"),
    (m.SearchRequest, search(categories=[{"type": "pdf"}, "pdf"]), "categories", "does not accept a mixture"),
    (m.SearchRequest, search(categories=["developer", "pdf"]), "categories", "'developer'"),
    (m.SearchRequest, search(enterprise=["zdr"], scrapeOptions={"onlyCleanContent": True}), "",
     "not supported with zero data retention"),
    (m.SearchRequest, search(scrapeOptions={"formats": ["screenshot"], **ZDR}), "scrapeOptions",
     "formats: screenshots are not supported"),
    (m.ScrapeRequest, at_site(formats=[{"type": "screenshot", "quality": 5}], **ZDR), "", "formats: screenshots"),
    (m.ScrapeRequest, at_site(onlyCleanContent=True, **ZDR), "", "onlyCleanContent"),
    (m.CrawlRequest, at_site(scrapeOptions={"formats": ["screenshot"]}, **ZDR), "", "scrapeOptions.formats"),
    (m.CrawlRequest, at_site(scrapeOptions=ZDR), "scrapeOptions.zeroDataRetention", "no such field"),
    (m.ScrapeRequest, at_site(formats=["screenshot", {"type": "screenshot"}]), "formats", "at most one screenshot"),
    (m.ScrapeRequest, at_site(formats=["changeTracking"]), "formats", "add 'markdown'"),
    (m.ScrapeRequest, at_site(formats=["rawBase64", "markdown"]), "formats", "cannot be combined"),
    (m.ScrapeRequest, at_site(actions=[{"type": "wait"}]), "actions.0", "exactly one"),
    (m.ScrapeRequest, at_site(actions=[{"type": "wait", "milliseconds": 1, "selector": "a"}]), "actions.0",
     "exactly one"),
    (m.MonitorSchedule, {"timezone": "UTC"}, "", "one of 'cron' and 'text'"),
    (m.MonitorSchedule, {**CRON, "text": "hourly"}, "", "mutually exclusive"),
    (m.MonitorUpdateRequest, {}, "", "at least one field"),
    (m.MonitorUpdateRequest, {"name": None}, "", "at least one field"),
    (m.MonitorUpdateRequest, {"webhook": None, "name": "n"}, "", "only change it"),
    (m.MonitorUpdateRequest, {"targets": [SEARCH_TARGET], "goal": None, "judgeEnabled": True}, "",
     "needs a non-blank goal"),
    (m.ScrapeInteractRequest, {"language": "bash"}, "", "'code' or 'prompt'"),
    (m.AgentRequest, prompt(exchange=APPROVAL), "", "also set its 'threadId'"),
    (m.AgentRequest, prompt(exchange=REFUSAL, mode="chat"), "", "also set its 'threadId'"),
    (m.AgentRequest, prompt(exchange={**APPROVAL, **REFUSAL}, threadId=UUID), "exchange", "set one of them"),
    (m.AgentRequest, prompt(exchange={"requireApproval": True}), "", "requires mode 'chat'"),
    (m.AgentRequest, prompt(exchange={"requireApproval": True}, mode="extract"), "", "requires mode 'chat'"),
    (m.DeveloperSearchRequest, search(repos=["a/b"], types=["doc"]), "", "repos"),
    (m.DeveloperSearchRequest, search(sources=["a"], types=["issue", "readme"]), "", "sources"),
    (m.PaperRequest, {"k": 3}, "", "query"),
]

# Model, fields without a warning, fields with warnings, and the warnings' beginnings.
WARNED: list[tuple[Model, Body | None, Body, list[str]]] = [
    (m.SearchRequest, search(scrapeOptions={"formats": ["markdown"]}), search(scrapeOptions={"mobile": True}),
     ["scrapeOptions: without formats"]),
    (m.SearchRequest, None, search(scrapeOptions={"formats": ["markdown", "changeTracking"]}), ["formats: according"]),
    (m.ScrapeTarget, {**SCRAPE_TARGET, "scrapeOptions": {"formats": ["markdown", "changeTracking"]}},
     {**SCRAPE_TARGET, "scrapeOptions": {"formats": ["markdown", "summary", "links"]}},
     ["scrapeOptions.formats: a check returns no links", "scrapeOptions.formats: a check returns no summary"]),
    (m.ScrapeRequest, at_site(storeInCache=True), at_site(storeInCache=True, headers={"A": "b"}), ["storeInCache"]),
    (m.ScrapeRequest, at_site(actions=[CLICK]), at_site(storeInCache=True, actions=[CLICK]), ["storeInCache"]),
    (m.ScrapeRequest, at_site(onlyCleanContent=True), at_site(onlyCleanContent=True, lockdown=True),
     ["onlyCleanContent"]),
    (m.ScrapeRequest, at_site(waitFor=2500, timeout=5000), at_site(waitFor=2501, timeout=5000), ["waitFor"]),
    (m.ScrapeRequest,
     at_site(waitFor=30_000, actions=[{"type": "wait", "milliseconds": 29_000}, {"type": "wait", "selector": "a"}]),
     at_site(waitFor=30_000, actions=[{"type": "wait", "milliseconds": 29_001}, {"type": "wait", "selector": "a"}]),
     ["actions: waits and waitFor exceed 60 s"]),
    (m.ScrapeRequest, at_site(formats=[{"type": "screenshot", "viewport": {"width": 7680, "height": 4320}}]),
     at_site(actions=[{"type": "screenshot", "viewport": {"width": 7681, "height": 1}}]), ["viewport"]),
    (m.ScrapeRequest, None, at_site(formats=[{"type": "screenshot", "viewport": {"width": 1, "height": 4321}}]),
     ["viewport"]),
    (m.BatchScrapeRequest, {"urls": [SITE], "ignoreInvalidURLs": True}, {"urls": [SITE]}, ["ignoreInvalidURLs"]),
    (m.BatchScrapeRequest, None, {"urls": [SITE] * 3, "ignoreInvalidURLs": False, "lockdown": True},
     ["urls: 2 of them", "lockdown"]),
    (m.CrawlRequest, at_site(limit=5), at_site(), ["limit"]),
    (m.CrawlRequest, at_site(limit=5, delay=60), at_site(limit=5, delay=61), ["delay: more than 60"]),
    (m.CrawlRequest, at_site(limit=5, delay=0.5), at_site(limit=5, delay=0), ["delay: the service may reject 0"]),
    (m.CrawlRequest, at_site(limit=5, delay=1, maxConcurrency=1), at_site(limit=5, delay=1, maxConcurrency=2),
     ["maxConcurrency"]),
    (m.CrawlRequest, at_site(limit=5, includePaths=["^/$", "/blog/.*"]), at_site(limit=5, includePaths=["/blog/.*"]),
     ["includePaths: no expression"]),
    (m.CrawlRequest, {"url": "a.example/blog/", "limit": 5, "includePaths": ["/blog/.*"]},
     {"url": f"{SITE}/x?page=1", "limit": 5, "includePaths": ["page="]}, ["includePaths: no expression"]),
    (m.CrawlRequest, {"url": f"{SITE}/x?page=1", "limit": 5, "includePaths": ["page="], "regexOnFullURL": True},
     at_site(limit=5, includePaths=["*.html"], excludePaths=["(/a"]),
     ["includePaths: '*.html'", "excludePaths: '(/a'"]),
    (m.CrawlRequest, at_site(limit=5, excludePaths=["^https://a[.]example/b/.*$"], regexOnFullURL=True),
     at_site(limit=5, excludePaths=["https://a.example/b/*", "(/a"], regexOnFullURL=True),
     ["excludePaths: 'https://a.example/b/*' is a glob, not a regular expression; write '^https://a[.]example/b/.*$'",
      "excludePaths: '(/a' is not a valid"]),
    (m.CrawlRequest, at_site(limit=5, excludePaths=["^/a"]), at_site(limit=5, excludePaths=["^/$"]),
     ["excludePaths: an expression matches the start"]),
    (m.CrawlRequest, at_site(limit=5, excludePaths=[r"^/(?<year>\d+)/$", r"\p{Lu}"]),
     at_site(limit=5, excludePaths=["^/(?<end>$)"]), ["excludePaths: an expression matches the start"]),
    (m.CrawlRequest, None, at_site(limit=5, scrapeOptions={"lockdown": True}), ["scrapeOptions.lockdown"]),
    (m.MapRequest, at_site(sitemap="only", ignoreCache=True), at_site(sitemap="skip", ignoreCache=True),
     ["ignoreCache"]),
    (m.MapRequest, None, at_site(includePaths=["/a", "?"], excludePaths=["("]), ["includePaths: '?'", "excludePaths"]),
    (m.AgentRequest, prompt(maxCredits=2500), prompt(maxCredits=2501), ["maxCredits"]),
    (m.AgentRequest, prompt(strictConstrainToURLs=True, urls=["a.example"]), prompt(strictConstrainToURLs=True),
     ["strictConstrainToURLs"]),
    (m.InteractRequest, {"ttl": 60}, {}, ["ttl"]),
    (m.ScrapeInteractRequest, {"code": "1"}, {"code": "1", "prompt": "p"}, ["code and prompt"]),
    (m.DeveloperSearchRequest, search(min_stars=4, max_stars=4), search(min_stars=5, max_stars=4), ["min_stars"]),
    (m.PaperSearchRequest, search(from_date="2026-02-01", to_date="2026-02-01"),
     search(from_date="2026-02-01", to_date="2026-01-01"), ["from"]),
    (m.MonitorCreateRequest, monitor(targets=[at_site(type="crawl", crawlOptions={"limit": 5})]),
     monitor(judgeEnabled=True, schedule={"cron": "5/15 * 1 * 1"}, targets=[at_site(type="crawl", crawlOptions={})]),
     ["judgeEnabled", "cron", "cron", "crawlOptions.limit"]),
    (m.CrawlTarget, at_site(type="crawl", crawlOptions={"limit": 5, "maxDiscoveryDepth": 1}),
     at_site(type="crawl", crawlOptions={"limit": 5, "maxDepth": 1, "prompt": "p"}),
     ["crawlOptions.maxDepth", "crawlOptions.prompt"]),
    (m.MonitorUpdateRequest, {"status": "active", "schedule": CRON}, {"status": "active"}, ["status"]),
    (m.MonitorUpdateRequest, {"targets": [{**SCRAPE_TARGET, "id": UUID}]}, {"targets": [SCRAPE_TARGET]}, ["targets"]),
    (m.MonitorUpdateRequest, {"goal": "g", "judgeEnabled": True}, {"goal": "g"}, ["goal"]),
]

# Model, and fields with a secret.
SECRETS: list[tuple[Model, Body]] = [
    (m.SearchRequest, search(scrapeOptions={"headers": {"Cookie": SECRET}})),
    (m.ScrapeRequest, at_site(actions=[{"type": "write", "text": SECRET}])),
    (m.MapRequest, at_site(headers={"Cookie": SECRET})),
    (m.ParseOptions, {"headers": {"Cookie": SECRET}}),
    (m.AgentRequest, prompt(webhook={"url": HOOK, "headers": {"X-Secret": SECRET}})),
    (m.MonitorCreateRequest, monitor(targets=[{**SCRAPE_TARGET, "scrapeOptions": {"headers": {"A": SECRET}}}],
                                     webhook={"url": HOOK, "headers": {"X-Secret": SECRET}})),
    (m.ExecuteRequest, {"code": SECRET}),
    (m.ScrapeInteractRequest, {"code": SECRET, "prompt": "p"}),
]

SHOT = {"type": "screenshot"}
AGES: list[tuple[Model, Body, str | None]] = [
    (m.ScrapeRequest, {}, "2 days"),
    (m.ScrapeRequest, {"max_age": 0}, None),
    (m.ScrapeRequest, {"max_age": 1}, "1 ms"),
    (m.ScrapeRequest, {"max_age": 3_600_000}, "1 hour"),
    (m.ScrapeRequest, {"max_age": 5_400_000}, "1 hour 30 minutes"),
    (m.ScrapeRequest, {"lockdown": True}, "2 years"),
    (m.ScrapeRequest, {"max_age": 10**30}, f"{10**30} ms"),
    (m.ScrapeRequest, {"lockdown": True, "max_age": 60_000}, "1 minute"),
    (m.ScrapeRequest, {"min_age": 1}, None),
    (m.ScrapeRequest, {"headers": {"Cookie": "x"}}, None),
    (m.ScrapeRequest, {"actions": [{"type": "wait", "milliseconds": 1}]}, None),
    (m.ScrapeRequest, {"profile": {"name": "x"}}, None),
    (m.ScrapeRequest, {"formats": ["markdown", "changeTracking"]}, None),
    (m.ScrapeRequest, {"formats": [{**SHOT, "quality": 1}]}, None),
    (m.ScrapeRequest, {"formats": [{**SHOT, "viewport": {"width": 1, "height": 1}}]}, None),
    (m.ScrapeRequest, {"formats": [{**SHOT, "fullPage": True}]}, "2 days"),
    (m.CrawlRequest, {"limit": 1}, "2 days"),
    (m.CrawlRequest, {"limit": 1, "scrape_options": {"max_age": 0}}, None),
    (m.MapRequest, {}, None),
]
# fmt: on


@pytest.mark.rule("request-body", "format-forms", "parser-empty", "webhook-short-form", "monitor-update")
@pytest.mark.rule("monitor-clear-goal", "target-scrape-options", "format-change-tracking", "agent-exchange")
@pytest.mark.rule("search-zero-data-retention", "developer-scope", "research-paper")
@pytest.mark.parametrize(("model", "given", "wire"), SENT, ids=ids(SENT))
def test_sent(model: Model, given: Body, wire: Body) -> None:
    request = model.model_validate(given)
    assert request.to_wire() == wire
    assert model.model_validate(wire) == request


@pytest.mark.rule("request-unknown-keys", "scrape-top-level", "batch-options", "crawl-scrape-options")
@pytest.mark.rule("crawl-version-1", "webhook-events", "webhook-events-monitor", "webhook-events-steps")
@pytest.mark.rule("format-change-tracking", "format-further", "format-one-screenshot", "action-wait")
@pytest.mark.rule("zdr-excludes", "scrape-zero-data-retention", "crawl-zero-data-retention")
@pytest.mark.rule("search-zero-data-retention", "search-sources", "search-categories", "search-domains")
@pytest.mark.rule("target-domains", "schedule-form", "monitor-webhook-stays", "monitor-update-empty")
@pytest.mark.rule("monitor-clear-goal", "scrape-interact", "agent-exchange")
@pytest.mark.rule("developer-scope", "research-paper", "target-formats")
@pytest.mark.parametrize(("model", "body", "path", "words"), REFUSED, ids=ids(REFUSED))
def test_refused(model: Model, body: Body, path: str, words: str) -> None:
    found = problems(model, body)
    assert [*found] == [path]
    assert words in found[path]


@pytest.mark.rule("scrape-store", "scrape-wait-for", "scrape-waits-together", "scrape-lockdown")
@pytest.mark.rule("format-screenshot", "search-scrape-options", "search-change-tracking", "crawl-paths")
@pytest.mark.rule("crawl-limit", "crawl-delay", "batch-ignore-invalid-urls", "agent-urls")
@pytest.mark.rule("agent-free-runs", "session-ttl", "target-crawl-limit", "target-crawl-depth")
@pytest.mark.rule("monitor-update", "target-formats")
@pytest.mark.parametrize(("model", "quiet", "body", "warnings"), WARNED, ids=ids(WARNED))
def test_warned(model: Model, quiet: Body | None, body: Body, warnings: list[str]) -> None:
    assert quiet is None or model.model_validate(quiet).warnings() == []
    found = model.model_validate(body).warnings()
    assert len(found) == len(warnings), found
    assert all(text.startswith(start) for text, start in zip(found, warnings, strict=True)), found


@pytest.mark.rule("scrape-headers", "webhook-headers", "code-text")
@pytest.mark.parametrize(("model", "body"), SECRETS, ids=ids(SECRETS))
def test_secrets_are_sent_and_not_shown(model: Model, body: Body) -> None:
    request = model.model_validate(body)
    assert request.to_wire() == body
    assert SECRET not in f"{request!r} {request}"


@pytest.mark.rule("scrape-max-age", "scrape-cache")
@pytest.mark.parametrize(("model", "fields", "age"), AGES, ids=ids(AGES))
def test_a_note_says_how_old_a_page_may_be(model: Model, fields: Body, age: str | None) -> None:
    notes = model.model_validate({"url": SITE, **fields}).notes(HOSTED)
    assert [note.split(" old")[0] for note in notes] == ([f"pages may be up to {age}"] if age else [])
    # It has no cache.
    assert model.model_validate({"url": SITE, **fields}).notes(SELF_HOSTED) == []


@pytest.mark.rule("scrape-max-age")
@pytest.mark.parametrize(
    ("options", "notes"),
    [
        ({"max_age": 60_000}, 0),
        ({"formats": ["markdown"]}, 1),
        ({"formats": ["markdown"], "max_age": 0}, 0),
    ],
    ids=["no formats", "formats", "no cache"],
)
def test_a_search_scrapes_only_with_formats(options: Body, notes: int) -> None:
    assert len(m.SearchRequest(query="q", scrape_options=options).notes(HOSTED)) == notes


@pytest.mark.rule("target-scrape-options")
def test_a_monitor_fetches_pages_anew_by_default() -> None:
    def notes(**options: Any) -> list[str]:
        target = {**SCRAPE_TARGET, "scrapeOptions": options}
        return m.MonitorCreateRequest.model_validate(monitor(targets=[target])).notes(HOSTED)

    assert notes() == []
    assert notes(maxAge=60_000) == [
        "pages may be up to 1 minute old, from the service's cache; set max_age=0 to fetch them again"
    ]


@pytest.mark.rule("request-unknown-keys", "monitor-mandatory", "target-options-unchecked")
def test_all_problems_are_reported_together() -> None:
    body = {"query": "", "limt": 1, "limit": 0, "tbs": "x", "scrapeOptions": {"maxage": 1, "timeout": 5}}
    assert set(problems(m.SearchRequest, body)) == {
        "query",
        "limt",
        "limit",
        "tbs",
        "scrapeOptions.maxage",
        "scrapeOptions.timeout",
    }
    assert set(problems(m.MonitorCreateRequest, {})) == {"name", "schedule", "targets"}
    target = {**SCRAPE_TARGET, "scrapeOptions": {"timeout": 999, "maxage": 1}}
    assert set(problems(m.MonitorCreateRequest, monitor(targets=[SCRAPE_TARGET, target]))) == {
        "targets.1.scrapeOptions.timeout",
        "targets.1.scrapeOptions.maxage",
    }


@pytest.mark.rule("monitor-search-goal")
@pytest.mark.parametrize(
    "goal, allowed",
    [
        ({}, False),
        ({"goal": None}, False),
        ({"goal": " \n"}, False),
        ({"goal": " ", "judgeEnabled": True}, False),
        ({"goal": "g"}, True),
        ({"goal": "g", "judgeEnabled": True}, True),
        ({"judgeEnabled": False}, True),
        ({"goal": "", "judgeEnabled": "false"}, True),
    ],
    ids=["none", "null", "blank", "blank, judged", "goal", "goal, judged", "not judged", "empty, not judged"],
)
def test_a_search_target_needs_a_goal_unless_judging_is_off(goal: Body, allowed: bool) -> None:
    assert problems(m.MonitorCreateRequest, monitor(**goal)) == {}
    found = problems(m.MonitorCreateRequest, monitor(targets=[SCRAPE_TARGET, SEARCH_TARGET], **goal))
    assert (found == {}) is allowed


@pytest.mark.rule("batch-ignore-invalid-urls", "search-ignore-invalid-urls")
def test_bad_urls_are_left_to_the_service_where_it_drops_them() -> None:
    body = {"urls": [SITE, "https://", "a b"]}
    request = m.BatchScrapeRequest.model_validate({**body, "ignoreInvalidURLs": True})
    assert request.to_wire()["urls"] == body["urls"]
    assert any(text.startswith("urls: 2 of 3 are invalid") for text in request.warnings())
    for unless in ({}, {"ignoreInvalidURLs": False}):
        with pytest.raises(ValidationError, match="the URL has no host"):
            m.BatchScrapeRequest.model_validate({**body, **unless})


@pytest.mark.rule("scrape-headers")
@pytest.mark.parametrize(
    "headers",
    [{"X": f"{SECRET}\r\nY: z"}, {"X": {"deep": SECRET}}, SECRET, {"bad name": SECRET}],
    ids=["line break", "object", "text", "bad name"],
)
def test_secrets_stay_out_of_errors(headers: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        m.WebhookConfig.model_validate({"url": HOOK, "headers": headers, "hedders": {"a": SECRET}})
    assert SECRET not in str(caught.value)
    assert all(SECRET not in issue["msg"] for issue in caught.value.errors())


def test_a_repr_shows_what_was_given() -> None:
    assert repr(m.SearchRequest(query="q", limit="5")) == "SearchRequest(query='q', limit=5)"


class Odd(Mapping[str, Any]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no")

    def __len__(self) -> int:
        return 1


def test_any_mapping_is_read() -> None:
    for body in (MappingProxyType({"query": "q"}), UserDict({"query": "q"})):
        assert m.SearchRequest.model_validate(body).to_wire() == {"query": "q"}


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (m.SearchRequest, Odd()),
        (m.SearchRequest, {1: 2}),
        (m.SearchRequest, {"query": Odd()}),
        (m.ScrapeOptions, {"headers": Odd()}),
        (m.ScrapeOptions, {"headers": {"a": Odd()}}),
    ],
    ids=["unreadable", "number", "unreadable text", "unreadable map", "unreadable value"],
)
def test_anything_else_is_a_validation_error(model: Model, body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(body)


def nested(depth: int) -> Body:
    schema: Body = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def looped() -> Body:
    schema: Body = {}
    schema["properties"] = {"a": schema}
    return schema


@pytest.mark.parametrize("schema", [nested(100), nested(5000), looped()], ids=["deep", "deeper", "endless"])
def test_a_bottomless_schema_is_a_validation_error(schema: Body) -> None:
    with pytest.raises(ValidationError):
        m.JsonFormat(schema=schema)


def test_a_schema_is_copied_so_that_later_changes_do_not_reach_the_request() -> None:
    schema: Body = {"properties": {"a": {"type": "string"}}}
    request = m.JsonFormat(schema=schema)
    schema["properties"]["a"]["type"] = "money"
    assert request.to_wire()["schema"] == {"properties": {"a": {"type": "string"}}}


def test_assignment_is_validated_and_sent() -> None:
    request = m.SearchRequest(query="q")
    request.limit = "7"  # type: ignore[assignment]
    request.exclude_domains = ["a.com"]
    assert request.to_wire() == {"query": "q", "limit": 7, "excludeDomains": ["a.com"]}
    with pytest.raises(ValidationError):
        request.limit = 101
    with pytest.raises(ValidationError):
        request.include_domains = ["b.com"]
    assert request.to_wire() == {"query": "q", "limit": 7, "excludeDomains": ["a.com"]}
    request.limit = None
    assert "limit" not in request.to_wire()


def test_a_constructed_model_is_checked_when_it_is_validated() -> None:
    request = m.SearchRequest.model_construct(query="q", limit=500)
    assert request.to_wire() == {"query": "q", "limit": 500}
    with pytest.raises(ValidationError):
        m.SearchRequest.model_validate(request)


def test_a_relative_of_the_wanted_model_is_converted() -> None:
    target = m.ScrapeTarget(
        urls=["a.example"], scrape_options=m.ScrapeOptions(formats=["html"], headers={"A": "b"})
    )
    assert type(target.scrape_options) is m.MonitorScrapeOptions
    assert target == m.ScrapeTarget.model_validate(target.to_wire())
    webhook = m.WebhookConfig(url=HOOK, events=["monitor.page"])
    created = m.MonitorCreateRequest(name="n", schedule=CRON, targets=[target], webhook=webhook)
    assert type(created.webhook) is m.MonitorWebhookConfig
    with pytest.raises(ValidationError):
        m.MonitorCreateRequest(
            name="n", schedule=CRON, targets=[target], webhook=m.WebhookConfig(url=HOOK, events=["page"])
        )


def test_a_request_reads_its_own_json() -> None:
    body = b'{"query": "q", "limit": "5", "scrapeOptions": {"formats": ["markdown", {"type": "html"}]}}'
    assert m.SearchRequest.model_validate_json(body).to_wire() == {
        "query": "q",
        "limit": 5,
        "scrapeOptions": {"formats": ["markdown", {"type": "html"}]},
    }
