"""What the service says of a team."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import UUID

ITEM = {
    "id": UUID,
    "endpoint": "batch_scrape",
    "api_version": "v2",
    "created_at": "2026-08-21T10:00:00.000Z",
    "target": None,
}
PERIOD = {"startDate": "2026-08-01", "endDate": "2026-09-01", "apiKey": None}
DOCUMENTED: list[tuple[type[m.ResponseModel], dict[str, Any]]] = [
    (
        m.CreditHistory,
        {"success": True, "periods": [{**PERIOD, "totalCredits": 5}, {**PERIOD, "creditsUsed": 0.5}]},
    ),
    (m.TokenUsageResponse, {"success": True, "data": {"remainingTokens": 5, "planTokens": 10}}),
    (m.TokenHistory, {"success": True, "periods": [{**PERIOD, "totalTokens": 5}]}),
    (
        m.QueueStatus,
        {
            "success": True,
            "jobsInQueue": 1,
            "activeJobsInQueue": 0,
            "waitingJobsInQueue": 1,
            "maxConcurrency": 2,
            "mostRecentSuccess": None,
        },
    ),
    (m.Activity, {"success": True, "data": [ITEM, {}], "cursor": None, "has_more": False}),
]


@pytest.mark.rule("team-credits-history", "team-tokens", "team-queue", "team-activity")
@pytest.mark.rule("team-concurrency")
@pytest.mark.parametrize("model, body", DOCUMENTED)
def test_a_documented_answer_comes_back_as_it_was(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body
    newer = {**body, "xNew": {"a": [None]}}
    assert model.model_validate_json(json.dumps(newer)).to_wire() == newer


@pytest.mark.parametrize(
    "model, body",
    [
        (m.CreditHistory, {}),
        (m.Activity, {"success": True}),
        (m.QueueStatus, []),
    ],
)
def test_what_is_no_such_answer_is_an_error(model: type[m.ResponseModel], body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(body))


@pytest.mark.rule("team-credits-history", "team-tokens")
@pytest.mark.parametrize(
    "model, period, used",
    [
        (m.CreditPeriod, {"totalCredits": 5}, 5),
        (m.CreditPeriod, {"creditsUsed": 6}, 6),
        (m.CreditPeriod, {"totalCredits": 0, "creditsUsed": 6}, 0),
        (m.CreditPeriod, {}, None),
        (m.TokenPeriod, {"totalTokens": 5}, 5),
        (m.TokenPeriod, {"tokensUsed": 6}, 6),
        (m.TokenPeriod, {"totalTokens": 0, "tokensUsed": 6}, 0),
        (m.TokenPeriod, {}, None),
    ],
)
def test_what_a_period_used_under_either_name(model: Any, period: dict[str, Any], used: float | None) -> None:
    assert model.model_validate(period).used == used


def test_names_of_api_keys_stay_out_of_reprs() -> None:
    period = m.CreditPeriod.model_validate({**PERIOD, "apiKey": "wd-123"})
    assert "wd-123" not in repr(period)


def test_python_names_lead_to_wire_names() -> None:
    assert m.Activity.model_validate({"data": [ITEM], "has_more": True}).has_more is True
    assert m.ActivityItem(created_at="now", api_version="v2").to_wire() == {
        "created_at": "now",
        "api_version": "v2",
    }
