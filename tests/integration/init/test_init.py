# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata init` on an Airflow of its own, against the sandbox."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import airflow_provider_webdata.commands
from airflow_provider_webdata.get_provider_info import HOSTED_URL
from tests.support.other_servers import each_of
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE
from tests.support.warm import Warm
from webdata_sandbox.server import SandboxServer

DRIVER = Path(__file__).with_name("init_driver.py")
EXAMPLE = (Path(airflow_provider_webdata.commands.__file__).parent / "river_news.py").read_text()
WRONG_KEY = "wrong-key-4c1f0a7d9b21"


BUNDLES = "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"


def bundles(*configured: dict[str, Any]) -> str:
    return json.dumps(configured)


def local_bundle(name: str, folder: Path) -> dict[str, Any]:
    classpath = "airflow.dag_processing.bundles.local.LocalDagBundle"
    return {"name": name, "classpath": classpath, "kwargs": {"path": str(folder)}}


class Terminal:
    """Runs `airflow webdata init` several times, in one process, which saves time."""

    def __init__(self, environ: dict[str, str], sandbox: SandboxServer, warm: Warm) -> None:
        self._environ, self._sandbox, self._warm = environ, sandbox, warm

    def run(self, *orders: dict[str, Any]) -> list[dict[str, Any]]:
        done = self._warm.run([str(DRIVER)], env=self._environ, input=json.dumps(orders))
        assert done.returncode == 0, done.stderr[-3000:]
        found: list[dict[str, Any]] = json.loads(done.stdout.rpartition("\nANSWER ")[2])
        return found

    def order(
        self, *flags: str, key: str | None = None, base_url: str | None = None, **environ: str
    ) -> dict[str, Any]:
        """An order for `init`; the key of the sandbox comes by standard input unless another one is given."""
        url = self._sandbox.url if base_url is None else base_url
        argv = ["webdata", "init", *(("--base-url", url) if url else ()), *flags]
        return {"argv": argv, "environ": environ, "stdin": self._sandbox.api_key if key is None else key}


@pytest.fixture
def terminal(environ: dict[str, str], sandbox: SandboxServer, warm: Warm) -> Terminal:
    return Terminal(environ, sandbox, warm)


def test_what_cannot_work_stores_nothing(terminal: Terminal) -> None:
    cases: Sequence[tuple[dict[str, Any], str]] = [
        (terminal.order(key=WRONG_KEY), "The service rejects the API key: "),
        (terminal.order(key=""), "The service rejects the API key: "),
        (terminal.order(key="\n", base_url=HOSTED_URL), "the API key is missing; "),
        (terminal.order("--server", "self-hosted", base_url=HOSTED_URL), "server is 'self-hosted', but "),
        (terminal.order("--server", "hosted", key=""), "password (API Key) is empty; "),
        (terminal.order(key="Bearer x"), "password (API Key) starts with 'Bearer'; enter the key alone"),
        (terminal.order(base_url=""), "--base-url is missing, "),
        (terminal.order(base_url=f"https://x.example?key={WRONG_KEY}"), "must have no query or fragment"),
        (terminal.order("--conn-id", "two words"), "--conn-id is 'two words'; an id has at most 250 letters"),
        (terminal.order("--webhook-url", "http://airflow.example"), "webhook_url must be an https address"),
        (terminal.order(AIRFLOW_CONN_WEBDATA_DEFAULT="webdata://"), "comes from EnvironmentVariablesBackend"),
    ]
    answers = terminal.run(*(order for order, _ in cases))
    for (order, message), answer in zip(cases, answers, strict=True):
        assert message in answer["status"], order
        assert answer["status"].endswith("Nothing was stored."), order
        assert (answer["connections"], answer["files"]) == ({}, {}), order
        assert WRONG_KEY not in answer["status"] + answer["output"], order


def test_a_server_that_is_still_starting(environ: dict[str, str], warm: Warm) -> None:
    """Its commands in the README follow each other."""
    starting = SandboxServer(port=free_port())
    later = threading.Timer(1.5, starting.start)
    later.start()
    terminal = Terminal(environ, starting, warm)
    (made,) = terminal.run(terminal.order(base_url=f"http://127.0.0.1:{starting.config.port}"))
    later.join()
    starting.stop()
    assert made["status"] in (0, None), made


