"""Browser sessions and code: limits from both sides, the wire, secrets, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.api.errors import InvalidRequestError
from tests.unit.api.models.limits import PROMPTS, SECRET, SWITCHES, Row, assert_limits, each


def code(**fields: Any) -> dict[str, Any]:
    return {"code": "print(1)", **fields}


CODES = (
    ["x", " ", "x" * 100_000, "ä" * 50_000, "\n", "𐍈" * 25_000],
    ["", "x" * 100_001, "ä" * 50_000 + "x", "𐍈" * 25_000 + "x", 5, b"x", "\ud800"],
)
ROWS: dict[str, Row] = {
    "ttl": (m.InteractRequest, lambda v: {"ttl": v}, "ttl", [30, 3600], [29, 3601, 0, True, 30.5, "x"]),
    "activityTtl": (
        m.InteractRequest,
        lambda v: {"activityTtl": v},
        "activityTtl",
        [10, 3600],
        [9, 3601, -1],
    ),
    **{
        f"session {name}": (m.InteractRequest, lambda v, name=name: {name: v}, name, *SWITCHES)
        for name in ("streamWebView", "blockAds", "recordSession")
    },
    "session profile": (
        m.InteractRequest,
        lambda v: {"profile": {"name": v, "saveChanges": False}},
        "profile.name",
        ["p", "p" * 128],
        ["", "p" * 129],
    ),
    "code": (m.ExecuteRequest, lambda v: {"code": v}, "code", CODES[0], [*CODES[1], None]),
    "code timeout": (m.ExecuteRequest, lambda v: code(timeout=v), "timeout", [1, 300], [0, 301, 1.5, True]),
    "language": (
        m.ExecuteRequest,
        lambda v: code(language=v),
        "language",
        ["python", "node", "bash"],
        ["sh", ""],
    ),
    "scrape code": (m.ScrapeInteractRequest, lambda v: {"code": v}, "code", *CODES),
    "scrape prompt": (m.ScrapeInteractRequest, lambda v: {"prompt": v}, "prompt", *PROMPTS),
    "scrape code timeout": (
        m.ScrapeInteractRequest,
        lambda v: code(timeout=v),
        "timeout",
        [1, 300],
        [0, 301],
    ),
    "scrape language": (
        m.ScrapeInteractRequest,
        lambda v: code(language=v),
        "language",
        ["python", "node", "bash"],
        ["ruby"],
    ),
    "scrape ttl": (m.ScrapeInteractRequest, lambda v: code(ttl=v), "ttl", [30, 3600], [29, 3601]),
    "scrape activityTtl": (
        m.ScrapeInteractRequest,
        lambda v: code(activityTtl=v),
        "activityTtl",
        [10, 3600],
        [9, 3601],
    ),
}


@pytest.mark.rule("session-ttl", "session-activity-ttl", "session-profile", "session-further")
@pytest.mark.rule("code-text", "code-language", "code-timeout", "scrape-interact")
@pytest.mark.rule("monitor-name")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


@pytest.mark.rule("scrape-interact")
@pytest.mark.parametrize(
    "model, body, rule",
    [
        (m.ScrapeInteractRequest, {}, "'code' or 'prompt'"),
        (m.ScrapeInteractRequest, {"language": "bash", "timeout": 5}, "'code' or 'prompt'"),
    ],
)
def test_what_there_is_to_work_on(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], rule: str
) -> None:
    found = problems(model, body)
    assert list(found) == [""]
    assert rule in found[""]


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ScrapeInteractRequest, {"prompt": "p"}),
        (m.ScrapeInteractRequest, {"code": "1", "prompt": "p"}),
        (m.InteractRequest, {}),
    ],
)
def test_what_was_given_is_sent_and_nothing_else(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    assert model.model_validate(body).to_wire() == body


@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.InteractRequest, {"activityTTL": 60}, "activityTTL", "'activityTtl'"),
        (m.InteractRequest, {"saveChanges": True}, "saveChanges", "belongs in 'profile'"),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.rule("session-ttl")
@pytest.mark.parametrize(
    "model, body, count",
    [
        (m.InteractRequest, {}, 1),
        (m.InteractRequest, {"ttl": 60}, 0),
        (m.ScrapeInteractRequest, {"code": "1"}, 0),
        (m.ScrapeInteractRequest, {"code": "1", "prompt": "p"}, 1),
    ],
)
def test_own_warnings_are_told(model: type[m.RequestModel], body: dict[str, Any], count: int) -> None:
    assert len(model.model_validate(body).warnings()) == count


any_code = st.text(st.characters(codec="utf-8"), min_size=1)


@pytest.mark.rule("code-text")
@given(value=any_code, ends=st.sampled_from(["", "ä", "𐍈"]))
def test_code_is_measured_in_bytes(value: str, ends: str) -> None:
    """Filled up to the limit it passes, and one byte more is one too many."""
    full = value + ends + "x" * (100_000 - len((value + ends).encode()))
    assert m.ExecuteRequest(code=full).code == full
    for more in ("x", "ä"):
        with pytest.raises(ValueError, match="UTF-8 bytes"):
            m.ExecuteRequest(code=full + more)


@pytest.mark.rule("code-text")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ExecuteRequest, {"code": SECRET}),
        (m.ScrapeInteractRequest, {"code": SECRET, "prompt": "p"}),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert SECRET in str(request.to_wire())
    assert SECRET not in f"{request!r} {request}"


@pytest.mark.rule("code-text")
@pytest.mark.parametrize(
    "model",
    [
        m.ExecuteRequest,
        m.ScrapeInteractRequest,
    ],
)
@pytest.mark.parametrize("given_code", [f"{SECRET}\ud800", SECRET * 10_000, SECRET.encode(), [SECRET]])
def test_code_stays_out_of_errors(model: type[m.RequestModel], given_code: Any) -> None:
    with pytest.raises(ValueError, match="code") as caught:
        model.model_validate({"code": given_code})
    error = InvalidRequestError.from_validation_error("execute", caught.value, model)  # type: ignore[arg-type]
    assert SECRET not in f"{error} {caught.value}"


BROWSER = {
    "cdpUrl": f"wss://browser.example/{SECRET}-cdp",
    "liveViewUrl": f"https://live.example/{SECRET}-view",
    "interactiveLiveViewUrl": f"https://live.example/{SECRET}-control",
}
SESSION = {"id": "s1", **BROWSER}
OPENED = {"success": True, **SESSION, "expiresAt": "2026-11-21T10:00:00.000Z"}
LISTED = {
    **SESSION,
    "status": "active",
    "streamWebView": True,
    "createdAt": "2026-11-21T10:00:00.000Z",
    "lastActivity": "2026-11-21T10:00:00.000Z",
}
RAN = {
    "success": True,
    "stdout": "1\n",
    "result": "1\n",
    "stderr": None,
    "exitCode": 0,
    "killed": False,
    "error": None,
}
ON_PAGE = {**RAN, **BROWSER, "output": "answer", "sessionId": "s1"}
CONTROLLING = [BROWSER["cdpUrl"], BROWSER["interactiveLiveViewUrl"]]


@pytest.mark.rule("session-secrets")
@pytest.mark.parametrize(
    "model, answer, secrets",
    [
        (m.InteractSession, OPENED, CONTROLLING),
        (m.InteractSession, LISTED, CONTROLLING),
        (m.InteractSession, {"id": "s1", "cdpUrl": BROWSER["cdpUrl"]}, CONTROLLING[:1]),
        (m.InteractSession, {"id": "s1", "cdpUrl": "", "interactiveLiveViewUrl": None}, []),
        (m.InteractSession, {"id": "s1", "newWayInUrl": f"wss://{SECRET}"}, []),
        (m.InteractSessions, {"success": True, "sessions": [LISTED, SESSION]}, CONTROLLING * 2),
        (m.ScrapeInteractResult, ON_PAGE, CONTROLLING),
        (m.ScrapeInteractResult, {**RAN, "newWayInUrl": f"wss://{SECRET}"}, []),
    ],
)
def test_urls_that_control_a_browser_are_named_but_not_shown(
    model: Any, answer: dict[str, Any], secrets: list[str]
) -> None:
    found = model.model_validate_json(json.dumps(answer))
    assert list(found.secrets()) == secrets
    assert SECRET not in f"{found!r} {found}"
    assert found.to_wire() == answer


@pytest.mark.rule("session-secrets")
@pytest.mark.parametrize(
    "model, answer",
    [
        (m.InteractSession, OPENED),
        (m.ScrapeInteractResult, ON_PAGE),
    ],
)
def test_what_may_be_passed_on(model: Any, answer: dict[str, Any]) -> None:
    found = model.model_validate({**answer, "newWayInUrl": f"wss://{SECRET}"})
    hidden = {"cdpUrl", "interactiveLiveViewUrl"}
    assert found.without_secrets() == {name: value for name, value in answer.items() if name not in hidden}


@pytest.mark.rule("ok-but-failed-code", "code-result")
@pytest.mark.parametrize(
    "answer, failure",
    [
        (RAN, None),
        ({}, "the answer does not say how it went"),
        ({"new": 1}, "the answer does not say how it went"),
        ({"stdout": ""}, None),
        ({"success": True, "exitCode": None}, None),
        ({**RAN, "stderr": "a warning"}, None),
        ({**RAN, "exitCode": 3}, "it ended with exit code 3"),
        ({**RAN, "exitCode": -9}, "it ended with exit code -9"),
        ({**RAN, "error": "NameError: x", "exitCode": 1}, "NameError: x"),
        ({**RAN, "killed": True, "exitCode": 137, "error": "x"}, "it was stopped at its timeout"),
        ({**RAN, "success": False}, "the service gave no reason"),
        ({"success": False, "error": "boom"}, "boom"),
    ],
)
def test_code_is_judged_by_what_it_did(answer: dict[str, Any], failure: str | None) -> None:
    assert m.ExecuteResult.model_validate(answer).failure() == failure
    assert m.ScrapeInteractResult.model_validate(answer).failure() == failure


@pytest.mark.rule("parse-answer", "session-answer", "session-list", "session-close")
@pytest.mark.rule("code-result", "scrape-interact", "scrape-interact-stop")
@pytest.mark.parametrize(
    "model, answer",
    [
        (m.SessionClosed, {"success": True, "sessionDurationMs": 61_000, "creditsBilled": 4}),
        (m.SessionClosed, {"success": True, "cleanupQueued": True}),
        (m.SessionClosed, {}),
        (m.InteractSessions, {"success": True, "sessions": []}),
        (m.InteractSession, {"id": "s", "createdAt": 1_800_000_000, "expiresAt": None}),
    ],
)
def test_answers_are_kept_as_they_came(model: Any, answer: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(answer)).to_wire() == answer


@pytest.mark.rule("open-responses")
@pytest.mark.parametrize(
    "model, answer",
    [
        (
            m.InteractSession,
            {"id": "s", "cdpUrl": {"url": SECRET}, "expiresAt": 1.5, "streamWebView": "perhaps"},
        ),
        (
            m.ExecuteResult,
            {"success": True, "stdout": ["a"], "exitCode": "none", "killed": {}, "error": {"a": 1}},
        ),
        (m.SessionClosed, {"sessionDurationMs": "long", "creditsBilled": None, "cleanupQueued": "soon"}),
    ],
)
def test_an_odd_field_costs_no_answer_that_was_paid_for(model: Any, answer: dict[str, Any]) -> None:
    found = model.model_validate_json(json.dumps(answer))
    assert found.to_wire() == answer
    assert SECRET not in f"{found!r} {found}"
    assert not hasattr(found, "secrets") or list(found.secrets()) == []


def test_an_odd_error_is_told() -> None:
    assert (
        m.ExecuteResult.model_validate({"error": {"name": "TypeError"}}).failure() == "{'name': 'TypeError'}"
    )


@pytest.mark.parametrize(
    "model, answer",
    [
        (m.InteractSession, {"success": True, "cdpUrl": f"wss://{SECRET}"}),
        (m.InteractSessions, {"success": True}),
    ],
)
def test_answers_that_are_none(model: Any, answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Field required") as caught:
        model.model_validate(answer)
    assert SECRET not in str(caught.value)
