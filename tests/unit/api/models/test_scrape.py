"""Scrape: limits from both sides, the wire, warnings."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import (
    ADDRESSES,
    LABELS,
    SITE,
    SWITCHES,
    Row,
    assert_limits,
    at_site,
    each,
    field,
)

SWITCHES_OF_OPTIONS = (
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
ROWS: dict[str, Row] = {
    "scrape url": field(m.ScrapeRequest, "url", (ADDRESSES[0], [*ADDRESSES[1], None])),
    "scrape zeroDataRetention": field(m.ScrapeRequest, "zeroDataRetention", SWITCHES, url=SITE),
    "scrape integration": field(m.ScrapeRequest, "integration", ([*LABELS[0], None], LABELS[1]), url=SITE),
    "scrape origin": field(m.ScrapeRequest, "origin", LABELS, url=SITE),
    "scrape timeout": field(m.ScrapeRequest, "timeout", ([1000, 300_000], [999, 300_001]), url=SITE),
    "scrape waitFor": field(m.ScrapeRequest, "waitFor", ([0, 60_000], [-1, 60_001]), url=SITE),
    **{
        f"scrape {name}": field(m.ScrapeRequest, name, SWITCHES, url=SITE)
        for name in (*SWITCHES_OF_OPTIONS, "zeroDataRetention")
    },
}


@pytest.mark.rule("caller-labels", "urls", "scrape-switches", "scrape-clean-content")
@pytest.mark.rule("scrape-wait-for", "scrape-timeout", "scrape-tls", "scrape-store")
@pytest.mark.rule("scrape-lockdown", "scrape-extra-switches", "scrape-url", "scrape-zero-data-retention")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, python, wire",
    [
        (
            m.ScrapeRequest,
            {"url": SITE, "only_main_content": False, "redact_pii": True, "zero_data_retention": True},
            {"url": SITE, "onlyMainContent": False, "redactPII": True, "zeroDataRetention": True},
        ),
    ],
)
def test_python_and_wire_names_are_the_same_request(
    model: type[m.RequestModel], python: dict[str, Any], wire: dict[str, Any]
) -> None:
    assert model.model_validate(python).to_wire() == wire
    assert model.model_validate(wire) == model.model_validate(python)


@pytest.mark.rule("scrape-top-level")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.ScrapeRequest, at_site(scrapeOptions={}), "scrapeOptions", "at the top level"),
        (m.ScrapeRequest, at_site(wait_four=1), "wait_four", "'waitFor'"),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.rule("zdr-excludes", "scrape-zero-data-retention")
@pytest.mark.parametrize(
    "model, body, rule",
    [
        (m.ScrapeRequest, at_site(zeroDataRetention=True, formats=["screenshot"]), "no screenshot"),
        (m.ScrapeRequest, at_site(zeroDataRetention=True, onlyCleanContent=True), "onlyCleanContent"),
    ],
)
def test_nothing_is_kept_where_nothing_may_be(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], rule: str
) -> None:
    (found,) = problems(model, body).values()
    assert rule in found
    assert problems(model, {**body, "zeroDataRetention": False}) == {}


@pytest.mark.rule("scrape-wait-for", "scrape-lockdown", "scrape-waits-together", "format-screenshot")
@pytest.mark.parametrize(
    "model, body, warned",
    [
        (m.ScrapeRequest, at_site(), []),
        (m.ScrapeRequest, at_site(storeInCache=True, headers={"A": "b"}), ["storeInCache"]),
        (
            m.ScrapeRequest,
            at_site(
                waitFor=30_000,
                actions=[{"type": "wait", "milliseconds": 29_001}, {"type": "wait", "selector": "a"}],
            ),
            ["actions"],
        ),
        (
            m.ScrapeRequest,
            at_site(
                waitFor=30_000,
                actions=[{"type": "wait", "milliseconds": 29_000}, {"type": "wait", "selector": "a"}],
            ),
            [],
        ),
        (
            m.ScrapeRequest,
            at_site(formats=[{"type": "screenshot", "viewport": {"width": 7680, "height": 4320}}]),
            [],
        ),
        (
            m.ScrapeRequest,
            at_site(actions=[{"type": "screenshot", "viewport": {"width": 7681, "height": 1}}]),
            ["viewport"],
        ),
    ],
)
def test_own_warnings(model: type[m.RequestModel], body: dict[str, Any], warned: list[str]) -> None:
    found = model.model_validate(body).warnings()
    assert len(found) == len(warned), found
    assert all(text.startswith(start) for text, start in zip(found, warned, strict=True)), found


@pytest.mark.rule("scrape-headers")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ScrapeRequest, at_site(headers={"Cookie": "s3cr3t"})),
        (m.ScrapeRequest, at_site(actions=[{"type": "write", "text": "s3cr3t"}])),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert request.to_wire() == body
    assert "s3cr3t" not in repr(request)


SHOT = {"type": "screenshot"}
AGES: list[tuple[type[m.RequestModel], dict[str, Any], str | None]] = [
    (m.ScrapeRequest, {}, "2 days"),
    (m.ScrapeRequest, {"max_age": 0}, None),
    (m.ScrapeRequest, {"max_age": 1}, "1 millisecond"),
    (m.ScrapeRequest, {"max_age": 3_600_000}, "1 hour"),
    (m.ScrapeRequest, {"max_age": 5_400_000}, "1.5 hours"),
    (m.ScrapeRequest, {"lockdown": True}, "730 days"),
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
    (m.CrawlRequest, {"limit": 1, "scrape_options": {}}, "2 days"),
    (m.CrawlRequest, {"limit": 1, "scrape_options": {"max_age": 0}}, None),
    (m.MapRequest, {}, None),
]


@pytest.mark.rule("scrape-max-age", "scrape-cache")
@pytest.mark.parametrize(("model", "fields", "age"), AGES)
def test_a_note_says_how_old_a_page_may_be(
    model: type[m.RequestModel], fields: dict[str, Any], age: str | None
) -> None:
    notes = model.model_validate({"url": SITE, **fields}).notes()
    assert [note.split(" old")[0] for note in notes] == ([f"pages may be up to {age}"] if age else [])


@pytest.mark.rule("scrape-max-age")
@pytest.mark.parametrize(
    ("options", "notes"),
    [
        (None, 0),
        ({"max_age": 60_000}, 0),
        ({"formats": ["markdown"]}, 1),
        ({"formats": ["markdown"], "max_age": 0}, 0),
    ],
)
def test_a_search_scrapes_only_with_formats(options: dict[str, Any] | None, notes: int) -> None:
    request = m.SearchRequest.model_validate({"query": "q", "scrape_options": options})
    assert len(request.notes()) == notes


@pytest.mark.rule("target-scrape-options")
def test_a_monitor_fetches_unless_told() -> None:
    def notes(**options: Any) -> list[str]:
        target = {"type": "scrape", "urls": [SITE], "scrapeOptions": options}
        body = {"name": "n", "schedule": {"text": "hourly"}, "targets": [target]}
        return m.MonitorCreateRequest.model_validate(body).notes()

    assert notes() == []
    assert notes(maxAge=60_000) == [
        "pages may be up to 1 minute old, from the service's cache; max_age=0 has them fetched anew"
    ]