def test_a_connection_is_made_changed_and_never_replaced_unasked(
    terminal: Terminal, sandbox: SandboxServer, home: Path
) -> None:
    webhook_url = "https://airflow.example/base"
    own = home / "more" / "river_news_second.py"
    own.parent.mkdir()
    own.touch()
    more = {
        BUNDLES: bundles(
            {
                "name": "repository",
                "classpath": "airflow.providers.git.bundles.git.GitDagBundle",
                "kwargs": {},
            },
            local_bundle("more", own.parent),
            local_bundle("others", home / "others"),
        )
    }
    made, again, other_dag, second, replaced, forced = terminal.run(
        terminal.order(),
        terminal.order(),
        terminal.order("--conn-id", "second", **more),
        terminal.order("--conn-id", "second"),
        terminal.order("--conn-id", "second", "--force", **more),
        terminal.order(
            "--force", "--webhook-url", webhook_url, key="", base_url="", WEBDATA_API_KEY=sandbox.api_key
        ),
    )

    assert made["status"] in (0, None), made
    stored = made["connections"]["webdata_default"]
    scheme, host, port = sandbox.url.split(":")
    assert (stored["conn_type"], stored["host"], stored["port"]) == ("webdata", f"{scheme}:{host}", int(port))
    assert stored["password"] == sandbox.api_key
    assert stored["extra"].keys() == {"webhook_secret", "server"}
    assert stored["extra"]["server"] == "hosted"
    secret = stored["extra"]["webhook_secret"]
    assert re.fullmatch(r"[0-9a-f]{64}", secret)
    assert made["files"] == {"river_news.py": EXAMPLE}
    assert f"Connection 'webdata_default' was created: {sandbox.url}." in made["output"]
    assert "airflow dags test river_news" in made["output"]
    assert "Without a webhook URL" in made["output"]
    assert "[webdata]" not in made["output"]
    assert made["output"].endswith("Check the installation: airflow webdata doctor\n")

    assert "connection 'webdata_default' exists; --force" in again["status"]
    assert (
        "exists with other content; --force replaces it, --no-example leaves it unchanged"
        in other_dag["status"]
    )
    for refused in (again, other_dag):
        assert (refused["connections"], refused["files"]) == (made["connections"], made["files"])

    assert second["connections"].keys() == {"webdata_default", "second"}
    assert second["connections"]["second"]["extra"]["webhook_secret"] != secret
    assert "airflow dags test river_news_second" in second["output"]
    written = second["files"].pop("river_news_second.py")
    assert second["files"] == made["files"]
    assert 'DAG("river_news_second", ' in written
    assert 'task_id="search", webdata_conn_id="second", ' in written
    assert (
        written.replace("river_news_second", "river_news").replace(' webdata_conn_id="second",', "")
        == EXAMPLE
    )
    assert replaced["status"] in (0, None), replaced
    assert own.read_text() == written

    kept = forced["connections"]["webdata_default"]
    assert "was updated" in forced["output"]
    assert kept["extra"] == {"server": "hosted", "webhook_secret": secret, "webhook_url": webhook_url}
    assert (kept["host"], kept["port"]) == (stored["host"], stored["port"])
    assert forced["files"]["river_news.py"] == EXAMPLE
    assert f"The service delivers to {webhook_url}/webdata/inbox/webdata_default/...:" in forced["output"]
    assert "Tasks wait by polling for now: " in forced["output"]
    assert f"Set `inbox = True` in section [webdata] of {home / 'airflow.cfg'}" in forced["output"]

    for answer in (made, again, other_dag, second, replaced, forced):
        shown = f"{answer['status']}{answer['output']}"
        secrets = [found["extra"].get("webhook_secret") for found in answer["connections"].values()]
        assert not [value for value in (sandbox.api_key, *secrets) if value and value in shown]


