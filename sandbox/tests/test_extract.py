# SPDX-License-Identifier: Apache-2.0
"""Extract jobs: results, bills and ends."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.support.tables import each_row

from .conftest import reset_sandbox
from .step_job_calls import DAY, FLOODS, HOOK, LEVELS, SCHEMA, done, events, start, started, status


class TestExtract:
    def test_start(self, api) -> None:
        response = start(api, "extract", urls=[LEVELS])
        assert response.json().keys() == {"success", "id", "invalidURLs"}
        assert (response.json()["success"], response.json()["invalidURLs"]) == (True, [])

    def test_while_it_runs(self, sandbox, api) -> None:
        sandbox.control.configure(step_seconds=60)
        job = started(api, "extract", urls=[LEVELS, FLOODS])
        for _ in range(3):
            found = status(api, "extract", job)
            assert (found["success"], found["status"], found["data"]) == (True, "processing", [])
            assert not {"tokensUsed", "creditsUsed", "sources", "error"} & found.keys()
            sandbox.control.advance(60)
        assert status(api, "extract", job)["status"] == "completed"

    def test_result_by_schema(self, sandbox, api, gauges) -> None:
        found = done(sandbox, api, "extract", urls=gauges[:3], schema=SCHEMA, showSources=True)
        assert found["data"] == {
            "level": 412,
            "pages": [
                {"title": "Gauge a", "level": 412},
                {"title": "Gauge b", "level": 398},
                {"title": "Gauge t", "level": "high"},
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

    @pytest.mark.rule("ok-but-failed-job")
    def test_no_page_at_all_is_a_failure(self, sandbox, api, gauges) -> None:
        before = api.balance()
        found = done(sandbox, api, "extract", urls=[gauges[3]], webhook=HOOK)
        assert (found["success"], found["status"], found["data"]) == (False, "failed", [])
        assert "SCRAPE_SITE_ERROR" in found["error"]
        assert api.balance() == before
        assert events(sandbox) == [("extract.started", True, []), ("extract.failed", False, [])]

    @pytest.mark.rule("credits-agent")
    def test_bill(self, sandbox, api) -> None:
        sandbox.control.set_page("https://long.example/", f"<p>{'x' * 601}</p>")
        sandbox.control.set_page("https://short.example/", "<p>x</p>")
        for url, tokens, credits in (("https://long.example/", 151, 11), ("https://short.example/", 15, 1)):
            before = api.balance()
            found = done(sandbox, api, "extract", urls=[url])
            assert (found["tokensUsed"], found["creditsUsed"]) == (tokens, credits)
            assert api.balance() == before - credits

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

    @each_row("below, hosts", [(True, 2), (False, 1), (None, 2)], before=reset_sandbox)
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
    @each_row("asked", [["completed"], ["started", "failed"], []], before=reset_sandbox)
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
            "The job failed because of an injected fault.",
        )
        assert done(sandbox, api, "agent", prompt="river")["status"] == "completed"
        assert done(sandbox, api, "extract", urls=[LEVELS])["status"] == "completed"

    def test_no_cancel(self, api) -> None:
        assert api.http.delete(f"/v2/extract/{started(api, 'extract', urls=[LEVELS])}").status_code == 404

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
        without_key = httpx.post(
            f"{sandbox.url}/v2/extract", json={"urls": [LEVELS]}, trust_env=False, verify=False
        )
        assert without_key.status_code == 401
