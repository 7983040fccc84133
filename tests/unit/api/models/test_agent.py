"""Agent: limits from both sides, the wire, warnings, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import (
    HOOK,
    PROMPTS,
    SCHEMAS,
    SECRET,
    SWITCHES,
    Row,
    assert_limits,
    each,
)

ID = "0190c0de-0000-7000-8000-000000000001"


def agent(**fields: Any) -> dict[str, Any]:
    return {"prompt": "p", **fields}


ROWS: dict[str, Row] = {
    "agent prompt": (m.AgentRequest, lambda v: {"prompt": v}, "prompt", PROMPTS[0], [*PROMPTS[1], None]),
    "agent url": (
        m.AgentRequest,
        lambda v: agent(urls=[v]),
        "urls.0",
        ["a.example"],
        ["", "ftp://a.example"],
    ),
    "agent strictConstrainToURLs": (
        m.AgentRequest,
        lambda v: agent(urls=["a.example"], strictConstrainToURLs=v),
        "strictConstrainToURLs",
        *SWITCHES,
    ),
    "agent schema": (m.AgentRequest, lambda v: agent(schema=v), "schema", *SCHEMAS),
    "agent maxCredits": (
        m.AgentRequest,
        lambda v: agent(maxCredits=v),
        "maxCredits",
        [1, 0.5, 2500, 100_000],
        [0, -1, True, "many", float("nan"), float("inf")],
    ),
    "agent model": (
        m.AgentRequest,
        lambda v: agent(model=v),
        "model",
        ["spark-2", "spark-1-mini", "spark-1-pro"],
        ["spark", "", 1],
    ),
    "agent effort": (m.AgentRequest, lambda v: agent(effort=v), "effort", ["low", "medium", "high"], ["max"]),
    "agent mode": (m.AgentRequest, lambda v: agent(mode=v), "mode", ["extract", "chat"], ["talk", ""]),
    "agent threadId": (m.AgentRequest, lambda v: agent(threadId=v), "threadId", [ID], ["x", "", 7]),
    "agent location": (
        m.AgentRequest,
        lambda v: agent(location={"country": v}),
        "location.country",
        ["DE"],
        ["de", "DEU", ""],
    ),
    "agent toolkits": (
        m.AgentRequest,
        lambda v: agent(exchange={"toolkits": v}),
        "exchange.toolkits",
        [["a"] * 5, []],
        [["a"] * 6],
    ),
    "agent calls": (
        m.AgentRequest,
        lambda v: agent(exchange={"maxCalls": v}),
        "exchange.maxCalls",
        [1, 30],
        [0, 31, 1.5],
    ),
    "agent terms": (
        m.AgentRequest,
        lambda v: agent(exchange={"onTermsRequired": v}),
        "exchange.onTermsRequired",
        ["skip", "ask"],
        ["accept", ""],
    ),
    "agent approval": (
        m.AgentRequest,
        lambda v: agent(threadId=ID, exchange={"approve": {"approvalId": v, "always": True}}),
        "exchange.approve.approvalId",
        [ID],
        ["x", None],
    ),
    "agent switch of exchange": (
        m.AgentRequest,
        lambda v: agent(exchange={"enabled": v}),
        "exchange.enabled",
        *SWITCHES,
    ),
    "agent event": (
        m.AgentRequest,
        lambda v: agent(webhook={"url": HOOK, "events": [v]}),
        "webhook.events",
        ["started", "action", "completed", "failed", "cancelled"],
        ["page", "agent.completed", ""],
    ),
    "agent auditMetadata": (
        m.AgentRequest,
        lambda v: agent(auditMetadata={"username": v}),
        "auditMetadata.username",
        ["u" * 1024],
        ["u" * 1025],
    ),
    "agent zeroDataRetention": (
        m.AgentRequest,
        lambda v: agent(zeroDataRetention=v),
        "zeroDataRetention",
        *SWITCHES,
    ),
}


@pytest.mark.rule("agent-prompt", "agent-urls", "agent-schema", "agent-max-credits")
@pytest.mark.rule("agent-model", "agent-further", "agent-server-fields", "webhook-events-steps")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.AgentRequest, {"prompt": "p", "webhook": {"url": HOOK}}),
    ],
)
def test_what_was_given_is_sent_and_nothing_else(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    assert model.model_validate(body).to_wire() == body


@pytest.mark.rule("webhook-events-steps")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (
            m.AgentRequest,
            agent(strictConstrainToUrls=True),
            "strictConstrainToUrls",
            "'strictConstrainToURLs'",
        ),
        (m.AgentRequest, agent(max_credit=5), "max_credit", "'maxCredits' (in Python: 'max_credits')"),
        (
            m.AgentRequest,
            agent(webhook={"url": HOOK, "events": ["agent.complete"]}),
            "webhook.events",
            "'completed'",
        ),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.rule("agent-urls", "agent-free-runs")
@pytest.mark.parametrize(
    "model, body, count",
    [
        (m.AgentRequest, {"prompt": "p", "maxCredits": 2500}, 0),
        (m.AgentRequest, {"prompt": "p", "maxCredits": 2501}, 1),
        (m.AgentRequest, {"prompt": "p", "strictConstrainToURLs": True}, 1),
        (m.AgentRequest, {"prompt": "p", "strictConstrainToURLs": True, "urls": ["a.example"]}, 0),
    ],
)
def test_own_warnings_are_told(model: type[m.RequestModel], body: dict[str, Any], count: int) -> None:
    assert len(model.model_validate(body).warnings()) == count


@pytest.mark.parametrize(
    "model, body",
    [
        (m.AgentRequest, {"prompt": "p", "webhook": {"url": HOOK, "headers": {"X-Secret": SECRET}}}),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert SECRET in str(request.to_wire())
    assert SECRET not in f"{request!r} {request}"


@pytest.mark.rule("parse-answer", "agent-answer", "agent-status")
@pytest.mark.parametrize(
    "model, answer",
    [
        (m.AgentStatus, {"success": True, "status": "processing"}),
        (m.AgentStatus, {"success": True, "status": "failed", "error": "out of credits", "data": None}),
        (
            m.AgentStatus,
            {"success": True, "status": "completed", "data": {"a": []}, "model": "spark-2", "creditsUsed": 9},
        ),
        (m.AgentStatus, {"success": True, "status": "pausing", "partial": {"a": 1}, "stopReason": "x"}),
    ],
)
def test_answers_are_kept_as_they_came(model: Any, answer: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(answer)).to_wire() == answer


@pytest.mark.rule("open-responses")
@pytest.mark.parametrize(
    "model, answer",
    [
        (
            m.AgentStatus,
            {"status": "completed", "data": [1], "expiresAt": {}, "creditsUsed": "few", "model": 2},
        ),
    ],
)
def test_an_odd_field_costs_no_answer_that_was_paid_for(model: Any, answer: dict[str, Any]) -> None:
    found = model.model_validate_json(json.dumps(answer))
    assert found.to_wire() == answer
    assert SECRET not in f"{found!r} {found}"
    assert not hasattr(found, "secrets") or list(found.secrets()) == []


@pytest.mark.parametrize(
    "model, answer",
    [
        (m.AgentStatus, {"data": {}}),
    ],
)
def test_answers_that_are_none(model: Any, answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Field required") as caught:
        model.model_validate(answer)
    assert SECRET not in str(caught.value)


YES, NO = {"approve": {"approvalId": ID}}, {"decline": {"approvalId": ID}}


@pytest.mark.rule("agent-exchange")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"exchange": YES}, "give its 'threadId' as well"),
        ({"exchange": NO, "mode": "chat"}, "give its 'threadId' as well"),
        ({"exchange": {**YES, **NO}, "threadId": ID}, "give one of them"),
        ({"exchange": {"requireApproval": True}}, "needs mode 'chat'"),
        ({"exchange": {"requireApproval": True}, "mode": "extract", "threadId": ID}, "needs mode 'chat'"),
    ],
)
def test_an_exchange_that_cannot_be(problems: Any, fields: dict[str, Any], words: str) -> None:
    assert words in str(problems(m.AgentRequest, agent(**fields)))


@pytest.mark.rule("agent-exchange")
@pytest.mark.parametrize(
    "fields",
    [
        {"exchange": YES, "threadId": ID},
        {"exchange": NO, "threadId": ID},
        {"exchange": {"requireApproval": True}, "mode": "chat"},
        {"exchange": {"requireApproval": False}},
    ],
)
def test_an_exchange_that_fits(fields: dict[str, Any]) -> None:
    assert m.AgentRequest.model_validate(agent(**fields)).to_wire() == agent(**fields)