def test_a_dag_without_a_folder_is_printed(terminal: Terminal, home: Path) -> None:
    (home / "a-file").touch()
    remote = {
        "name": "lake",
        "classpath": "airflow.providers.amazon.aws.bundles.s3.S3DagBundle",
        "kwargs": {"bucket_name": "dags"},
    }
    # The disk is full.
    (home / "full").mkdir()
    (home / "full" / "river_news_third.part").symlink_to("/dev/full")
    nowhere, unwritable, full = terminal.run(
        terminal.order(**{BUNDLES: bundles(remote)}),
        terminal.order(
            "--conn-id", "second", **{BUNDLES: bundles(remote, local_bundle("dags", home / "a-file" / "x"))}
        ),
        terminal.order("--conn-id", "third", **{BUNDLES: bundles(local_bundle("full", home / "full"))}),
    )
    assert [*(home / "full").iterdir()] == []
    assert nowhere["files"] == unwritable["files"] == full["files"] == {}
    for answer, name, reason in (
        (nowhere, "river_news", "Airflow has no local DAG bundle"),
        (unwritable, "river_news_second", "Not a directory"),
        (full, "river_news_third", "No space left on device"),
    ):
        assert answer["status"] in (0, None), answer
        before, _, rest = answer["output"].partition("\n\n")
        source, _, after = rest.partition("\n\n  Run it once: ")
        assert "The example DAG was not written: " in before
        assert reason in before
        assert before.endswith(f"Add it to a DAG bundle as {name}.py:")
        assert after.startswith(f"airflow dags test {name}\n")
        compile(source, name, "exec")
        conn_id = name.rpartition("_")[2]
        own = source.replace(f'DAG("{name}"', 'DAG("river_news"')
        assert own.replace(f' webdata_conn_id="{conn_id}",', "") == EXAMPLE.strip()


def test_the_kind_of_server_is_detected_and_stored(terminal: Terminal, sandbox: SandboxServer) -> None:
    """A server without billing and keys, one that bills, one that cannot be asked, and wrong declarations of them."""
    with SandboxServer(profile="self-hosted") as own:
        found, insisted, mistaken, corrected, untested = terminal.run(
            terminal.order("--no-example", base_url=own.url, key=""),
            terminal.order("--no-example", "--force", "--server", "hosted", base_url=own.url, key="k"),
            terminal.order("--no-example", "--force", "--server", "self-hosted"),
            terminal.order("--no-example", "--force"),
            terminal.order(
                *("--no-example", "--skip-test", "--server", "self-hosted", "--conn-id", "later"),
                base_url="http://scraper.internal:3002",
                key="",
            ),
        )
    for answer, kind in (
        (found, "self-hosted"),
        (insisted, "hosted"),
        (mistaken, "self-hosted"),
        (corrected, "hosted"),
    ):
        assert answer["status"] in (0, None), answer
        assert answer["connections"]["webdata_default"]["extra"]["server"] == kind
    assert not found["connections"]["webdata_default"]["password"]
    assert "The server responds. It does not report credits." in found["output"]
    assert "Warning: The server reports no credits and accepts any API key" in insisted["output"]
    assert "Warning: The server reports a balance, so it bills calls" in mistaken["output"]
    assert "The server is hosted, not self-hosted. The connection was changed." in corrected["output"]
    assert untested["connections"]["later"]["extra"]["server"] == "self-hosted"
    assert "Testing" not in untested["output"]


def test_other_implementations_of_the_api(terminal: Terminal, sandbox: SandboxServer) -> None:
    """A server that shows neither a balance nor whether it checks keys must be declared, unless it has a key."""
    with each_of(sandbox.url, sandbox.api_key) as servers:
        *recognized, other = servers
        orders = [
            terminal.order("--conn-id", f"c{number}", "--server", server.kind, base_url=server.url, key="")
            for number, server in enumerate(recognized)
        ]
        answers = terminal.run(
            *orders,
            terminal.order("--no-example", "--conn-id", "keyed", base_url=recognized[1].url, key="k"),
            terminal.order("--no-example", "--conn-id", "keyless", base_url=recognized[1].url, key=""),
            terminal.order("--no-example", "--conn-id", "other", base_url=other.url, key=""),
            terminal.order("--no-example", "--conn-id", "other", base_url=other.url, key="k"),
            terminal.order(
                "--no-example", "--conn-id", "other", "--server", other.kind, base_url=other.url, key=""
            ),
            terminal.order("--no-example", "--conn-id", "later", "--skip-test", base_url=other.url, key=""),
            terminal.order("--no-example", "--conn-id", "later", "--skip-test", base_url=other.url, key="k"),
        )
    for number, server in enumerate(recognized):
        assert answers[number]["status"] in (0, None), (server.name, answers[number])
        assert answers[number]["connections"][f"c{number}"]["extra"]["server"] == server.kind
        assert "Warning" not in answers[number]["output"], server.name
    examples = ["site_pages_c0.py", "river_news_c1.py", "one_page_c2.py", "site_pages_c3.py"]
    assert sorted(answers[-1]["files"]) == sorted(examples)
    keyed, keyless, unproven, unproven_with_key, believed, unclear, untested = answers[len(recognized) :]
    assert keyed["status"] in (0, None)
    assert "server" not in keyed["connections"]["keyed"]["extra"]
    assert "Nothing shows whether it bills calls." in keyed["output"]
    assert "Repeat the command with --server." in keyless["status"]
    for refused in (unproven, unproven_with_key):
        assert "nothing shows that it has this API" in refused["status"]
        assert "(--server)" in refused["status"]
        assert "--skip-test" in refused["status"]
    assert "Warning: The host responds, but nothing shows that it has this API" in believed["output"]
    assert believed["connections"]["other"]["extra"]["server"] == other.kind
    assert "add --server self-hosted if it bills no calls, else --server gateway" in unclear["status"]
    for refused in (keyless, unproven, unproven_with_key, unclear):
        assert not {"keyless", "later"} & refused["connections"].keys()
    assert "server" not in untested["connections"]["later"]["extra"]


