"""Feedback: limits from both sides, what must be said, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import LABELS, UUID, Row, assert_limits, each, field

SOURCES = [{"url": "https://a.example/x"}]
SEARCH = {"rating": "partial", "valuableSources": SOURCES, "missingContent": [{"topic": "t"}]}
ANY = {"endpoint": "scrape", "jobId": UUID, "rating": "good", "note": "n"}
NAMES = (
    [["a"], ["missing_markdown", "a-b", "9"], ["x" * 80]],
    [["A"], ["_a"], ["x" * 81], ["a b"], ["a"] * 21, "a"],
)
ADDRESSES = ["a.example", "ftp://a.example", "https://", "", 5]


def of(name: str, good: list[Any], bad: list[Any]) -> dict[str, Row]:
    """Return the rows of a field that both requests have."""
    return {
        f"{model.__name__} {name} {len(good)}": field(model, name, (good, bad), **base)
        for model, base in ((m.SearchFeedbackRequest, SEARCH), (m.FeedbackRequest, ANY))
    }


ROWS: dict[str, Row] = {
    **of("rating", ["good", "partial", "bad"], ["fine", 1, None]),
    **of(
        "valuableSources",
        [SOURCES * 50, [{"url": "http://a.example", "reason": "x" * 1000}]],
        [SOURCES * 51, [{"reason": "x"}], [{**SOURCES[0], "reason": "x" * 1001}]],
    ),
    **of("valuableSources", [], [[{"url": address}] for address in ADDRESSES]),
    **of(
        "missingContent",
        [[{"topic": "x" * 200, "description": "x" * 2000}]],
        [[{"topic": " "}], [{"topic": "x" * 201}]],
    ),
    **of("querySuggestions", ["x" * 2000], ["x" * 2001]),
    **of("origin", *LABELS),
    "missing of a search": field(
        m.SearchFeedbackRequest, "missingContent", ([[{"topic": "t"}] * 20], [[{"topic": "t"}] * 21]), **SEARCH
    ),
    "missing of any": field(
        m.FeedbackRequest, "missingContent", ([[{"topic": "t"}] * 50], [[{"topic": "t"}] * 51]), **ANY
    ),
    "endpoint": field(m.FeedbackRequest, "endpoint", (["search", "scrape", "parse", "map"], ["crawl"]), **ANY),
    "jobId": field(m.FeedbackRequest, "jobId", ([UUID], ["x", ""]), **ANY),
    "issues": field(m.FeedbackRequest, "issues", NAMES, **ANY),
    "tags": field(m.FeedbackRequest, "tags", NAMES, **ANY),
    "note": field(m.FeedbackRequest, "note", (["x" * 4000], ["x" * 4001]), **ANY),
    "url": field(m.FeedbackRequest, "url", (["https://a.example"], ADDRESSES), **ANY),
    "pageNumbers": field(m.FeedbackRequest, "pageNumbers", ([[1] * 100], [[0], [1] * 101, ["x"]]), **ANY),
    "metadata": field(m.FeedbackRequest, "metadata", ([{}, {"a": "x" * 8184}], [{"a": "x" * 8185}, "x", []]), **ANY),
}  # fmt: skip


@pytest.mark.rule("feedback-rating", "feedback-sources", "feedback-missing", "feedback-suggestions")
@pytest.mark.rule("feedback-job", "feedback-issues", "feedback-details")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


SAID = {
    "valuableSources": SOURCES,
    "missingContent": [{"topic": "t"}],
    "querySuggestions": "q",
    "issues": ["slow"],
    "note": "n",
    "url": "https://a.example",
    "pageNumbers": [1],
    "tags": ["mine"],
    "metadata": {"a": 1},
}
NEEDED = {
    "good": {"valuableSources"},
    "partial": {"valuableSources", "missingContent"},
    "bad": {"missingContent", "querySuggestions"},
}


@pytest.mark.rule("feedback-substance")
@pytest.mark.parametrize("rating", NEEDED)
@pytest.mark.parametrize("said", [None, *SAID])
def test_feedback_says_something(problems: Any, rating: str, said: str | None) -> None:
    fields = {} if said is None else {said: SAID[said]}
    if said in (None, "valuableSources", "missingContent", "querySuggestions"):
        found = problems(m.SearchFeedbackRequest, {"rating": rating, **fields})
        assert (found == {}) is (said in NEEDED[rating]), found
    found = problems(m.FeedbackRequest, {"endpoint": "map", "jobId": UUID, "rating": rating, **fields})
    assert (found == {}) is (said not in (None, "tags", "metadata")), found


@pytest.mark.rule("feedback-answer", "feedback-once")
@pytest.mark.parametrize(
    "body",
    [
        {
            "success": True,
            "feedbackId": UUID,
            "creditsRefunded": 1,
            "creditsRefundedToday": 3,
            "dailyRefundCap": 100,
        },
        {"success": True, "feedbackId": "", "creditsRefunded": 0, "alreadySubmitted": True, "warning": "w"},
        {"feedbackId": None, "creditsRefunded": 0.5, "dailyCapReached": True, "new": {"a": 1}},
    ],
)
def test_an_answer_comes_back_as_it_was(body: dict[str, Any]) -> None:
    assert m.FeedbackResponse.model_validate_json(json.dumps(body)).to_wire() == body
