"""Questions to the support agent through both hooks, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import errors
from tests.integration.hooks.test_jobs import JOB, calls_of
from tests.support.fault_server import answer
from tests.support.waiting import settled


@pytest.mark.rule("support-question", "support-job", "support-further", "support-answer")
async def test_a_question(serve: Any) -> None:
    server, hook = serve(
        {"answer": "Wait for the page.", "confidence": "high", "fixParameters": {"waitFor": 5}}
    )
    found = await settled(hook.ask("why?", job_id=JOB, rationale="prices", context={"run": 1}))
    assert (found.answer, found.fix_parameters, found.feedback) == (
        "Wait for the page.",
        {"waitFor": 5},
        None,
    )
    assert calls_of(server) == [("POST", "/v2/support/ask")]
    sent = {"question": "why?", "jobId": JOB, "rationale": "prices", "context": {"run": 1}}
    assert json.loads(server.requests[0].body) == sent
    await settled(hook.close())


@pytest.mark.rule("support-question")
async def test_a_question_that_breaks_a_rule_is_not_sent(serve: Any) -> None:
    server, hook = serve()
    for question in ("", "x" * 8001):
        with pytest.raises(errors.InvalidRequestError, match="question"):
            await settled(hook.ask(question))
    assert server.requests == []
    await settled(hook.close())


@pytest.mark.rule("support-statuses")
async def test_a_server_without_an_agent(serve: Any) -> None:
    """It names no `success`."""
    body = json.dumps({"error": "support_agent_unavailable"})
    _, hook = serve(*[answer(503, body)] * 10)
    with pytest.raises(
        errors.UnsupportedError, match=r"(?s)support_agent_unavailable.*it has no support agent"
    ):
        await settled(hook.ask("why?"))
    await settled(hook.close())
