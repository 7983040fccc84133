# SPDX-License-Identifier: Apache-2.0
"""Threads of agent runs, and runs that reach their limit."""

from __future__ import annotations

from typing import Any

import pytest

from .step_job_calls import DAY, LEVELS, NOBODY, SCHEMA, done, start, status

STRICT = {"urls": [LEVELS], "strictConstrainToURLs": True}


@pytest.mark.rule("agent-threads", "agent-answer")
def test_a_thread_continues(sandbox: Any, api: Any) -> None:
    first = start(api, "agent", prompt="levels", schema=SCHEMA, **STRICT).json()
    assert first["threadTurn"] == 1
    sandbox.control.settle()
    second = start(
        api, "agent", prompt="again", threadId=first["threadId"], strictConstrainToURLs=True
    ).json()
    assert (second["threadId"], second["threadTurn"]) == (first["threadId"], 2)
    sandbox.control.settle()
    one, two = (status(api, "agent", run["id"]) for run in (first, second))
    assert one["data"] == two["data"]
    assert (two["threadId"], two["threadTurn"]) == (first["threadId"], 2)


@pytest.mark.rule("agent-threads", "agent-server-fields")
def test_a_turn_may_answer_in_words(sandbox: Any, api: Any) -> None:
    fields = {"mode": "chat", "exchange": {"enabled": False}, "location": {"country": "DE"}, **STRICT}
    first = start(api, "agent", prompt="levels", **fields).json()
    sandbox.control.settle()
    found = status(api, "agent", first["id"])
    assert (found["mode"], found["exchange"]) == (
        "chat",
        {"enabled": False, "paidCalls": 0, "creditsUsed": None},
    )
    assert "message" not in found
    assert found["data"]
    talk = done(sandbox, api, "agent", prompt="why?", threadId=first["threadId"])
    assert (talk["status"], talk["data"], talk["mode"]) == ("completed", None, "chat")
    assert talk["message"].startswith("The sandbox has no language model")


@pytest.mark.rule("agent-thread-errors")
def test_threads_that_cannot_go_on(sandbox: Any, api: Any) -> None:
    def refused(thread: str) -> tuple[int, str, Any]:
        answer = start(api, "agent", prompt="x", threadId=thread, **STRICT)
        return answer.status_code, answer.json()["code"], answer.json().get("runId")

    assert refused(NOBODY) == (404, "thread_not_found", None)
    sandbox.control.configure(step_seconds=60)
    first = start(api, "agent", prompt="x", **STRICT).json()
    assert refused(first["threadId"]) == (409, "thread_busy", first["id"])
    sandbox.control.advance(600)
    sandbox.control.advance(DAY + 60)
    assert refused(first["threadId"]) == (410, "thread_expired", None)


@pytest.mark.rule("agent-partial")
def test_a_run_that_reaches_its_limit_says_what_it_had(sandbox: Any, api: Any, gauges: Any) -> None:
    body = {"urls": gauges[:2], "strictConstrainToURLs": True, "maxCredits": 5, "effort": "low"}
    found = done(sandbox, api, "agent", prompt="levels", schema=SCHEMA, **body)
    assert (found["status"], found["stopReason"], found["effort"]) == (
        "failed",
        "credit_limit_reached",
        "low",
    )
    assert found["partial"]["pages"] == [{"title": "Gauge a", "level": 412}]
    assert found["partialSchemaValid"] is True
