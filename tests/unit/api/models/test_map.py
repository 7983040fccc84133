"""Map: limits from both sides, the wire, warnings, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import (
    ADDRESSES,
    HEADERS,
    LABELS,
    SITE,
    SWITCHES,
    UUID,
    Row,
    assert_limits,
    at_site,
    each,
    field,
)

ROWS: dict[str, Row] = {
    "map url": field(m.MapRequest, "url", (ADDRESSES[0], [*ADDRESSES[1], None])),
    "map search": field(m.MapRequest, "search", LABELS, url=SITE),
    "map sitemap": field(m.MapRequest, "sitemap", (["skip", "include", "only"], ["all"]), url=SITE),
    "map limit": field(m.MapRequest, "limit", ([1, 100_000], [0, 100_001, True]), url=SITE),
    "map timeout": field(m.MapRequest, "timeout", ([1, 10**6], [0, -1]), url=SITE),
    "map location": (
        m.MapRequest,
        lambda value: {"url": SITE, "location": value},
        "location",
        [{}, {"country": "DE", "languages": ["de-DE"]}],
        [{"country": "de"}, "DE"],
    ),
    "map auditMetadata": (
        m.MapRequest,
        lambda value: {"url": SITE, "auditMetadata": {"username": value}},
        "auditMetadata.username",
        ["x", "x" * 1024],
        ["x" * 1025, None],
    ),
    "map threatProtection": (
        m.MapRequest,
        lambda value: {"url": SITE, "threatProtection": value},
        "threatProtection",
        [{"mode": "normal", "riskScoreThreshold": 5}],
        [{"mode": "loud"}, {"riskScoreThreshold": 101}],
    ),
    "map headers": field(m.MapRequest, "headers", HEADERS, url=SITE),
    "map includePaths": field(m.MapRequest, "includePaths", ([["/a"]], ["/a"]), url=SITE),
    "map excludePaths": field(m.MapRequest, "excludePaths", ([["/a"]], ["/a"]), url=SITE),
    **{
        f"map {name}": field(m.MapRequest, name, SWITCHES, url=SITE)
        for name in ("includeSubdomains", "ignoreQueryParameters", "ignoreCache", "filterByPath", "useIndex")
    },
}


@pytest.mark.rule("map-url", "map-search", "map-sitemap", "map-switches")
@pytest.mark.rule("map-limit", "map-timeout", "map-further")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, python, wire",
    [
        (
            m.MapRequest,
            {"url": SITE, "ignore_query_parameters": False, "include_subdomains": True, "limit": None},
            {"url": SITE, "ignoreQueryParameters": False, "includeSubdomains": True},
        ),
    ],
)
def test_python_and_wire_names_are_the_same_request(
    model: type[m.RequestModel], python: dict[str, Any], wire: dict[str, Any]
) -> None:
    assert model.model_validate(python).to_wire() == wire
    assert model.model_validate(wire) == model.model_validate(python)


@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.MapRequest, at_site(ignoreSitemaps=1), "ignoreSitemaps", "there is no such field"),
        (m.MapRequest, at_site(include_subdomain=True), "include_subdomain", "'includeSubdomains'"),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.parametrize(
    "model, body, warned",
    [
        (m.MapRequest, at_site(sitemap="skip", ignoreCache=True), ["ignoreCache"]),
        (m.MapRequest, at_site(sitemap="only", ignoreCache=True), []),
        (
            m.MapRequest,
            at_site(includePaths=["/a", "?"], excludePaths=["("]),
            ["includePaths: '?'", "excludePaths"],
        ),
    ],
)
def test_own_warnings(model: type[m.RequestModel], body: dict[str, Any], warned: list[str]) -> None:
    found = model.model_validate(body).warnings()
    assert len(found) == len(warned), found
    assert all(text.startswith(start) for text, start in zip(found, warned, strict=True)), found


@pytest.mark.parametrize(
    "model, body",
    [
        (m.MapRequest, at_site(headers={"Cookie": "s3cr3t"})),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert request.to_wire() == body
    assert "s3cr3t" not in repr(request)


DOCUMENTED: list[tuple[type[m.ResponseModel], dict[str, Any]]] = [
    (
        m.MapResponse,
        {"success": True, "links": [{"url": SITE, "title": "t", "description": None}], "id": UUID},
    ),
    (m.MapResponse, {"status": "success", "links": []}),
]


@pytest.mark.rule("map-links")
@pytest.mark.parametrize("model, body", DOCUMENTED)
def test_a_documented_answer_comes_back_as_it_was(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body
    newer = {**body, "xNew": {"a": [None]}}
    assert model.model_validate_json(json.dumps(newer)).to_wire() == newer


@pytest.mark.parametrize(
    "model, body",
    [
        (m.MapResponse, {"success": True}),
        (m.MapResponse, {"links": [{"title": "t"}]}),
    ],
)
def test_what_is_no_such_answer_is_an_error(model: type[m.ResponseModel], body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(body))


@pytest.mark.rule("map-links")
def test_links_of_a_map_may_be_plain_text() -> None:
    found = m.MapResponse.model_validate_json(json.dumps({"links": [SITE, {"url": "b", "title": ["x"]}]}))
    assert [link.url for link in found.links] == [SITE, "b"]
    assert found.to_wire() == {"links": [{"url": SITE}, {"url": "b", "title": ["x"]}]}
