"""Feedback through both hooks, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import errors
from tests.integration.hooks.conftest import one_hook
from tests.integration.hooks.test_jobs import JOB, calls_of
from tests.support.fault_server import answer
from tests.support.waiting import settled
from webdata_sandbox.server import SandboxServer

GOOD = {"rating": "good", "valuable_sources": [{"url": "https://a.example/"}]}


@pytest.mark.rule("feedback-answer", "feedback-once")
async def test_feedback(serve: Any) -> None:
    """A call after a lost answer changes nothing."""
    first = {"success": True, "feedbackId": JOB, "creditsRefunded": 1}
    again = {**first, "creditsRefunded": 0, "alreadySubmitted": True}
    server, hook = serve(first, answer(502, "bad gateway"), again)
    found = await settled(hook.search_feedback(JOB, GOOD, extra_body={"new": 1}))
    assert (found.feedback_id, found.credits_refunded, found.already_submitted) == (JOB, 1, None)
    request = {"endpoint": "scrape", "jobId": JOB, "rating": "bad", "note": "n"}
    assert (await settled(hook.feedback(request))).already_submitted
    assert calls_of(server) == [("POST", f"/v2/search/{JOB}/feedback"), *[("POST", "/v2/feedback")] * 2]
    sent = [json.loads(request.body) for request in server.requests]
    assert sent == [
        {"rating": "good", "valuableSources": [{"url": "https://a.example/"}], "new": 1},
        *[request] * 2,
    ]
    await settled(hook.close())


@pytest.mark.rule("feedback-errors")
@one_hook
async def test_refusals_have_their_code(serve: Any) -> None:
    body = {"success": False, "error": "Too late.", "feedbackErrorCode": "FEEDBACK_WINDOW_EXPIRED"}
    _, hook = serve(answer(409, json.dumps(body)))
    with pytest.raises(errors.ConflictError, match="FEEDBACK_WINDOW_EXPIRED: Too late") as caught:
        await settled(hook.search_feedback(JOB, GOOD))
    assert caught.value.code == "FEEDBACK_WINDOW_EXPIRED"
    await settled(hook.close())


@pytest.mark.rule("feedback-providers", "feedback-providers-refund")
async def test_feedback_on_data_providers(sandbox: SandboxServer, connect: Any, kind_of_hook: Any) -> None:
    """The refunds of a website end at 10 a day."""
    connect(sandbox.url)
    hook = kind_of_hook()
    lack = {"name": "levels", "provider": "gauges", "issue": "missing_capability", "why": "none has them"}
    about = {
        "rating": "bad",
        "requested_website": {"url": "https://river.example/", "requested_functionality": "levels"},
        "rationale": "a report",
        "capability_feedback": [lack],
    }
    before = sandbox.control.state()["credits"]
    found = [await settled(hook.provider_feedback(about)) for _ in range(11)]
    assert [answer.credits_refunded for answer in found] == [1] * 10 + [0]
    assert (found[-1].daily_cap_reached, found[-1].daily_refund_cap) == (True, 100)
    assert sandbox.control.state()["credits"] == before + 10
    lack["issue"] = "new_capability_request"
    with pytest.raises(errors.InvalidRequestError, match="requestedFunctionality"):
        await settled(hook.provider_feedback(about))
    await settled(hook.close())
