"""Batch scrape: limits from both sides, the wire, warnings."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import (
    HOOK,
    SITE,
    SWITCHES,
    UUID,
    Row,
    assert_limits,
    each,
    field,
)


def batch(**given: Any) -> dict[str, Any]:
    return {"urls": [SITE], **given}


ROWS: dict[str, Row] = {
    "batch urls": field(
        m.BatchScrapeRequest,
        "urls",
        ([[SITE], [SITE, "b.example"] * 500], [[], SITE, [SITE, ""], ["ftp://a"], None, [5]]),
    ),
    "batch maxConcurrency": field(
        m.BatchScrapeRequest, "maxConcurrency", ([1, 500], [0, -1, 1.5]), urls=[SITE]
    ),
    "batch ignoreInvalidURLs": field(m.BatchScrapeRequest, "ignoreInvalidURLs", SWITCHES, urls=[SITE]),
    "batch appendToId": field(m.BatchScrapeRequest, "appendToId", ([UUID], ["", "b-1", 5]), urls=[SITE]),
    "batch webhook": (
        m.BatchScrapeRequest,
        lambda value: batch(webhook=value),
        "webhook",
        [
            {"url": HOOK},
            {"url": HOOK, "events": ["started", "page", "completed", "failed"], "metadata": {"a": "b"}},
        ],
        [{}, {"url": "http://a.example"}, {"url": HOOK, "metadata": {"a": 1}}, {"url": HOOK, "retries": 3}],
    ),
    "batch events": (
        m.BatchScrapeRequest,
        lambda value: batch(webhook={"url": HOOK, "events": [value]}),
        "webhook.events",
        ["page", "failed"],
        ["batch_scrape.page", "action", "check.completed", "", 5],
    ),
    "batch zeroDataRetention": field(m.BatchScrapeRequest, "zeroDataRetention", SWITCHES, urls=[SITE]),
}


@pytest.mark.rule("batch-urls", "batch-webhook", "batch-max-concurrency", "batch-ignore-invalid-urls")
@pytest.mark.rule("batch-append", "webhook-events")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, python, wire",
    [
        (
            m.BatchScrapeRequest,
            {"urls": [SITE], "ignore_invalid_urls": True, "append_to_id": UUID, "max_age": 0},
            {"urls": [SITE], "ignoreInvalidURLs": True, "appendToId": UUID, "maxAge": 0},
        ),
        (m.BatchScrapeRequest, {"urls": [SITE], "webhook": HOOK}, {"urls": [SITE], "webhook": {"url": HOOK}}),
    ],
)
def test_python_and_wire_names_are_the_same_request(
    model: type[m.RequestModel], python: dict[str, Any], wire: dict[str, Any]
) -> None:
    assert model.model_validate(python).to_wire() == wire
    assert model.model_validate(wire) == model.model_validate(python)


@pytest.mark.rule("batch-options", "webhook-events")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.BatchScrapeRequest, batch(scrape_options={}), "scrape_options", "at the top level"),
        (m.BatchScrapeRequest, batch(ignoreInvalidUrls=True), "ignoreInvalidUrls", "'ignoreInvalidURLs'"),
        (m.BatchScrapeRequest, {"urls": [SITE], "limt": 1}, "limt", "there is no such field"),
        (m.BatchScrapeRequest, {"urls": SITE}, "urls", "a list is expected"),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.parametrize(
    "model, body, rule",
    [
        (
            m.BatchScrapeRequest,
            batch(zeroDataRetention=True, formats=["markdown", {"type": "screenshot", "quality": 5}]),
            "no screenshot",
        ),
    ],
)
def test_nothing_is_kept_where_nothing_may_be(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], rule: str
) -> None:
    (found,) = problems(model, body).values()
    assert rule in found
    assert problems(model, {**body, "zeroDataRetention": False}) == {}


@pytest.mark.rule("batch-ignore-invalid-urls")
@pytest.mark.parametrize(
    "model, body, warned",
    [
        (m.BatchScrapeRequest, batch(ignoreInvalidURLs=True), []),
        (m.BatchScrapeRequest, batch(), ["ignoreInvalidURLs"]),
        (m.BatchScrapeRequest, {"urls": [SITE] * 3, "ignoreInvalidURLs": False}, ["urls: 2 of them"]),
        (m.BatchScrapeRequest, batch(ignoreInvalidURLs=True, lockdown=True), ["lockdown"]),
    ],
)
def test_own_warnings(model: type[m.RequestModel], body: dict[str, Any], warned: list[str]) -> None:
    found = model.model_validate(body).warnings()
    assert len(found) == len(warned), found
    assert all(text.startswith(start) for text, start in zip(found, warned, strict=True)), found


@pytest.mark.parametrize(
    "model, body",
    [
        (m.BatchScrapeRequest, batch(webhook={"url": HOOK, "headers": {"X": "s3cr3t"}})),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert request.to_wire() == body
    assert "s3cr3t" not in repr(request)


@pytest.mark.rule("batch-ignore-invalid-urls")
@pytest.mark.parametrize(
    "model",
    [
        m.BatchScrapeRequest,
        m.ExtractRequest,
    ],
)
def test_bad_urls_are_left_to_the_service_where_it_drops_them(model: type[m.RequestModel]) -> None:
    body = {"urls": [SITE, "https://", "a b"]}
    request = model.model_validate({**body, "ignoreInvalidURLs": True})
    assert request.to_wire()["urls"] == body["urls"]
    assert any(text.startswith("urls: 2 of 3 are no URLs") for text in request.warnings())
    for unless in ({}, {"ignoreInvalidURLs": False}):
        with pytest.raises(ValidationError, match="names no host"):
            model.model_validate({**body, **unless})
