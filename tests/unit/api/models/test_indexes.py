"""Searches of indexes: limits from both sides, what must go together, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import LABELS, SWITCHES, Row, assert_limits, each, field

TEXTS = (["x", "wie geht's"], ["", " ", 5])
LISTS = ([[], ["a", "b, c"]], ["a", [""], [5]])
DAYS = (["2026-01-31", "2024-02-29"], ["2026-02-31", "20260131", "31.01.2026", "2026-1-1", "", 5])
STARS = ([0, 10**6], [-1, "x", True])


def of(model: type[m.RequestModel], base: dict[str, Any], **values: Any) -> dict[str, Row]:
    return {f"{model.__name__} {name}": field(model, name, given, **base) for name, given in values.items()}


ROWS: dict[str, Row] = {
    **of(
        m.DeveloperSearchRequest,
        {"query": "q"},
        query=TEXTS,
        k=([1, 100], [0, 101]),
        types=([[], ["doc", "issue", "pull_request", "readme"]], ["doc", ["wiki"]]),
        repos=LISTS,
        sources=([["x" * 512], ["a"] * 20], [["x" * 513], [""], ["a"] * 21]),
        skills=(["only"], ["none", True]),
        passages=([1, 5], [0, 6]),
        language=TEXTS,
        topic=TEXTS,
        license=TEXTS,
        min_stars=STARS,
        max_stars=STARS,
        archived=SWITCHES,
        fork=SWITCHES,
        origin=LABELS,
    ),
    **of(
        m.PaperSearchRequest,
        {"query": "q"},
        query=TEXTS,
        k=([1, 500], [0, 501]),
        authors=LISTS,
        categories=LISTS,
        to=DAYS,
        **{"from": DAYS},
    ),
    **of(m.PaperRequest, {"query": "q"}, query=TEXTS, k=([1, 50], [0, 51])),
    **of(
        m.SimilarPapersRequest,
        {"intent": "i"},
        intent=TEXTS,
        mode=(["similar", "citers", "references"], ["all"]),
        k=([1, 500], [0, 501]),
        rerank=SWITCHES,
        anchor=LISTS,
    ),
    **of(m.GovernmentSearchRequest, {"query": "q"}, query=TEXTS, k=([1, 100], [0, 101])),
}


@pytest.mark.rule("developer-query", "developer-types", "developer-passages", "developer-repositories")
@pytest.mark.rule(
    "research-query", "research-filters", "research-days", "research-similar", "government-query"
)
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


# model, body, whether it can match
TOGETHER: list[tuple[type[m.RequestModel], dict[str, Any], bool]] = [
    (m.DeveloperSearchRequest, {"query": "q", "repos": ["a/b"], "types": ["doc"]}, False),
    (m.DeveloperSearchRequest, {"query": "q", "repos": ["a/b"], "types": ["doc", "issue"]}, True),
    (m.DeveloperSearchRequest, {"query": "q", "repos": ["a/b"]}, True),
    (m.DeveloperSearchRequest, {"query": "q", "repos": [], "types": ["doc"]}, True),
    (m.DeveloperSearchRequest, {"query": "q", "sources": ["a"], "types": ["issue", "readme"]}, False),
    (m.DeveloperSearchRequest, {"query": "q", "sources": ["a"], "types": ["doc"]}, True),
    (m.DeveloperSearchRequest, {"query": "q", "sources": ["a"], "repos": ["a/b"], "types": []}, True),
    (m.PaperRequest, {"k": 3}, False),
    (m.PaperRequest, {}, True),
]


@pytest.mark.rule("developer-scope", "research-paper")
@pytest.mark.parametrize(("model", "body", "is_right"), TOGETHER)
def test_what_does_not_go_together(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], is_right: bool
) -> None:
    assert (problems(model, body) == {}) is is_right


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (m.DeveloperSearchRequest(query="q", min_stars=5, max_stars=4), "more than max_stars"),
        (m.PaperSearchRequest(query="q", from_date="2026-02-01", to_date="2026-01-01"), "after to"),
    ],
)
def test_what_can_match_nothing_is_warned_of(request_: m.RequestModel, words: str) -> None:
    (warning,) = request_.warnings()
    assert words in warning


def test_python_names_lead_to_wire_names() -> None:
    request = m.PaperSearchRequest(query="q", from_date="2026-01-01", to_date="2026-02-01")
    assert request.to_wire() == {"query": "q", "from": "2026-01-01", "to": "2026-02-01"}


FOUND = {
    "paperId": "20142",
    "primaryId": "arxiv:2105.05233",
    "ids": {"arxiv": ["2105.05233"]},
    "title": "t",
    "abstract": "a",
    "score": 0.5,
}
ANSWERS: list[tuple[type[m.ResponseModel], dict[str, Any]]] = [
    (
        m.DeveloperSearchResponse,
        {
            "success": True,
            "results": [
                {
                    "id": "issue:a/b#1",
                    "type": "issue",
                    "url": "https://a.example",
                    "title": "t",
                    "passages": [{"text": "p", "citation_url": "https://a.example#1"}],
                    "license": {"state": "licensed", "spdx_id": "MIT"},
                },
                {"id": "doc:x", "url": "u", "passages": [], "license": "MIT", "new": 1},
            ],
            "coverage": {"doc": "ok", "issue": "brand-new"},
            "reranked": True,
            "repos": [{"repo": "a/b", "indexed": True, "types": {"pullRequest": True}}],
            "sources": [{"source": "x", "indexed": False}],
        },
    ),
    (m.PaperSearchResponse, {"success": True, "results": [FOUND, {**FOUND, "signals": {"structural": 1}}]}),
    (m.SimilarPapersResponse, {"results": [FOUND], "poolSize": 40, "truncated": False, "note": None}),
    (
        m.PaperResponse,
        {
            "success": True,
            "paper": {
                "paperId": "1",
                "ids": {},
                "title": "t",
                "abstract": "a",
                "authors": "A. B, C. D",
                "categories": ["cs.LG"],
                "createdDate": "Wed, 11 May 2021 18:01:01 GMT",
                "updateDate": "2021-06-01",
            },
            "paperId": "1",
            "query": "q",
            "passages": [{"text": "p", "score": 0.25}],
        },
    ),
    (
        m.GovernmentSearchResponse,
        {"success": True, "data": {"web": [{"url": "u", "title": "t", "position": 1}]}},
    ),
]


@pytest.mark.rule(
    "developer-answer", "research-papers", "research-one", "research-similar-answer", "government-answer"
)
@pytest.mark.parametrize(("model", "body"), ANSWERS)
def test_an_answer_comes_back_as_it_was(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body
