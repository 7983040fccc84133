# SPDX-License-Identifier: Apache-2.0
"""The code that a browser session understands, and what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tables import each_row

from .session_calls import FLOODS, TITLE, opened, ran


class TestCode:
    @each_row(
        "language, code, stdout",
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

    @each_row("language", ["node", "python", "bash"])
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
    @each_row(
        "language, code, stdout, error",
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
            ("node", f'await page.goto("{FLOODS}"); await page.click("h1")', "", "can only click links"),
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
    @each_row(
        "language, code, exit_code",
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
    guide = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()
    table = guide.split("| | node | python | bash |\n", 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    return [
        (language, cell.strip("`"))
        for row in rows
        for language, cell in zip(("node", "python", "bash"), row[1:], strict=True)
    ]


@each_row("language, statement", documented())
def test_the_guide_is_right(sandbox, api, language: str, statement: str) -> None:
    sandbox.control.set_page("https://a.example/", '<h1>A</h1><a href="/">a</a>')
    session = opened(api)["id"]
    ran(api, session, 'await page.goto("https://a.example/")')
    answer = ran(api, session, statement.replace("URL", "https://a.example/"), language, timeout=2)
    assert "does not support this statement" not in (answer["error"] or "")
