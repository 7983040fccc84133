"""The text of a support agent's answer, which a log and a page show."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api.models import AskResponse

LONG = "x" * 10_000
# The answer, and its text.
TEXTS: list[tuple[dict[str, Any], str]] = [
    ({"answer": "The site is slow.\nWait."}, "The site is slow. Wait."),
    (
        {"answer": "Wait.", "confidence": "high", "fixParameters": {"waitFor": 5000}},
        "Wait. Try: {'waitFor': 5000} (confidence: high)",
    ),
    (
        {"answer": "", "feedback": {"blockedBy": "No job has\x1b[2J this id."}},
        "The service has no answer: No job has this id.",
    ),
    ({}, "The service has no answer: it gives no reason"),
    ({"answer": "\x1b[31mred\x1b[0m\u202e\x00"}, "red"),
    # Shapes that are not documented.
    ({"answer": {"text": "a"}, "feedback": "b", "fixParameters": ["c"]}, "{'text': 'a'} Try: ['c']"),
    (
        {"feedback": "b", "confidence": 0.5},
        "The service has no answer: it gives no reason (confidence: 0.5)",
    ),
]


@pytest.mark.rule("support-answer", "support-stuck")
@pytest.mark.parametrize(("body", "text"), TEXTS)
def test_text(body: dict[str, Any], text: str) -> None:
    assert AskResponse.model_validate(body).text() == text


def test_text_is_bounded() -> None:
    """The fields to try remain, because they are the shortest way to a solution."""
    body = {"answer": LONG, "fixParameters": {"waitFor": 5000}, "confidence": LONG}
    text = AskResponse.model_validate(body).text(300)
    assert len(text) == 300
    assert "Try: {'waitFor': 5000}" in text
    assert len(AskResponse.model_validate({"fixParameters": {"a": LONG}}).text(300)) <= 300
