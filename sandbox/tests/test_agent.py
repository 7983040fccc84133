# SPDX-License-Identifier: Apache-2.0
"""Agent runs: steps, results, bills and ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import each_row

from .conftest import reset_sandbox
from .step_job_calls import DAY, FLOODS, HOOK, LEVELS, NOBODY, SCHEMA, done, events, start, started, status


class TestAgent:
    @pytest.mark.rule("agent-answer", "agent-status")
    def test_life(self, sandbox, api, gauges) -> None:
        sandbox.control.configure(step_seconds=60)
        response = start(
            api, "agent", prompt="levels", urls=gauges[:2], strictConstrainToURLs=True, schema=SCHEMA
        )
        assert response.json().keys() == {"success", "id", "threadId", "threadTurn"}
        job = response.json()["id"]
        for _ in range(3):
            found = status(api, "agent", job)
            assert (found["success"], found["status"]) == (True, "processing")
            assert not {"data", "error"} & found.keys()
            sandbox.control.advance(60)
        found = status(api, "agent", job)
        assert (found["status"], found["model"]) == ("completed", "spark-1-pro")
        assert found["data"] == {
            "level": 412,
            "pages": [{"title": "Gauge a", "level": 412}, {"title": "Gauge b", "level": 398}],
        }

    @pytest.mark.rule("agent-urls")
    def test_it_searches_unless_kept_to_its_urls(self, sandbox, api) -> None:
        def visited(**body: Any) -> list[str]:
            found = done(sandbox, api, "agent", prompt="which river rises", **body)
            return [page["url"] for page in found["data"]["pages"]]

        assert visited(urls=[LEVELS], strictConstrainToURLs=True) == [LEVELS]
        hinted = visited(urls=[FLOODS])
        assert hinted[0] == FLOODS
        assert len(hinted) == len(set(hinted)) > 1
        assert len(visited()) == 3

    @pytest.mark.rule("event-agent")
    def test_events(self, sandbox, api, gauges) -> None:
        sandbox.control.configure(free_runs=0)
        found = done(
            sandbox, api, "agent", prompt="x", urls=gauges[:2], strictConstrainToURLs=True, webhook=HOOK
        )
        visits = [
            {"creditsUsed": n, "action": "scrape", "input": {"url": url}}
            for n, url in ((5, gauges[0]), (10, gauges[1]))
        ]
        assert events(sandbox) == [
            ("agent.started", True, []),
            ("agent.action", True, visits[:1]),
            ("agent.action", True, visits[1:]),
            ("agent.completed", True, [{"creditsUsed": 10, "data": found["data"]}]),
        ]

    @pytest.mark.rule("agent-max-credits", "agent-status")
    @pytest.mark.parametrize(
        ("limit", "outcome", "spent"),
        [(10, "completed", 10), (9.5, "failed", 0), (1, "failed", 0)],
    )
    def test_max_credits(self, sandbox, api, gauges, limit: float, outcome: str, spent: int) -> None:
        sandbox.control.configure(free_runs=0)
        before = api.balance()
        body = {"urls": gauges[:2], "strictConstrainToURLs": True, "maxCredits": limit, "webhook": HOOK}
        found = done(sandbox, api, "agent", prompt="levels", **body)
        assert (found["success"], found["status"], found["creditsUsed"]) == (True, outcome, spent)
        assert ("data" in found, "error" in found) == (outcome == "completed", outcome == "failed")
        assert api.balance() == before - spent
        name, success, (data,) = events(sandbox)[-1]
        assert (name, success, data["creditsUsed"]) == (f"agent.{outcome}", outcome == "completed", spent)

    @pytest.mark.rule("credits-agent", "agent-free-runs")
    def test_free_runs(self, sandbox, api) -> None:
        body = {"urls": [LEVELS], "strictConstrainToURLs": True}
        before = api.balance()
        used = [done(sandbox, api, "agent", prompt="x", **body)["creditsUsed"] for _ in range(6)]
        assert used == [0, 0, 0, 0, 0, 5]
        assert api.balance() == before - 5
        sandbox.control.advance(DAY)
        assert done(sandbox, api, "agent", prompt="x", **body)["creditsUsed"] == 0

    @pytest.mark.rule("agent-free-runs")
    @each_row("limit, spent", [(2500, 0), (2500.5, 5), (2501, 5), (None, 0)], before=reset_sandbox)
    def test_a_large_limit_is_never_free(self, sandbox, api, limit: float | None, spent: int) -> None:
        more = {} if limit is None else {"maxCredits": limit}
        body = {"urls": [LEVELS], "strictConstrainToURLs": True, **more}
        assert done(sandbox, api, "agent", prompt="x", **body)["creditsUsed"] == spent

    @pytest.mark.rule("credits-balance")
    def test_balance_is_needed_unless_free(self, sandbox, api) -> None:
        sandbox.control.configure(credits=19, free_runs=1)
        assert start(api, "agent", prompt="x").status_code == 200
        assert start(api, "agent", prompt="x").status_code == 402
        sandbox.control.configure(credits=20)
        assert start(api, "agent", prompt="x").status_code == 200

    @pytest.mark.rule("agent-cancel", "event-agent")
    def test_cancel_waits_for_the_next_step(self, sandbox, api, gauges) -> None:
        sandbox.control.configure(step_seconds=60, free_runs=0)
        before = api.balance()
        job = started(api, "agent", prompt="x", urls=gauges[:3], strictConstrainToURLs=True, webhook=HOOK)
        sandbox.control.advance(60)
        assert status(api, "agent", job)["creditsUsed"] == 5
        for _ in range(2):
            response = api.http.delete(f"/v2/agent/{job}")
            assert (response.status_code, response.json()) == (200, {"success": True})
        assert status(api, "agent", job)["status"] == "processing"
        sandbox.control.advance(60)
        found = status(api, "agent", job)
        assert (found["success"], found["status"], found["creditsUsed"]) == (True, "cancelled", 5)
        assert not {"data", "error"} & found.keys()
        assert api.balance() == before - 5
        assert events(sandbox)[-1] == ("agent.cancelled", False, [{"creditsUsed": 5}])
        sandbox.control.advance(600)
        assert len(sandbox.control.jobs("agent")[0]["known"]) == 1
        over = api.http.delete(f"/v2/agent/{job}")
        assert (over.status_code, over.json()["error"]) == (409, "Agent already finished")

    @pytest.mark.rule("agent-cancel-ended")
    def test_what_ended_cannot_be_cancelled(self, sandbox, api) -> None:
        job = started(api, "agent", prompt="river")
        sandbox.control.settle()
        assert api.http.delete(f"/v2/agent/{job}").status_code == 409
        assert status(api, "agent", job)["status"] == "completed"

    @each_row("method", ["GET", "DELETE"])
    def test_unknown(self, api, method: str) -> None:
        response = api.http.request(method, f"/v2/agent/{NOBODY}")
        assert (response.status_code, response.json()["error"]) == (404, "Agent job not found")
        assert api.http.request(method, "/v2/agent/no-uuid").status_code == 400

    @pytest.mark.rule("agent-expiry")
    def test_it_is_gone_after_a_day(self, sandbox, api) -> None:
        job = started(api, "agent", prompt="river")
        sandbox.control.advance(DAY - 60)
        assert status(api, "agent", job)["status"] == "completed"
        sandbox.control.advance(61)
        for method in ("GET", "DELETE"):
            assert api.http.request(method, f"/v2/agent/{job}").status_code == 404

    def test_fault(self, sandbox, api) -> None:
        sandbox.control.configure(free_runs=0)
        sandbox.control.add_fault("fail_agent")
        before = api.balance()
        found = done(sandbox, api, "agent", prompt="river", webhook=HOOK)
        assert (found["success"], found["status"]) == (True, "failed")
        assert found["error"] == "The job failed because of an injected fault."
        assert api.balance() == before
        assert events(sandbox)[-1] == ("agent.failed", False, [{"creditsUsed": 0}])

    @pytest.mark.rule("agent-schema")
    def test_wrong_bodies(self, api) -> None:
        bad = start(api, "agent", prompt="x", schema={"type": "objekt"})
        assert (bad.status_code, bad.json()["code"]) == (400, "BAD_REQUEST")
        assert bad.json()["error"].startswith("Invalid JSON schema: ")
        assert (
            start(api, "agent", prompt="x", nonsense=1).json()["error"].startswith("Unrecognized key in body")
        )
        answer = {"threadId": NOBODY, "exchange": {"decline": {"approvalId": NOBODY}}}
        assert start(api, "agent", prompt="x", **answer).json()["code"] == "thread_not_found"
        for body in (
            {"exchange": answer["exchange"]},
            {"exchange": {"requireApproval": True}},
            {"exchange": {"requireApproval": True}, "mode": "extract"},
            {**answer, "exchange": {**answer["exchange"], "approve": {"approvalId": NOBODY}}},
            {"exchange": {"toolkits": ["a"] * 6}},
            {"exchange": {"maxCalls": 31}},
            {"location": {"country": "de"}},
        ):
            assert start(api, "agent", prompt="x", **body).json()["code"] == "BAD_REQUEST", body

    @pytest.mark.rule("threat-entitlement")
    def test_entitlements(self, sandbox, api) -> None:
        for body in ({"threatProtection": {"mode": "normal"}}, {"zeroDataRetention": True}):
            assert start(api, "agent", prompt="x", **body).status_code == 403
        sandbox.control.configure(entitlements=["threatProtection", "zeroDataRetention"])
        for body in ({"threatProtection": {"mode": "normal"}}, {"zeroDataRetention": True}):
            assert start(api, "agent", prompt="x", **body).status_code == 200

    @pytest.mark.rule("rate-classes")
    def test_extract_shares_its_rate_limits(self, sandbox, api) -> None:
        sandbox.control.configure(rate_limits={"agent": 2, "agent-status": 1})
        job = started(api, "extract", urls=[LEVELS])
        started(api, "agent", prompt="x")
        assert start(api, "extract", urls=[LEVELS]).status_code == 429
        assert status(api, "extract", job)
        assert api.http.get(f"/v2/agent/{NOBODY}").status_code == 429
