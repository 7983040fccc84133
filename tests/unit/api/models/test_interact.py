# SPDX-License-Identifier: Apache-2.0
"""Browser sessions and code: the limit in bytes, secrets, and results."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.api.errors import InvalidRequestError
from tests.support.examples import examples
from tests.unit.api.models.tables import SECRET

any_code = st.text(st.characters(codec="utf-8"), min_size=1)


@pytest.mark.rule("code-text")
@examples(0.4)
@given(value=any_code, ends=st.sampled_from(["", "ä", "𐍈"]))
def test_code_is_measured_in_bytes(value: str, ends: str) -> None:
    """Filled up to the limit it passes, and one byte more is one too many."""
    full = value + ends + "x" * (100_000 - len((value + ends).encode()))
    assert m.ExecuteRequest(code=full).code == full
    for more in ("x", "ä"):
        with pytest.raises(ValueError, match="UTF-8 bytes"):
            m.ExecuteRequest(code=full + more)


@pytest.mark.rule("code-text")
@pytest.mark.parametrize("model", [m.ExecuteRequest, m.ScrapeInteractRequest])
def test_code_stays_out_of_errors(model: type[m.RequestModel]) -> None:
    for given_code in (f"{SECRET}\ud800", SECRET * 10_000, SECRET.encode(), [SECRET]):
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
        ({}, "the response does not contain the outcome"),
        ({"stdout": ""}, None),
        ({"success": True, "exitCode": None}, None),
        ({**RAN, "stderr": "a warning"}, None),
        ({**RAN, "exitCode": 3}, "it exited with code 3"),
        ({**RAN, "error": "NameError: x", "exitCode": 1}, "NameError: x"),
        ({**RAN, "killed": True, "exitCode": 137, "error": "x"}, "it was stopped at its timeout"),
        ({**RAN, "success": False}, "the service gave no reason"),
        ({"success": False, "error": "boom"}, "boom"),
    ],
)
def test_code_is_judged_by_what_it_did(answer: dict[str, Any], failure: str | None) -> None:
    assert m.ExecuteResult.model_validate(answer).failure() == failure
    assert m.ScrapeInteractResult.model_validate(answer).failure() == failure


def test_an_error_that_is_an_object() -> None:
    failed = m.ExecuteResult.model_validate({"error": {"name": "TypeError"}})
    assert failed.failure() == "{'name': 'TypeError'}"


def test_what_is_not_a_session_is_an_error_without_its_secrets() -> None:
    with pytest.raises(ValueError, match="Field required") as caught:
        m.InteractSession.model_validate({"success": True, "cdpUrl": f"wss://{SECRET}"})
    assert SECRET not in str(caught.value)