def test_a_connection_of_another_type_is_left_alone(terminal: Terminal) -> None:
    add = {
        "argv": ["connections", "add", "webdata_default", "--conn-type", "http", "--conn-host", "x.example"]
    }
    added, refused = terminal.run(add, terminal.order("--force"))
    assert (
        "connection 'webdata_default' is of type 'http'; choose another id with --conn-id"
        in refused["status"]
    )
    assert refused["connections"] == added["connections"]


# A test run in the background ignores interrupts, and so would all that it starts.
AT_A_TERMINAL = """
import fcntl, runpy, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["airflow", "webdata", "init"]
runpy.run_module("airflow", run_name="__main__")
"""


class Prompted:
    """`airflow webdata init` at a terminal of its own."""

    def __init__(self, environ: dict[str, str], warm: Warm) -> None:
        self.shown = ""
        self._terminal, theirs = pty.openpty()
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        self._program = warm.start(["-c", AT_A_TERMINAL], env=environ, session=True, **streams)
        os.close(theirs)
        self._program.begin()

    def answer(self, prompt: str, text: str) -> None:
        """Wait for a prompt, and enter a line."""
        deadline = time.monotonic() + PATIENCE
        seen = len(self.shown)
        while prompt not in self.shown[seen:]:
            assert time.monotonic() < deadline, self.shown
            assert self._read(), self.shown
        os.write(self._terminal, text.encode())

    def end(self) -> int:
        while self._read():
            pass
        os.close(self._terminal)
        return self._program.wait(PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], PATIENCE)
        assert ready, self.shown
        try:
            found = os.read(self._terminal, 4096)
        except OSError:
            # The other side has ended.
            return False
        self.shown += found.decode(errors="replace")
        return bool(found)


@pytest.mark.timeout(600)
def test_at_a_terminal_it_asks_and_its_dag_runs(
    terminal: Terminal, environ: dict[str, str], sandbox: SandboxServer, warm: Warm, home: Path
) -> None:
    # A bundle other than the folder of `[core] dags_folder`.
    environ[BUNDLES] = bundles(local_bundle("team", home / "team"))
    given_up = Prompted(environ, warm)
    given_up.answer(f"Base URL [{HOSTED_URL}]: ", f"{sandbox.url}\n")
    given_up.answer("API key (not shown; leave empty if the server requires none): ", "\x03")
    assert given_up.end() == 1
    assert "Cancelled; nothing was stored." in given_up.shown

    prompted = Prompted(environ, warm)
    prompted.answer(f"Base URL [{HOSTED_URL}]: ", f"{sandbox.url}\n")
    prompted.answer("API key (not shown; leave empty if the server requires none): ", f"{sandbox.api_key}\n")
    prompted.answer("for webhooks (optional): ", "\n")
    assert prompted.end() == 0, prompted.shown
    [left] = terminal.run({"argv": ["webdata", "inbox", "list"]})
    stored = left["connections"]["webdata_default"]
    assert stored["password"] == sandbox.api_key
    assert sandbox.api_key not in prompted.shown
    assert stored["extra"]["webhook_secret"] not in prompted.shown

    (command,) = re.findall(r"Run it once: airflow (.+?)\s*$", prompted.shown, re.MULTILINE)
    run = warm.run(["-m", "airflow", *command.split()], env=environ)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"https://river\.example/\S+ \d+ words", run.stdout), run.stdout[-3000:]
