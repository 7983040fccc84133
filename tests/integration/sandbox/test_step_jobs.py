"""Extract jobs and agent runs: their lives, results, events, bills and ends."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer

from .conftest import Api

HOOK = "http://127.0.0.1:9/nobody-listens"
LEVELS, FLOODS = "https://weather.example/levels", "https://river.example/floods"
NOBODY = str(uuid.UUID(int=7))
DAY = 86_400
SCHEMA = {
    "type": "object",
    "properties": {
        "level": {"type": "integer"},
        "pages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "level": {"type": "integer"}},
            },
        },
        "colour": {"type": "string"},
    },
}


def start(api: Any, kind: str, **body: Any) -> httpx.Response:
    return api.http.post(f"/v2/{kind}", json=body)


def started(api: Any, kind: str, **body: Any) -> str:
    response = start(api, kind, **body)
    assert response.status_code == 200, response.text
    return response.json()["id"]


def status(api: Any, kind: str, job: str) -> dict[str, Any]:
    response = api.http.get(f"/v2/{kind}/{job}")
    assert response.status_code == 200, response.text
    return response.json()


def done(sandbox: Any, api: Any, kind: str, **body: Any) -> dict[str, Any]:
    job = started(api, kind, **body)
    sandbox.control.settle()
    return status(api, kind, job)


def events(sandbox: Any) -> list[tuple[str, bool, list[Any]]]:
    sandbox.control.settle()
    bodies = [json.loads(item["body"]) for item in sandbox.control.deliveries()]
    return [(body["type"], body["success"], body["data"]) for body in bodies]


@pytest.fixture
def gauges(sandbox: SandboxServer) -> list[str]:
    """Two pages that state their level, one that states it as text, one that fails."""
    urls = [f"https://gauges.example/{name}" for name in ("a", "b", "text", "broken")]
    for url, level in zip(urls, ("412", "398", '"high"', "1"), strict=True):
        linked = f'<script type="application/ld+json">{{"level": {level}}}</script>'
        error = {"error": "SCRAPE_SITE_ERROR"} if url.endswith("broken") else {}
        sandbox.control.set_page(url, f"<h1>Gauge</h1>{linked}", title=f"Gauge {url[-1]}", **error)
    return urls


class TestExtract:
    @pytest.mark.rule("extract-answer")
    def test_start(self, api) -> None:
        response = start(api, "extract", urls=[LEVELS])
        assert response.json().keys() == {"success", "id", "invalidURLs"}
        assert (response.json()["success"], response.json()["invalidURLs"]) == (True, [])

    @pytest.mark.rule("extract-status")
    def test_while_it_runs(self, sandbox, api) -> None:
        sandbox.control.configure(step_seconds=60)
        job = started(api, "extract", urls=[LEVELS, FLOODS])
        for _ in range(3):
            found = status(api, "extract", job)
            assert (found["success"], found["status"], found["data"]) == (True, "processing", [])
            assert not {"tokensUsed", "creditsUsed", "sources", "error"} & found.keys()
            sandbox.control.advance(60)
        assert status(api, "extract", job)["status"] == "completed"

    @pytest.mark.rule("extract-schema", "extract-switches")
    def test_result_by_schema(self, sandbox, api, gauges) -> None:
        found = done(sandbox, api, "extract", urls=gauges[:3], schema=SCHEMA, showSources=True)
        assert found["data"] == {
            "level": 412,
            "pages": [
                {"title": "Gauge a", "level": 412},
                {"title": "Gauge b", "level": 398},
                {"title": "Gauge t"},
            ],
        }
        assert found["sources"] == {"level": gauges[:1], "pages": gauges[:3]}
        assert found["success"] is True
        assert "warning" not in found

    def test_result_without_schema(self, sandbox, api, gauges) -> None:
        found = done(sandbox, api, "extract", urls=gauges[:1])
        assert found["data"]["pages"][0]["url"] == gauges[0]
        assert found["data"]["pages"][0].keys() == {"url", "title", "description"}
        assert "sources" not in found

    def test_result_as_rows(self, sandbox, api, gauges) -> None:
        schema = {"type": "array", "items": {"$ref": "#/$defs/Row"}, "$defs": {"Row": SCHEMA}}
        assert done(sandbox, api, "extract", urls=gauges[:2], schema=schema)["data"] == [
            {"level": 412},
            {"level": 398},
        ]

    def test_what_no_page_states_is_named(self, sandbox, api, gauges) -> None:
        schema = {**SCHEMA, "required": ["level", "colour"]}
        found = done(sandbox, api, "extract", urls=[gauges[0], gauges[3]], schema=schema)
        assert found["status"] == "completed"
        assert "No page states: colour." in found["warning"]
        assert f"{gauges[3]}: SCRAPE_SITE_ERROR" in found["warning"]

    @pytest.mark.rule("ok-but-failed-job", "extract-status")
    def test_no_page_at_all_is_a_failure(self, sandbox, api, gauges) -> None:
        before = api.balance()
        found = done(sandbox, api, "extract", urls=[gauges[3]], webhook=HOOK)
        assert (found["success"], found["status"], found["data"]) == (False, "failed", [])
        assert "SCRAPE_SITE_ERROR" in found["error"]
        assert api.balance() == before
        assert events(sandbox) == [("extract.started", True, []), ("extract.failed", False, [])]

    @pytest.mark.rule("credits-agent", "extract-bill")
    def test_bill(self, sandbox, api) -> None:
        sandbox.control.set_page("https://long.example/", f"<p>{'x' * 601}</p>")
        sandbox.control.set_page("https://short.example/", "<p>x</p>")
        for url, tokens, credits in (("https://long.example/", 151, 11), ("https://short.example/", 15, 1)):
            before = api.balance()
            found = done(sandbox, api, "extract", urls=[url])
            assert (found["tokensUsed"], found["creditsUsed"]) == (tokens, credits)
            assert api.balance() == before - credits

    @pytest.mark.rule("extract-ignore-invalid-urls", "extract-answer")
    def test_wrong_urls(self, sandbox, api) -> None:
        mixed = ["nonsense", LEVELS, "ftp://a.example/x"]
        response = start(api, "extract", urls=mixed)
        assert response.json()["invalidURLs"] == ["nonsense", "ftp://a.example/x"]
        assert start(api, "extract", urls=mixed, ignoreInvalidURLs=False).status_code == 400
        strict = start(api, "extract", urls=[LEVELS], ignoreInvalidURLs=False)
        assert "invalidURLs" not in strict.json()
        none = start(api, "extract", urls=["nonsense"])
        assert (none.status_code, none.json()["error"]) == (400, "No valid URLs provided")
        sandbox.control.settle()
        (job, _) = sandbox.control.jobs("extract")
        assert [page["url"] for page in job["known"]] == [LEVELS]

    @pytest.mark.rule("extract-source", "extract-switches")
    @pytest.mark.parametrize(("below", "hosts"), [(True, 2), (False, 1), (None, 2)])
    def test_a_whole_site(self, sandbox, api, below: bool | None, hosts: int) -> None:
        for url in (
            "https://site.example/docs/a",
            "https://site.example/other",
            "https://sub.site.example/docs/b",
        ):
            sandbox.control.set_page(url, "<p>x</p>")
        more = {} if below is None else {"includeSubdomains": below}
        found = done(sandbox, api, "extract", urls=["https://site.example/docs/*"], **more)
        assert len(found["data"]["pages"]) == hosts

    @pytest.mark.rule("extract-switches")
    def test_search_finds_pages(self, sandbox, api) -> None:
        found = done(sandbox, api, "extract", prompt="river level gauge")
        assert 1 <= len(found["data"]["pages"]) <= 3
        with_search = done(
            sandbox, api, "extract", urls=[LEVELS], prompt="river floods rain", enableWebSearch=True
        )
        assert len(with_search["data"]["pages"]) > 1
        assert (
            len(done(sandbox, api, "extract", urls=[LEVELS], prompt="river floods rain")["data"]["pages"])
            == 1
        )

    @pytest.mark.rule("event-extract")
    def test_completed_event(self, sandbox, api, gauges) -> None:
        found = done(
            sandbox,
            api,
            "extract",
            urls=gauges[:2],
            schema=SCHEMA,
            webhook={"url": HOOK, "metadata": {"a": "b"}},
        )
        assert events(sandbox)[0] == ("extract.started", True, [])
        name, success, (data,) = events(sandbox)[1]
        assert (name, success) == ("extract.completed", True)
        assert data.keys() == {"success", "data", "extractId", "llmUsage", "totalUrlsScraped", "sources"}
        assert (data["data"], data["totalUrlsScraped"]) == (found["data"], 2)
        assert {json.loads(item["body"])["metadata"]["a"] for item in sandbox.control.deliveries()} == {"b"}

    @pytest.mark.rule("webhook-events-steps")
    @pytest.mark.parametrize("asked", [["completed"], ["started", "failed"], []])
    def test_only_the_events_asked_for(self, sandbox, api, asked: list[str]) -> None:
        done(sandbox, api, "extract", urls=[LEVELS], webhook={"url": HOOK, "events": asked})
        sent = {name.removeprefix("extract.") for name, _, _ in events(sandbox)}
        assert sent == (set(asked) or {"started", "completed"}) - {"failed"}

    @pytest.mark.rule("event-extract")
    def test_fault(self, sandbox, api) -> None:
        sandbox.control.add_fault("fail_extract")
        found = done(sandbox, api, "extract", urls=[LEVELS])
        assert (found["status"], found["error"]) == (
            "failed",
            "The job failed because the sandbox was told so.",
        )
        assert done(sandbox, api, "agent", prompt="river")["status"] == "completed"
        assert done(sandbox, api, "extract", urls=[LEVELS])["status"] == "completed"

    @pytest.mark.rule("no-extract-cancel")
    def test_no_cancel(self, api) -> None:
        assert api.http.delete(f"/v2/extract/{started(api, 'extract', urls=[LEVELS])}").status_code == 404

    @pytest.mark.rule("extract-expiry")
    def test_it_is_gone_after_a_day(self, sandbox, api) -> None:
        job = started(api, "extract", urls=[LEVELS])
        sandbox.control.advance(DAY - 60)
        assert status(api, "extract", job)["status"] == "completed"
        sandbox.control.advance(61)
        response = api.http.get(f"/v2/extract/{job}")
        assert (response.status_code, response.json()["error"]) == (404, "Extract job not found")

    def test_who_may(self, sandbox, api) -> None:
        assert start(api, "extract", urls=[LEVELS], threatProtection={"mode": "normal"}).status_code == 403
        sandbox.control.configure(credits=19)
        assert start(api, "extract", urls=[LEVELS]).status_code == 402
        sandbox.control.configure(credits=20)
        assert start(api, "extract", urls=[LEVELS]).status_code == 200
        without_key = httpx.post(f"{sandbox.url}/v2/extract", json={"urls": [LEVELS]}, trust_env=False)
        assert without_key.status_code == 401


class TestAgent:
    @pytest.mark.rule("agent-answer", "agent-status")
    def test_life(self, sandbox, api, gauges) -> None:
        sandbox.control.configure(step_seconds=60)
        response = start(
            api, "agent", prompt="levels", urls=gauges[:2], strictConstrainToURLs=True, schema=SCHEMA
        )
        assert response.json().keys() == {"success", "id"}
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
        [(10, "completed", 10), (9.5, "failed", 0), (5, "failed", 0), (1, "failed", 0)],
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
    @pytest.mark.parametrize(("limit", "spent"), [(2500, 0), (2500.5, 5), (2501, 5), (None, 0)])
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

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
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
        assert found["error"] == "The job failed because the sandbox was told so."
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
        for body in ({"mode": "chat"}, {"threadId": NOBODY}, {"exchange": {}}):
            assert start(api, "agent", prompt="x", **body).json()["code"] == "UNSUPPORTED_IN_SANDBOX"

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


@pytest.mark.parametrize("kind", ["extract", "agent"])
def test_a_restart_goes_on(tmp_path: Path, kind: str) -> None:
    state = str(tmp_path / "state.sqlite")
    body = {"prompt": "levels", "urls": [LEVELS, FLOODS], "webhook": HOOK}
    with SandboxServer(state=state, step_seconds=60) as server, Api(server).http as http:
        job = http.post(f"/v2/{kind}", json=body).json()["id"]
        server.control.advance(60)
        (before,) = server.control.jobs(kind)
        assert (before["status"], len(before["known"])) == ("processing", 1)
    with SandboxServer(state=state) as server, Api(server).http as http:
        server.control.settle()
        assert http.get(f"/v2/{kind}/{job}").json()["status"] == "completed"
        (after,) = server.control.jobs(kind)
        assert after["known"][0] == before["known"][0]
        sent = [item["event"] for item in server.control.deliveries()]
        assert sent.count(f"{kind}.started") == sent.count(f"{kind}.completed") == 1
