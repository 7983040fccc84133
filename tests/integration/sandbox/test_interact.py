"""Browser sessions: how long they live, what they run, what they cost, and who may have one."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.sandbox.reference.timestamps import from_iso
from airflow_provider_webdata.sandbox.server import SandboxServer

from .conftest import Api

FLOODS = "https://river.example/floods"
TITLE = "River level rises after a week of rain - River Gazette"
NOBODY = str(uuid.UUID(int=7))


def opened(api: Any, **body: Any) -> dict[str, Any]:
    response = api.http.post("/v2/interact", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def run(api: Any, session: str, code: str, language: str = "node", **more: Any) -> httpx.Response:
    return api.http.post(f"/v2/interact/{session}/execute", json={"code": code, "language": language, **more})


def ran(api: Any, *args: Any, **more: Any) -> dict[str, Any]:
    response = run(api, *args, **more)
    assert response.status_code == 200, response.text
    return response.json()


def until(happened: Callable[[], Any]) -> None:
    """Wait for what another thread brings about."""
    for _ in range(1000):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def closed(api: Any, session: str) -> dict[str, Any]:
    response = api.http.delete(f"/v2/interact/{session}")
    assert response.status_code == 200, response.text
    return response.json()


def listed(api: Any, status: str | None = None) -> list[str]:
    params = {} if status is None else {"status": status}
    return [item["id"] for item in api.http.get("/v2/interact", params=params).json()["sessions"]]


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


class TestCode:
    @pytest.mark.parametrize(
        ("language", "code", "stdout"),
        [
            (
                "node",
                f'await page.goto("{FLOODS}");\nconsole.log(await page.title());\nconsole.log(page.url())',
                f"{TITLE}\n{FLOODS}\n",
            ),
            (
                "python",
                f"import time\nawait page.goto('{FLOODS}')\nprint(await page.title())\nprint(page.url)",
                f"{TITLE}\n{FLOODS}\n",
            ),
            (
                "bash",
                f"agent-browser open {FLOODS}; agent-browser get title\nagent-browser get url",
                f"{TITLE}\n{FLOODS}\n",
            ),
            ("node", "console.log('a; b'); console.log(\"c\"); // nothing", "a; b\nc\n"),
            ("python", "# nothing\n\nprint('x')  # and nothing", None),
            ("bash", "echo \"a; b\"\necho 'c' ; echo d e", "a; b\nc\nd e\n"),
            (
                "node",
                f'await page.goto("{FLOODS}"); console.log(await page.textContent("h1"))',
                "River level rises after a week of rain\n",
            ),
            (
                "python",
                f'page.goto("{FLOODS}")\nprint(page.inner_text("h1"))',
                "River level rises after a week of rain\n",
            ),
            (
                "bash",
                f"agent-browser open {FLOODS}\nagent-browser get text h1",
                "River level rises after a week of rain\n",
            ),
            ("node", "console.log(page.url())", "about:blank\n"),
            ("node", "console.log(await page.title())", "\n"),
            (
                "node",
                'await page.goto("https://river.example/none"); console.log(await page.title())',
                "404 Not Found\n",
            ),
            (
                "node",
                'await page.evaluate(() => localStorage.setItem("k", "v"));'
                'console.log(await page.evaluate(() => localStorage.getItem("k")))',
                "v\n",
            ),
        ],
    )
    def test_what_it_knows(self, api, language: str, code: str, stdout: str | None) -> None:
        answer = ran(api, opened(api)["id"], code, language)
        if stdout is None:  # only whole lines are comments
            assert answer["exitCode"] == 1
            return
        assert answer == {
            "success": True,
            "stdout": stdout,
            "result": stdout,
            "stderr": None,
            "exitCode": 0,
            "killed": False,
            "error": None,
        }

    @pytest.mark.parametrize("language", ["node", "python", "bash"])
    def test_html_is_the_pages_own(self, api, language: str) -> None:
        session = opened(api)["id"]
        ran(api, session, f'await page.goto("{FLOODS}")')
        code = {"node": "console.log(await page.content())", "python": "print(page.content())"}
        answer = ran(api, session, code.get(language, "agent-browser get html"), language)
        assert answer["stdout"].lower().startswith("<!doctype html>")

    def test_a_session_goes_on_where_it_was(self, sandbox, api) -> None:
        sandbox.control.set_page(
            "https://a.example/", '<p><a id="next" href="/b">b</a> <b>no link</b></p>', title="A"
        )
        sandbox.control.set_page("https://a.example/b", "<p>x</p>", title="B")
        session = opened(api)["id"]
        ran(api, session, 'await page.goto("https://a.example/")')
        assert (
            ran(api, session, 'await page.click("#next"); console.log(await page.title())')["stdout"] == "B\n"
        )
        assert ran(api, session, "agent-browser get url", "bash")["stdout"] == "https://a.example/b\n"

    @pytest.mark.rule("ok-but-failed-code", "code-result")
    @pytest.mark.parametrize(
        ("language", "code", "stdout", "error"),
        [
            (
                "node",
                'console.log("a")\nlet x = 1\nconsole.log("b")',
                "a\n",
                "line 2: the sandbox runs no code",
            ),
            ("bash", "curl https://a.example", "", "line 1: the sandbox runs no code"),
            ("bash", "echo $(id)", "", "the sandbox runs no code"),
            ("bash", "echo `id`", "", "the sandbox runs no code"),
            ("python", "import os", "", "the sandbox runs no code"),
            ("python", "print(open('/etc/passwd').read())", "", "the sandbox runs no code"),
            ("python", "console.log('x')", "", "the sandbox runs no code"),
            ("node", 'throw new Error("boom")', "", "boom"),
            ("python", "raise ValueError('boom')", "", "boom"),
            ("node", 'await page.goto("https://no-such-host.example/")', "", "net::ERR_NAME_NOT_RESOLVED"),
            ("node", 'await page.goto("file:///etc/passwd")', "", "net::ERR_INVALID_URL"),
            ("node", 'await page.textContent("h1")', "", "the sandbox runs no code"),
            ("node", 'console.log(await page.textContent("h1"))', "", "no element matches h1"),
            ("node", 'console.log(await page.textContent("a >"))', "", "not a CSS selector"),
            ("node", f'await page.goto("{FLOODS}"); await page.click("h1")', "", "can click links only"),
        ],
    )
    def test_what_fails(self, api, language: str, code: str, stdout: str, error: str) -> None:
        answer = ran(api, opened(api)["id"], code, language)
        assert (answer["success"], answer["exitCode"], answer["killed"]) == (True, 1, False)
        assert answer["stdout"] == answer["result"] == stdout
        assert error in answer["error"]
        assert answer["stderr"] == answer["error"]

    def test_a_page_that_cannot_be_had(self, sandbox, api) -> None:
        sandbox.control.set_page("https://a.example/", "<p>x</p>", error="SCRAPE_SITE_ERROR")
        answer = ran(api, opened(api)["id"], "agent-browser open https://a.example/", "bash")
        assert answer["error"] == "net::ERR_FAILED at https://a.example/"

    @pytest.mark.rule("code-result")
    @pytest.mark.parametrize(
        ("language", "code", "exit_code"),
        [
            ("node", "process.exit(0)", 0),
            ("python", "import sys\nsys.exit(3)", 3),
            ("bash", "exit 127; echo x", 127),
        ],
    )
    def test_exit(self, api, language: str, code: str, exit_code: int) -> None:
        answer = ran(api, opened(api)["id"], code, language)
        assert (answer["exitCode"], answer["error"], answer["stdout"]) == (exit_code, None, "")

    @pytest.mark.rule("code-language")
    def test_node_is_the_default(self, api) -> None:
        session = opened(api)["id"]
        url = f"/v2/interact/{session}/execute"
        assert api.http.post(url, json={"code": 'console.log("x")'}).json()["exitCode"] == 0
        assert api.http.post(url, json={"code": "echo x"}).json()["exitCode"] == 1

    @pytest.mark.rule("code-text", "code-language", "code-timeout")
    def test_wrong_bodies(self, api) -> None:
        session = opened(api)["id"]
        for body in (
            {},
            {"code": ""},
            {"code": "x" * 100_001},
            {"code": "x", "timeout": 301},
            {"code": "x", "y": 1},
        ):
            response = api.http.post(f"/v2/interact/{session}/execute", json=body)
            assert (response.status_code, response.json()["code"]) == (400, "BAD_REQUEST")


def documented() -> list[tuple[str, str]]:
    """Return the statements that the sandbox's guide shows, each with its language."""
    guide = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text()
    table = guide.split("| | node | python | bash |\n", 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    return [
        (language, cell.strip("`"))
        for row in rows
        for language, cell in zip(("node", "python", "bash"), row[1:], strict=True)
    ]


@pytest.mark.parametrize(("language", "statement"), documented())
def test_the_guide_is_right(sandbox, api, language: str, statement: str) -> None:
    sandbox.control.set_page("https://a.example/", '<h1>A</h1><a href="/">a</a>')
    session = opened(api)["id"]
    ran(api, session, 'await page.goto("https://a.example/")')
    answer = ran(api, session, statement.replace("URL", "https://a.example/"), language, timeout=2)
    assert "does not know this statement" not in (answer["error"] or "")


class TestTime:
    @pytest.mark.rule("code-timeout")
    @pytest.mark.parametrize(
        ("code", "language", "timeout", "killed"),
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
    def test_timeout(self, code: str, language: str, timeout: int | None, killed: bool) -> None:
        with SandboxServer(speed=200) as server, Api(server).http as http:
            session = http.post("/v2/interact", json={"ttl": 3600}).json()["id"]
            body = {"code": code, "language": language, **({"timeout": timeout} if timeout else {})}
            answer = http.post(f"/v2/interact/{session}/execute", json=body).json()
        assert (answer["success"], answer["killed"], answer["exitCode"]) == (
            True,
            killed,
            None if killed else 0,
        )
        assert ("timed out" in (answer["error"] or "")) is killed

    @pytest.mark.rule("code-result")
    def test_what_was_printed_before_the_kill_is_kept(self) -> None:
        with SandboxServer(speed=200) as server, Api(server).http as http:
            session = http.post("/v2/interact", json={"ttl": 3600}).json()["id"]
            body = {"code": "echo a\nsleep 60\necho b", "language": "bash"}
            assert http.post(f"/v2/interact/{session}/execute", json=body).json()["stdout"] == "a\n"

    @pytest.mark.rule("session-ttl", "session-activity-ttl")
    @pytest.mark.parametrize(
        ("body", "life"),
        [({}, 300), ({"ttl": 30}, 30), ({"ttl": 3600}, 3600), ({"ttl": 60, "activityTtl": 20}, 20)],
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
        until(lambda: sandbox.control.requests(f"/v2/interact/{session}/execute"))
        for _ in range(2):
            sandbox.control.advance(80)
        until(lambda: sandbox.control.advance(10) or answers)
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
        until(lambda: sandbox.control.requests(f"/v2/interact/{session}/execute"))
        if how == "close":
            closed(api, session)
        elif how == "control":
            sandbox.control.end_session(session)
        else:
            sandbox.control.advance(60)
        code.join(10)
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
    @pytest.mark.parametrize(
        ("seconds", "credits"), [(0, 2), (50, 2), (61, 3), (90, 4), (150, 6), (3000, 101)]
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
    @pytest.mark.parametrize("code", ['throw new Error("boom")', "nonsense", "process.exit(3)"])
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
        until(sandbox.control.sessions)
        # The run may begin a moment after its session is there.
        until(lambda: sandbox.control.advance(10) or answers)
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
