# SPDX-License-Identifier: Apache-2.0
"""Browser sessions: how long they live, what they cost, and who may have one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.tables import each_row
from tests.support.waiting import PATIENCE, wait_until
from webdata_sandbox.reference.timestamps import from_iso
from webdata_sandbox.server import SandboxServer

from .conftest import Api, reset_sandbox
from .session_calls import FLOODS, NOBODY, TITLE, closed, listed, opened, ran, run


@pytest.mark.rule("session-ttl", "session-activity-ttl", "session-answer")
def test_open(sandbox, api) -> None:
    session = opened(api)
    assert session.keys() == {"success", "id", "cdpUrl", "liveViewUrl", "interactiveLiveViewUrl", "expiresAt"}
    assert session["success"] is True
    assert session["cdpUrl"].startswith("wss://")
    assert "token=" in session["cdpUrl"]
    assert "token=" in session["interactiveLiveViewUrl"]
    assert session["interactiveLiveViewUrl"] != session["liveViewUrl"]
    assert opened(api)["cdpUrl"].split("token=")[1] != session["cdpUrl"].split("token=")[1]


@pytest.mark.rule("session-list")
def test_list(sandbox, api) -> None:
    first, second = opened(api, streamWebView=False)["id"], opened(api)["id"]
    closed(api, first)
    assert (listed(api), listed(api, "active"), listed(api, "destroyed")) == (
        [first, second],
        [second],
        [first],
    )
    assert listed(api, "error") == []
    assert api.http.get("/v2/interact?status=other").status_code == 400
    (item,) = api.http.get("/v2/interact?status=destroyed").json()["sessions"]
    assert item.keys() == {
        *("id", "status", "cdpUrl", "liveViewUrl", "interactiveLiveViewUrl"),
        *("streamWebView", "createdAt", "lastActivity"),
    }
    assert (item["status"], item["streamWebView"]) == ("destroyed", False)


@pytest.mark.rule("session-alias")
def test_the_older_path_is_the_same(api) -> None:
    session = opened(api)["id"]
    assert [item["id"] for item in api.http.get("/v2/browser").json()["sessions"]] == [session]
    assert api.http.post(f"/v2/browser/{session}/execute", json={"code": ""}).status_code == 400
    assert api.http.delete(f"/v2/browser/{session}").status_code == 200
    assert run(api, session, "process.exit(0)").status_code == 410


@pytest.fixture(scope="module")
def fast() -> Iterator[Api]:
    """A sandbox whose seconds pass quickly."""
    with SandboxServer(speed=200) as server:
        api = Api(server)
        with api.http:
            yield api


class TestTime:
    @pytest.mark.rule("code-timeout")
    @each_row(
        "code, language, timeout, killed",
        [
            ("sleep 30", "bash", None, False),
            ("sleep 30.5", "bash", None, True),
            ("sleep 5", "bash", 5, False),
            ("sleep 5.1", "bash", 5, True),
            ("sleep 3; sleep 3", "bash", 5, True),
            ("await page.waitForTimeout(5000)", "node", 5, False),
            ("await page.waitForTimeout(5001)", "node", 5, True),
            ("time.sleep(299)", "python", 300, False),
            ("time.sleep(301)", "python", 300, True),
        ],
    )
    def test_timeout(self, fast: Api, code: str, language: str, timeout: int | None, killed: bool) -> None:
        session = opened(fast, ttl=3600)["id"]
        answer = ran(fast, session, code, language, **({"timeout": timeout} if timeout else {}))
        assert (answer["success"], answer["killed"], answer["exitCode"]) == (
            True,
            killed,
            None if killed else 0,
        )
        assert ("timed out" in (answer["error"] or "")) is killed

    @pytest.mark.rule("code-result")
    def test_what_was_printed_before_the_kill_is_kept(self, fast: Api) -> None:
        session = opened(fast, ttl=3600)["id"]
        assert ran(fast, session, "echo a\nsleep 60\necho b", "bash")["stdout"] == "a\n"

    @pytest.mark.rule("session-ttl", "session-activity-ttl")
    @each_row(
        "body, life",
        [({}, 300), ({"ttl": 30}, 30), ({"ttl": 3600}, 3600), ({"ttl": 60, "activityTtl": 20}, 20)],
        before=reset_sandbox,
    )
    def test_it_ends_by_itself(self, sandbox, api, body: dict[str, int], life: int) -> None:
        session = opened(api, **body)
        sandbox.control.advance(life - 10)
        assert listed(api, "active") == [session["id"]]
        sandbox.control.advance(10)
        assert listed(api, "active") == []
        assert run(api, session["id"], "process.exit(0)").status_code == 410

    def test_expires_at(self, sandbox, api) -> None:
        session = opened(api, ttl=77)
        (stored,) = sandbox.control.sessions()
        life = from_iso(session["expiresAt"]) - from_iso(stored["createdAt"])
        assert life.total_seconds() == 77

    @pytest.mark.rule("session-ttl", "session-activity-ttl")
    def test_activity_keeps_it_open_until_its_ttl(self, sandbox, api) -> None:
        session = opened(api, ttl=60, activityTtl=30)["id"]
        for _ in range(3):
            sandbox.control.advance(15)
            ran(api, session, "process.exit(0)")
        sandbox.control.advance(6)
        assert listed(api, "active") == [session]
        sandbox.control.advance(10)
        assert listed(api, "active") == []

    @pytest.mark.rule("session-activity-ttl")
    def test_code_that_runs_is_activity(self, sandbox, api) -> None:
        session = opened(api, ttl=3600, activityTtl=100)["id"]
        answers: list[dict[str, Any]] = []
        code = threading.Thread(
            target=lambda: answers.append(ran(api, session, "sleep 200", "bash", timeout=300))
        )
        code.start()
        assert wait_until(lambda: sandbox.control.requests(f"/v2/interact/{session}/execute"))
        for _ in range(2):
            sandbox.control.advance(80)
        assert wait_until(lambda: sandbox.control.advance(10) or answers)
        assert answers[0]["exitCode"] == 0

    @pytest.mark.rule("status-410", "session-close")
    @pytest.mark.parametrize("how", ["close", "control", "ttl"])
    def test_it_can_be_closed_under_its_code(self, sandbox, api, how: str) -> None:
        session = opened(api, ttl=60)["id"]
        answers: list[httpx.Response] = []
        # The wait is longer than the test: only the session's end lets it go.
        code = threading.Thread(
            target=lambda: answers.append(run(api, session, "sleep 200", "bash", timeout=300))
        )
        code.start()
        assert wait_until(lambda: sandbox.control.requests(f"/v2/interact/{session}/execute"))
        if how == "close":
            closed(api, session)
        elif how == "control":
            sandbox.control.end_session(session)
        else:
            sandbox.control.advance(60)
        code.join(PATIENCE)
        assert [(answer.status_code, answer.json()["error"]) for answer in answers] == [
            (410, "Browser session has been destroyed.")
        ]

    def test_lifetimes_outlive_a_restart(self, tmp_path: Path) -> None:
        state = str(tmp_path / "state.sqlite")
        with SandboxServer(state=state) as server, Api(server).http as http:
            session = http.post("/v2/interact", json={"ttl": 60}).json()["id"]
        with SandboxServer(state=state) as server, Api(server).http:
            assert [item["status"] for item in server.control.sessions()] == ["active"]
            server.control.advance(61)
            (stored,) = server.control.sessions()
            assert (stored["id"], stored["status"]) == (session, "destroyed")


class TestEnd:
    @pytest.mark.rule("credits-interact", "session-close")
    @each_row(
        "seconds, credits", [(0, 2), (50, 2), (61, 3), (90, 4), (150, 6), (3000, 101)], before=reset_sandbox
    )
    def test_bill(self, sandbox, api, seconds: int, credits: int) -> None:
        before = api.balance()
        session = opened(api, ttl=3600)["id"]
        sandbox.control.advance(seconds)
        assert api.balance() == before  # billed at the end
        answer = closed(api, session)
        assert answer.keys() == {"success", "sessionDurationMs", "creditsBilled"}
        assert 0 <= answer["sessionDurationMs"] - seconds * 1000 < 10_000
        # The little real time that passes may cost one more, where a minute's part is used up exactly.
        assert answer["creditsBilled"] in (credits - (seconds == 3000), credits)
        assert api.balance() == before - answer["creditsBilled"]

    @pytest.mark.rule("session-close")
    def test_closing_twice_bills_once(self, sandbox, api) -> None:
        before = api.balance()
        session = opened(api)["id"]
        first = closed(api, session)
        sandbox.control.advance(600)
        assert closed(api, session) == first
        assert api.balance() == before - 2

    def test_what_ends_by_itself_is_billed_too(self, sandbox, api) -> None:
        before = api.balance()
        opened(api, ttl=120)
        sandbox.control.advance(1000)
        assert before - api.balance() in (4, 5)
        assert 120_000 <= sandbox.control.sessions()[0]["sessionDurationMs"] < 130_000


class TestWho:
    @pytest.mark.rule("session-statuses")
    def test_unknown(self, api) -> None:
        for response in (run(api, NOBODY, "x"), api.http.delete(f"/v2/interact/{NOBODY}")):
            assert (response.status_code, response.json()["error"]) == (404, "Browser session not found.")
        assert run(api, "no-uuid", "x").status_code == 400

    @pytest.mark.rule("status-402", "credits-balance")
    def test_credits(self, sandbox, api) -> None:
        sandbox.control.configure(credits=1)
        assert api.http.post("/v2/interact", json={}).status_code == 402
        sandbox.control.configure(credits=2)
        assert api.http.post("/v2/interact", json={}).status_code == 200

    @pytest.mark.rule("session-statuses")
    def test_number_of_sessions(self, sandbox, api) -> None:
        sandbox.control.configure(max_sessions=2)
        first = opened(api)["id"]
        opened(api)
        response = api.http.post("/v2/interact", json={})
        assert response.status_code == 429
        assert "maximum number of active browser sessions" in response.json()["error"]
        closed(api, first)
        opened(api)

    @pytest.mark.rule("rate-classes")
    def test_rate_limits(self, sandbox, api) -> None:
        sandbox.control.configure(rate_limits={"interact": 1, "interact-execute": 1})
        session = opened(api)["id"]
        assert api.http.post("/v2/interact", json={}).status_code == 429
        assert ran(api, session, "process.exit(0)")["exitCode"] == 0
        assert api.http.get("/v2/interact").status_code == 429

    @pytest.mark.rule("status-409", "scrape-profile", "session-profile")
    def test_one_saves_a_profile_at_a_time(self, sandbox, api) -> None:
        profile = {"name": "shop"}
        first = opened(api, profile=profile)["id"]
        busy = api.http.post("/v2/interact", json={"profile": profile})
        assert busy.status_code == 409
        reader = opened(api, profile={**profile, "saveChanges": False})["id"]
        opened(api, profile={"name": "other"})
        closed(api, first)
        opened(api, profile=profile)
        ran(api, reader, "process.exit(0)")

    @pytest.mark.rule("scrape-profile", "session-profile")
    def test_a_profile_is_saved_when_its_session_ends(self, sandbox, api) -> None:
        def keep(value: str) -> str:
            return f'await page.evaluate(() => localStorage.setItem("cart", "{value}"))'

        kept = 'console.log(await page.evaluate(() => localStorage.getItem("cart")))'
        first = opened(api, profile={"name": "shop"}, ttl=60)["id"]
        ran(api, first, keep("apples"))
        early = opened(api, profile={"name": "shop", "saveChanges": False})["id"]
        assert ran(api, early, kept)["stdout"] == "null\n"
        ran(api, early, keep("pears"))
        sandbox.control.advance(60)
        closed(api, early)
        second = opened(api, profile={"name": "shop"})["id"]
        assert ran(api, second, kept)["stdout"] == "apples\n"
        assert ran(api, opened(api)["id"], kept)["stdout"] == "null\n"


class TestOnAScrape:
    """The form that is bound to a scrape."""

    @pytest.fixture
    def scrape(self, api: Api) -> str:
        return self.scraped(api)

    def scraped(self, api: Api, url: str = FLOODS, **options: Any) -> str:
        response = api.http.post("/v2/scrape", json={"url": url, **options})
        assert response.status_code == 200, response.text
        return response.json()["data"]["metadata"]["scrapeId"]

    def act(self, api: Api, scrape: str, **body: Any) -> httpx.Response:
        return api.http.post(f"/v2/scrape/{scrape}/interact", json=body)

    @pytest.mark.rule("scrape-interact")
    def test_it_begins_on_the_page_and_goes_on(self, api, scrape: str) -> None:
        first = self.act(api, scrape, code="console.log(await page.title())").json()
        assert (first["success"], first["stdout"], first["exitCode"]) == (True, f"{TITLE}\n", 0)
        assert {"cdpUrl", "liveViewUrl", "interactiveLiveViewUrl", "sessionId"} < first.keys()
        assert "output" not in first
        self.act(api, scrape, code='await page.goto("https://weather.example/levels")')
        third = self.act(api, scrape, code="agent-browser get url", language="bash").json()
        assert third["stdout"] == "https://weather.example/levels\n"
        assert third["sessionId"] == first["sessionId"]
        assert listed(api, "active") == [first["sessionId"]]

    @pytest.mark.rule("ok-but-failed-code")
    @each_row("code", ['throw new Error("boom")', "nonsense", "process.exit(3)"])
    def test_failed_code_is_no_success_here(self, api, scrape: str, code: str) -> None:
        response = self.act(api, scrape, code=code)
        assert response.status_code == 200
        assert response.json()["success"] is False
        assert response.json()["exitCode"] in (1, 3)

    @pytest.mark.rule("ok-but-failed-code")
    def test_killed_code_is_no_success_here(self, sandbox, api, scrape: str) -> None:
        answers: list[Any] = []
        code = threading.Thread(
            target=lambda: answers.append(
                self.act(api, scrape, code="sleep 20", language="bash", timeout=10).json()
            )
        )
        code.start()
        assert wait_until(sandbox.control.sessions)
        # The run may begin a moment after its session is there.
        assert wait_until(lambda: sandbox.control.advance(10) or answers)
        assert (answers[0]["success"], answers[0]["killed"], answers[0]["exitCode"]) == (False, True, None)

    @pytest.mark.rule("credits-interact", "scrape-interact")
    def test_prompt(self, api, scrape: str) -> None:
        before = api.balance()
        answer = self.act(api, scrape, prompt="What happened after a week of rain?").json()
        assert answer["success"] is True
        assert answer["output"].startswith("The sandbox has no language model")
        assert "rain" in answer["output"].split(": ", 1)[1]
        assert answer["exitCode"] == 0
        stopped = api.http.delete(f"/v2/scrape/{scrape}/interact").json()
        assert stopped["creditsBilled"] == 7
        assert stopped["cleanupQueued"] is False
        assert api.balance() == before - 7

    @pytest.mark.rule("scrape-interact-stop", "scrape-interact-statuses")
    def test_stop(self, api, scrape: str) -> None:
        url = f"/v2/scrape/{scrape}/interact"
        assert api.http.delete(url).status_code == 404
        self.act(api, scrape, code="process.exit(0)")
        first = api.http.delete(url).json()
        assert (first["success"], first["creditsBilled"]) == (True, 2)
        assert api.http.delete(url).json() == first
        assert self.act(api, scrape, code="process.exit(0)").status_code == 410

    @pytest.mark.rule("scrape-interact-statuses")
    def test_who_may(self, sandbox, api, scrape: str) -> None:
        assert self.act(api, NOBODY, code="x").status_code == 404
        assert api.http.delete(f"/v2/scrape/{NOBODY}/interact").status_code == 404
        assert self.act(api, "no-uuid", code="x").status_code == 400
        sandbox.control.set_page("https://gone.example/", "<p>x</p>")
        gone = self.scraped(api, "https://gone.example/")
        sandbox.control.delete_page("https://gone.example/")
        assert self.act(api, gone, code="x").status_code == 409
        assert self.act(api, scrape).status_code == 400
        sandbox.control.configure(credits=1)
        assert self.act(api, scrape, code="x").status_code == 402
        sandbox.control.configure(credits=100, max_sessions=0)
        assert self.act(api, scrape, code="x").status_code == 429

    @pytest.mark.rule("scrape-interact-stop")
    def test_the_profile_is_that_of_the_scrape(self, api) -> None:
        scrape = self.scraped(api, profile={"name": "shop"})
        opened(api, profile={"name": "shop"})
        assert self.act(api, scrape, code="process.exit(0)").status_code == 409
