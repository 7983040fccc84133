"""How requests read names, values and nothing; what goes on the wire; what stays out of sight."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.api.query import Query

CRON = {"cron": "*/30 * * * *"}
SCRAPE = {"type": "scrape", "urls": ["https://example.com"]}
SEARCH = {"type": "search", "queries": ["q"]}


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, python, wire",
    [
        (
            m.SearchRequest,
            {"query": "q", "ignore_invalid_urls": True},
            {"query": "q", "ignoreInvalidURLs": True},
        ),
        (
            m.SearchRequest,
            {"query": "q", "scrape_options": {"only_main_content": False}, "include_domains": ["a.com"]},
            {"query": "q", "scrapeOptions": {"onlyMainContent": False}, "includeDomains": ["a.com"]},
        ),
        (
            m.ScrapeOptions,
            {
                "redact_pii": {"replace_style": "tag"},
                "skip_tls_verification": True,
                "remove_base64_images": False,
            },
            {"redactPII": {"replaceStyle": "tag"}, "skipTlsVerification": True, "removeBase64Images": False},
        ),
        (
            m.ScrapeOptions,
            {"formats": [{"type": "json", "schema_": {}}], "parsers": [{"type": "pdf", "max_pages": 2}]},
            {"formats": [{"type": "json", "schema": {}}], "parsers": [{"type": "pdf", "maxPages": 2}]},
        ),
        (
            m.ThreatProtection,
            {"risk_score_threshold": 1, "blocked_tlds": ["zip"], "failure_policy": "open"},
            {"riskScoreThreshold": 1, "blockedTlds": ["zip"], "failurePolicy": "open"},
        ),
        (
            m.CrawlOptions,
            {"regex_on_full_url": True, "deduplicate_similar_urls": False, "ignore_robots_txt": True},
            {"regexOnFullURL": True, "deduplicateSimilarURLs": False, "ignoreRobotsTxt": True},
        ),
        (
            m.MonitorUpdateRequest,
            {"judge_enabled": False, "notification": {"email": {"include_diffs": True}}},
            {"judgeEnabled": False, "notification": {"email": {"includeDiffs": True}}},
        ),
    ],
)
def test_python_and_wire_names_are_the_same_request(
    model: type[m.RequestModel], python: dict[str, Any], wire: dict[str, Any]
) -> None:
    assert model.model_validate(python) == model.model_validate(wire)
    assert model.model_validate(python).to_wire() == wire


@pytest.mark.rule("request-unknown-keys")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.SearchRequest, {"query": "q", "limt": 5}, "limt", "'limit'"),
        (
            m.SearchRequest,
            {"query": "q", "ignoreInvalidUrls": True},
            "ignoreInvalidUrls",
            "'ignoreInvalidURLs'",
        ),
        (m.SearchRequest, {"query": "q", "Include_Domains": []}, "Include_Domains", "'include_domains'"),
        (m.SearchRequest, {"query": "q", "formats": ["html"]}, "formats", "belongs in 'scrapeOptions'"),
        (
            m.SearchRequest,
            {"query": "q", "only_main_content": True},
            "only_main_content",
            "in 'scrapeOptions'",
        ),
        (m.CrawlTarget, {"type": "crawl", "url": "a.example", "limit": 1}, "limit", "in 'crawlOptions'"),
        (m.ScrapeTarget, {**SCRAPE, "formats": []}, "formats", "in 'scrapeOptions'"),
        (m.ScrapeOptions, {"redactPii": True}, "redactPii", "'redactPII'"),
        (m.ScrapeOptions, {"zzz": 1}, "zzz", "the fields are formats, onlyMainContent,"),
        (m.ScrapeOptions, {"formats": [{"type": "json", "shema": {}}]}, "formats.0.shema", "'schema'"),
        (m.ScrapeOptions, {"location": {"county": "US"}}, "location.county", "'country'"),
        (m.ScrapeOptions, {"formats": ["markdwn"]}, "formats.0", "did you mean 'markdown'?"),
        (m.ScrapeOptions, {"actions": [{"type": "clik"}]}, "actions.0", "did you mean 'click'?"),
        (m.ScrapeOptions, {"actions": [{"type": "frobnicate"}]}, "actions.0", "there are wait, screenshot"),
        (m.ScrapeOptions, {"formats": ["question"]}, "formats.0", "an object with type 'question'"),
        (m.ScrapeOptions, {"parsers": [{}]}, "parsers.0", "needs a 'type': one of pdf, image"),
        (
            m.SearchRequest,
            {"query": "q", "sources": [{"type": "news", "tbs": "qdr:d"}]},
            "sources.0.tbs",
            "no such",
        ),
        (m.MonitorWebhookConfig, {"url": "https://a", "events": ["page"]}, "events", "'monitor.page'"),
        (
            m.MonitorWebhookConfig,
            {"url": "https://a", "events": ["zzz"]},
            "events",
            "monitor.check.completed",
        ),
        (m.MonitorSchedule, {**CRON, "timezone": "Europe/Berln"}, "timezone", "'Europe/Berlin'"),
        (m.SearchRequest, {"query": "q", "include_domains": "a.com"}, "include_domains", "as an XComArg"),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.rule("request-unknown-keys")
def test_all_mistakes_are_told_at_once(problems: Any) -> None:
    body = {"query": "", "limt": 1, "limit": 0, "tbs": "x", "scrapeOptions": {"maxage": 1, "timeout": 5}}
    assert set(problems(m.SearchRequest, body)) == {
        "query",
        "limt",
        "limit",
        "tbs",
        "scrapeOptions.maxage",
        "scrapeOptions.timeout",
    }


def test_a_field_under_both_names_is_refused(problems: Any) -> None:
    assert "'maxAge' and 'max_age'" in problems(m.ScrapeOptions, {"maxAge": 1, "max_age": 1})[""]


@pytest.mark.rule("webhook-short-form")
@pytest.mark.parametrize(
    "model, body, wire",
    [
        (m.SearchRequest, {"query": "q", "limit": "5"}, {"query": "q", "limit": 5}),
        (m.SearchRequest, {"query": "q", "limit": " 100 "}, {"query": "q", "limit": 100}),
        (m.SearchRequest, {"query": "q", "limit": 5.0}, {"query": "q", "limit": 5}),
        (m.SearchRequest, {"query": "q", "safe": "True"}, {"query": "q", "safe": True}),
        (m.SearchRequest, {"query": "q", "safe": "false "}, {"query": "q", "safe": False}),
        (
            m.SearchRequest,
            {"query": "q", "sources": ("web", "news")},
            {"query": "q", "sources": ["web", "news"]},
        ),
        (m.SearchRequest, {"query": Query("q").phrase("a b")}, {"query": 'q "a b"'}),
        (m.ScrapeOptions, {"redactPII": "TRUE"}, {"redactPII": True}),
        (m.CrawlOptions, {"delay": "1.5"}, {"delay": 1.5}),
        (m.CrawlOptions, {"delay": "2"}, {"delay": 2}),
        (
            m.MonitorCreateRequest,
            {"name": "n", "schedule": CRON, "targets": [SCRAPE], "webhook": "https://a.example"},
            {"name": "n", "schedule": CRON, "targets": [SCRAPE], "webhook": {"url": "https://a.example"}},
        ),
    ],
)
def test_rendered_and_short_forms_are_read(
    model: type[m.RequestModel], body: dict[str, Any], wire: dict[str, Any]
) -> None:
    assert model.model_validate(body).to_wire() == wire


@pytest.mark.rule("request-body", "format-forms", "parser-empty")
@pytest.mark.parametrize(
    "model, body",
    [
        # A default that is sent can change what the request means.
        (m.SearchRequest, {"query": "q"}),
        (m.SearchRequest, {"query": "q", "scrapeOptions": {}}),
        (m.SearchRequest, {"query": "q", "scrapeOptions": {"lockdown": True}}),
        (m.SearchRequest, {"query": "q", "sources": [], "categories": []}),
        (m.ScrapeOptions, {"parsers": []}),
        (m.ScrapeOptions, {"formats": ["markdown", {"type": "html"}, "links"]}),
        (m.ScrapeOptions, {"formats": [{"type": "screenshot"}]}),
        (m.ScrapeOptions, {"formats": ["markdown", {"type": "changeTracking", "tag": None}]}),
        (m.MonitorCreateRequest, {"name": "n", "schedule": CRON, "targets": [SCRAPE], "goal": "g"}),
        (m.MonitorCreateRequest, {"name": "n", "schedule": CRON, "targets": [SCRAPE], "goal": None}),
        (m.MonitorUpdateRequest, {"goal": None}),
    ],
)
def test_what_was_given_is_sent_and_nothing_else(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    assert model.model_validate(body).to_wire() == body


@pytest.mark.rule("request-body")
def test_none_reads_as_not_given_where_the_service_documents_no_null() -> None:
    request = m.SearchRequest(query="q", limit=None, scrape_options={"maxAge": None, "formats": None})
    assert request.to_wire() == {"query": "q", "scrapeOptions": {}}
    request.limit = 5
    request.limit = None
    assert "limit" not in request.to_wire()


def test_the_type_is_sent_though_nobody_wrote_it() -> None:
    options = m.ScrapeOptions(
        formats=["markdown", m.ScreenshotFormat(full_page=True)],
        parsers=[m.PdfParser(max_pages=3)],
        actions=[m.WaitAction(milliseconds=5), m.ClickAction(selector="a")],
    )
    assert options.to_wire() == {
        "formats": ["markdown", {"type": "screenshot", "fullPage": True}],
        "parsers": [{"type": "pdf", "maxPages": 3}],
        "actions": [{"type": "wait", "milliseconds": 5}, {"type": "click", "selector": "a"}],
    }


@pytest.mark.rule("format-change-tracking", "format-further", "format-one-screenshot", "action-wait")
@pytest.mark.rule("zdr-excludes", "search-sources", "search-categories", "search-domains")
@pytest.mark.rule("monitor-webhook-stays", "target-domains", "schedule-form", "monitor-update-empty")
@pytest.mark.rule("monitor-clear-goal")
@pytest.mark.parametrize(
    "model, body, path, rule",
    [
        (
            m.SearchRequest,
            {"query": "q", "includeDomains": ["a.com"], "excludeDomains": ["b.com"]},
            "excludeDomains",
            "cannot both be given",
        ),
        (
            m.SearchTarget,
            {**SEARCH, "includeDomains": [], "excludeDomains": []},
            "excludeDomains",
            "cannot both",
        ),
        (m.SearchRequest, {"query": "q", "sources": ["web", {"type": "news"}]}, "sources", "no mixture"),
        (m.SearchRequest, {"query": "q", "categories": [{"type": "pdf"}, "pdf"]}, "categories", "no mixture"),
        (m.SearchRequest, {"query": "q", "categories": ["developer", "pdf"]}, "categories", "'developer'"),
        (
            m.SearchRequest,
            {"query": "q", "enterprise": ["zdr"], "scrapeOptions": {"onlyCleanContent": True}},
            "",
            "not supported on zero-data-retention",
        ),
        (
            m.ScrapeOptions,
            {"formats": ["screenshot", {"type": "screenshot"}]},
            "formats",
            "at most one screenshot",
        ),
        (m.ScrapeOptions, {"formats": ["changeTracking"]}, "formats", "add 'markdown'"),
        (m.ScrapeOptions, {"formats": ["rawBase64", "markdown"]}, "formats", "cannot be combined"),
        (m.ScrapeOptions, {"actions": [{"type": "wait"}]}, "actions.0", "exactly one"),
        (
            m.ScrapeOptions,
            {"actions": [{"type": "wait", "milliseconds": 1, "selector": "a"}]},
            "actions.0",
            "exactly one",
        ),
        (m.MonitorSchedule, {}, "", "one of 'cron' and 'text'"),
        (m.MonitorSchedule, {"timezone": "UTC"}, "", "one of 'cron' and 'text'"),
        (m.MonitorSchedule, {**CRON, "text": "hourly"}, "", "not both"),
        (m.MonitorUpdateRequest, {}, "", "at least one field"),
        (m.MonitorUpdateRequest, {"name": None}, "", "at least one field"),
        (m.MonitorUpdateRequest, {"webhook": None, "name": "n"}, "", "only re-point it"),
        (
            m.MonitorUpdateRequest,
            {"targets": [SEARCH], "goal": None, "judgeEnabled": True},
            "",
            "needs a non-blank goal",
        ),
    ],
)
def test_fields_that_shut_each_other_out(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, rule: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert rule in found[path]


@pytest.mark.rule("monitor-search-goal")
@pytest.mark.parametrize(
    "goal, allowed",
    [
        ({}, False),
        ({"goal": None}, False),
        ({"goal": ""}, False),
        ({"goal": " \n"}, False),
        ({"judgeEnabled": True}, False),
        ({"goal": " ", "judgeEnabled": True}, False),
        ({"goal": "g"}, True),
        ({"goal": "g", "judgeEnabled": True}, True),
        ({"judgeEnabled": False}, True),
        ({"goal": "", "judgeEnabled": "false"}, True),
    ],
)
def test_a_search_target_needs_a_goal_unless_judging_is_off(
    problems: Any, goal: dict[str, Any], allowed: bool
) -> None:
    body = {"name": "n", "schedule": CRON, **goal}
    assert problems(m.MonitorCreateRequest, {**body, "targets": [SCRAPE]}) == {}
    found = problems(m.MonitorCreateRequest, {**body, "targets": [SCRAPE, SEARCH]})
    assert (found == {}) is allowed


@pytest.mark.rule("monitor-update", "monitor-clear-goal")
@pytest.mark.parametrize("body", [{"targets": [SEARCH]}, {"targets": [SEARCH], "goal": None}, {"goal": None}])
def test_an_update_leaves_to_the_service_what_the_body_alone_does_not_tell(body: dict[str, Any]) -> None:
    assert m.MonitorUpdateRequest.model_validate(body).to_wire() == body


@pytest.mark.rule("monitor-mandatory")
def test_a_create_request_needs_name_schedule_and_targets(problems: Any) -> None:
    assert set(problems(m.MonitorCreateRequest, {})) == {"name", "schedule", "targets"}


@pytest.mark.rule("format-change-tracking", "target-scrape-options")
def test_monitors_take_change_tracking_alone_because_they_add_markdown() -> None:
    target = {
        **SCRAPE,
        "scrapeOptions": {"formats": [{"type": "changeTracking", "modes": ["json"], "prompt": "p"}]},
    }
    assert m.ScrapeTarget.model_validate(target).to_wire() == target


@pytest.mark.rule("target-options-unchecked")
def test_scrape_options_of_a_target_are_validated_here(problems: Any) -> None:
    target = {**SCRAPE, "scrapeOptions": {"timeout": 999, "maxage": 1}}
    body = {"name": "n", "schedule": CRON, "targets": [SCRAPE, target]}
    assert set(problems(m.MonitorCreateRequest, body)) == {
        "targets.1.scrapeOptions.timeout",
        "targets.1.scrapeOptions.maxage",
    }


@pytest.mark.rule("scrape-store", "search-scrape-options", "search-change-tracking", "target-crawl-limit")
@pytest.mark.parametrize(
    "model, body, count",
    [
        (m.SearchRequest, {"query": "q", "scrapeOptions": {"formats": ["markdown"]}}, 0),
        (m.SearchRequest, {"query": "q", "scrapeOptions": {"mobile": True}}, 1),
        (m.SearchRequest, {"query": "q", "scrapeOptions": {"formats": ["markdown", "changeTracking"]}}, 1),
        (m.SearchRequest, {"query": "q", "tbs": "cdr:1,cd_min:1/1/2026,cd_max:01/31/2026"}, 1),
        (m.ScrapeOptions, {"storeInCache": True, "headers": {"A": "b"}}, 1),
        (m.ScrapeOptions, {"storeInCache": True}, 0),
        (m.ScrapeOptions, {"onlyCleanContent": True, "lockdown": True}, 1),
        (m.ScrapeOptions, {"waitFor": 2501, "timeout": 5000}, 1),
        (m.ScrapeOptions, {"waitFor": 2500, "timeout": 5000}, 0),
        (m.CrawlTarget, {"type": "crawl", "url": "a.example"}, 1),
        (m.CrawlTarget, {"type": "crawl", "url": "a.example", "crawlOptions": {}}, 1),
        (m.CrawlTarget, {"type": "crawl", "url": "a.example", "crawlOptions": {"limit": 5}}, 0),
        (
            m.MonitorCreateRequest,
            {
                "name": "n",
                "judgeEnabled": True,
                "schedule": {"cron": "5/15 * 1 * 1"},
                "targets": [{"type": "crawl", "url": "a.example"}],
            },
            4,
        ),
        (m.MonitorUpdateRequest, {"status": "active"}, 1),
        (m.MonitorUpdateRequest, {"status": "active", "schedule": CRON}, 0),
        (m.MonitorUpdateRequest, {"targets": [SCRAPE]}, 1),
        (m.MonitorUpdateRequest, {"goal": "g"}, 1),
        (m.MonitorUpdateRequest, {"goal": "g", "judgeEnabled": True}, 0),
    ],
)
def test_own_warnings_are_told_for_the_whole_request(
    model: type[m.RequestModel], body: dict[str, Any], count: int
) -> None:
    assert len(model.model_validate(body).warnings()) == count


SECRET = "s3cr3t-value"


@pytest.mark.rule("scrape-headers", "webhook-headers")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ScrapeOptions, {"headers": {"Authorization": SECRET}}),
        (m.SearchRequest, {"query": "q", "scrapeOptions": {"headers": {"Cookie": SECRET}}}),
        (m.ScrapeOptions, {"actions": [{"type": "write", "text": SECRET}]}),
        (m.WebhookConfig, {"url": "https://a.example", "headers": {"X-Secret": SECRET}}),
        (
            m.MonitorCreateRequest,
            {
                "name": "n",
                "schedule": CRON,
                "targets": [{**SCRAPE, "scrapeOptions": {"headers": {"A": SECRET}}}],
                "webhook": {"url": "https://a.example", "headers": {"X-Secret": SECRET}},
            },
        ),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert SECRET in str(request.to_wire())
    assert SECRET not in repr(request)
    assert SECRET not in str(request)


@pytest.mark.rule("scrape-headers")
@pytest.mark.parametrize(
    "headers", [{"X": f"{SECRET}\r\nY: z"}, {"X": {"deep": SECRET}}, [SECRET], SECRET, {"bad name": SECRET}]
)
def test_secrets_stay_out_of_errors(headers: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        m.WebhookConfig.model_validate(
            {"url": "https://a.example", "headers": headers, "hedders": {"a": SECRET}}
        )
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


@pytest.mark.parametrize(
    "body", [MappingProxyType({"query": "q"}), UserDict({"query": "q"}), OrderedDict({"query": "q"})]
)
def test_any_mapping_is_read(body: Any) -> None:
    assert m.SearchRequest.model_validate(body).to_wire() == {"query": "q"}


@pytest.mark.parametrize("body", [Odd(), None, 5, "q", b"q", [], object(), {1: 2}, {"query": Odd()}])
def test_anything_else_is_a_validation_error(body: Any) -> None:
    with pytest.raises(ValidationError):
        m.SearchRequest.model_validate(body)


@pytest.mark.parametrize("headers", [Odd(), {"a": Odd()}, {"\ud800": "b"}, {"a": "\ud800"}])
def test_maps_that_cannot_be_sent_are_refused(headers: Any) -> None:
    with pytest.raises(ValidationError):
        m.ScrapeOptions(headers=headers)


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def looped() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    schema["properties"] = {"a": schema}
    return schema


@pytest.mark.parametrize("schema", [nested(100), nested(5000), looped()])
def test_a_bottomless_schema_is_a_validation_error(schema: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        m.JsonFormat(schema=schema)


def test_a_schema_is_copied_so_that_later_changes_do_not_reach_the_request() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "string"}}}
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
    hook = m.WebhookConfig(url="https://a.example", events=["monitor.page"])
    created = m.MonitorCreateRequest(name="n", schedule=CRON, targets=[target], webhook=hook)
    assert type(created.webhook) is m.MonitorWebhookConfig
    with pytest.raises(ValidationError):
        m.MonitorCreateRequest(
            name="n",
            schedule=CRON,
            targets=[target],
            webhook=m.WebhookConfig(url="https://a", events=["page"]),
        )


def test_a_request_reads_its_own_json() -> None:
    body = b'{"query": "q", "limit": "5", "scrapeOptions": {"formats": ["markdown", {"type": "html"}]}}'
    assert m.SearchRequest.model_validate_json(body).to_wire() == {
        "query": "q",
        "limit": 5,
        "scrapeOptions": {"formats": ["markdown", {"type": "html"}]},
    }


@pytest.mark.rule("search-zero-data-retention", "zdr-excludes")
@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"formats": ["screenshot"]}, "formats"),
        ({"formats": ["markdown"], "onlyCleanContent": True}, "onlyCleanContent"),
    ],
)
def test_a_search_that_keeps_nothing(problems: Any, options: dict[str, Any], field: str) -> None:
    kept = {"query": "q", "scrapeOptions": {"formats": ["markdown"], "zeroDataRetention": True}}
    assert m.SearchRequest.model_validate(kept).to_wire() == kept
    assert m.SearchRequest(query="q", scrape_options={"zero_data_retention": True}).to_wire() == {
        "query": "q",
        "scrapeOptions": {"zeroDataRetention": True},
    }

    (found,) = problems(
        m.SearchRequest, {"query": "q", "scrapeOptions": {**options, "zeroDataRetention": True}}
    ).values()
    assert field in found
    # A crawl and an extract job have the switch beside the options, or not at all.
    for model, body in ((m.CrawlRequest, {"url": "a.example"}), (m.ExtractRequest, {"prompt": "p"})):
        assert problems(model, {**body, "scrapeOptions": {"zeroDataRetention": True}})
