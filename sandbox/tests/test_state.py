# SPDX-License-Identifier: Apache-2.0
"""State that outlives the sandbox, and the sandbox as a program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.service import NEVER
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE
from webdata_sandbox.cli import main
from webdata_sandbox.control import SandboxControl
from webdata_sandbox.server import SandboxServer

from .conftest import Api

LEVELS = "https://weather.example/levels"


@contextmanager
def opened(server: Any) -> Iterator[Api]:
    api = Api(server)
    with api.http:
        yield api


def test_all_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    state = str(tmp_path / "state.sqlite")
    with SandboxServer(state=state) as server, opened(server) as api:
        server.control.set_page(LEVELS, "<p>one</p>")
        server.control.delete_page("https://river.example/floods")
        monitor = api.create(webhook={"url": "http://127.0.0.1:9/x"})
        check = api.run(monitor["id"])
        gone = api.create(name="gone")["id"]
        api.http.delete(f"/v2/monitor/{gone}")
        server.control.advance(86_400 * 3)
        before = server.control.state()
        deliveries = server.control.deliveries()
        balance = api.balance()
    with SandboxServer(state=state) as server, opened(server) as api:
        after = server.control.state()
        assert after["monitors"] == before["monitors"]
        assert after["checks"] == before["checks"]
        assert after["now"] >= before["now"]
        assert server.control.deliveries() == deliveries
        assert api.balance() == balance
        assert api.check(monitor["id"], check["id"]) == check
        assert api.web("flood site:river.example") == ["river.example/archive"]
        server.control.set_page(LEVELS, "<p>two</p>")
        assert "-one\n+two" in api.run(monitor["id"])["pages"][0]["diff"]["text"]


def test_work_is_taken_up_again(tmp_path: Path) -> None:
    state = str(tmp_path / "state.sqlite")
    with SandboxServer(state=state, check_seconds=60) as server, opened(server) as api:
        monitor = api.create(schedule=NEVER, webhook={"url": "http://127.0.0.1:9/x"})["id"]
        check = api.http.post(f"/v2/monitor/{monitor}/run").json()["id"]
        server.control.settle()
        assert api.check(monitor, check)["status"] == "running"
    with SandboxServer(state=state) as server, opened(server) as api:
        server.control.settle()
        assert api.check(monitor, check)["status"] == "completed"
        assert len(api.checks(monitor)) == 1
        assert {delivery["status"] for delivery in server.control.deliveries()} == {"pending"}
    with SandboxServer(state=state) as server:
        server.control.advance(1300)
        deliveries = server.control.deliveries()
        assert {delivery["status"] for delivery in deliveries} == {"failed"}
        assert {len(delivery["attempts"]) for delivery in deliveries} == {4}


class Program:
    """A sandbox in a process of its own."""

    api_key = "other-key"

    def __init__(self, *flags: str) -> None:
        command = [
            sys.executable,
            "-m",
            "webdata_sandbox",
            "--api-key",
            self.api_key,
            *flags,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.line = self.process.stdout.readline()
        self.url = self.line.split()[-1]
        self.control = SandboxControl(self.url)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_program_ends_cleanly() -> None:
    with Program("--bulk", "3x2000") as program, opened(program) as api:
        assert re.fullmatch(r"sandbox listening on http://127\.0\.0\.1:\d+\n", program.line)
        items = api.search("x", scrapeOptions={"formats": ["markdown"]}).json()["data"]["web"]
        assert [len(item["markdown"]) for item in items] == [2000] * 3
        program.process.send_signal(signal.SIGINT)
        rest, errors = program.process.communicate(timeout=PATIENCE)
        assert (program.process.returncode, rest, errors) == (0, "", "")


def test_program_ends_although_a_call_is_held_up() -> None:
    with Program() as program, opened(program) as api:
        program.control.add_fault("delay", seconds=600)
        with pytest.raises(httpx.ReadTimeout):
            api.http.get("/v2/monitor", timeout=0.2)
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(timeout=PATIENCE) == 0


def test_nothing_answered_for_is_lost_when_killed(tmp_path: Path) -> None:
    state = str(tmp_path / "state.sqlite")
    with Program("--state", state) as program, opened(program) as api:
        ids = [api.create(name=str(number))["id"] for number in range(5)]
        check = api.run(ids[0])
        program.process.send_signal(signal.SIGKILL)
        assert program.process.wait(timeout=PATIENCE) == -signal.SIGKILL
    with Program("--state", state) as program, opened(program) as api:
        assert [item["id"] for item in api.http.get("/v2/monitor").json()["data"]] == ids[::-1]
        assert api.check(ids[0], check["id"]) == check


def test_flags(tmp_path: Path) -> None:
    page = tmp_path / "mine.example" / "a" / "b.html"
    page.parent.mkdir(parents=True)
    page.write_text('<html lang="nl"><title>Fiets</title><main>fietsenmaker</main></html>')
    (tmp_path / "mine.example" / "index.html").write_text(
        "<title>Start</title><main>fietsenmaker hier</main>"
    )
    flags = [
        "--pages",
        str(tmp_path),
        "--quirk",
        "no-success",
        "--quirk",
        "next-null",
        "--speed",
        "2",
        "--credits",
        "7",
    ]
    flags += [
        "--rate-limit",
        "account=1",
        "--entitlement",
        "enterprise",
        "--latency-ms",
        "1",
        "--no-gzip",
        "--verbose",
    ]
    with Program(*flags) as program, opened(program) as api:
        assert api.balance() == 7
        assert api.http.get("/v2/team/credit-usage").status_code == 429
        assert sorted(api.web("fietsenmaker", enterprise=["anon"])) == ["mine.example/", "mine.example/a/b"]
        assert "success" not in api.search().json()
        state = program.control.state()
        assert (state["speed"], state["quirks"]) == (2.0, ["next-null", "no-success"])
        program.process.send_signal(signal.SIGTERM)
        _, errors = program.process.communicate(timeout=PATIENCE)
    assert program.process.returncode == 0
    assert "POST /v2/search 200" in errors
    assert "other-key" not in errors


@each_row(
    "flags, text",
    [
        (["--quirk", "nonsense"], "unknown quirk"),
        (["--pages", "/nonexistent"], "does not exist"),
        (["--speed", "0"], "speed must be above 0"),
        (["--rate-limit", "search"], "CLASS=N"),
        (["--rate-limit", "books=1"], "CLASS=N"),
        (["--bulk", "many"], "NxBYTES"),
        (["--host", "203.0.113.1"], "sandbox:"),
    ],
)
def test_wrong_flags(capsys, flags: list[str], text: str) -> None:
    try:
        status: Any = main(flags)
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert text in capsys.readouterr().err


def test_a_port_that_is_taken(capsys) -> None:
    with SandboxServer() as server:
        assert main(["--port", server.url.rsplit(":", 1)[1]]) == 2
    assert "is in use: choose another --port" in capsys.readouterr().err


def test_it_starts_without_airflow() -> None:
    code = (
        "import sys; sys.modules['airflow'] = None; import webdata_sandbox.server as s\n"
        "with s.SandboxServer() as server: server.control.state()\n"
        "ours = [name for name in sys.modules if name.startswith('airflow_provider_webdata.')]\n"
        "print([name for name in ours if '.sandbox' not in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
