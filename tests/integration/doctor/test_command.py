# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata doctor`: its exit status and its output, also as documented in docs/doctor.md."""

from __future__ import annotations

import json
import re
import shlex
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.cli.cli_parser import get_parser

from airflow_provider_webdata.commands.doctor import checks, service_answer
from airflow_provider_webdata.commands.doctor.finding import Finding
from airflow_provider_webdata.inbox.tokens import LEEWAY
from tests.integration.doctor.conftest import SECRETS, World
from tests.integration.doctor.test_findings import ALL_CHECKS
from tests.support.ports import free_port
from tests.support.service import CONNECTION_ID, connection_text
from tests.support.snippets import ROOT
from tests.support.waiting import PATIENCE
from tests.support.warm import Warm, airflow_environ

SECONDS = checks.SECONDS
PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SECONDS", PATIENCE)


class Ran:
    """The output and the exit status of a command."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *flags: str) -> None:
        args = get_parser().parse_args(["webdata", "doctor", *flags])
        self.status = 0
        capsys.readouterr()
        try:
            args.func(args)
        except SystemExit as end:
            self.status = int(end.code or 0)
        self.output = capsys.readouterr().out
        assert not any(secret in self.output for secret in SECRETS)

    @property
    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.output)
        return found


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def as_in_the_docs(world: World, output: str) -> str:
    """Replace what differs from run to run by the values of the page."""
    output = output.replace(world.sandbox.url, "http://127.0.0.1:8900").replace(
        world.inbox.url, "http://127.0.0.1:8080"
    )
    output = re.sub(r"Airflow \d\S*, Python \S+$", "Airflow 3.3.2, Python 3.12.11", output, flags=re.M)
    output = re.sub(r"differ by \d+ s", "differ by 0 s", output)
    return re.sub(r"arrived .* ago \(.* UTC\)", "arrived 2 minutes ago (2026-11-22 08:30 UTC)", output)


def test_the_example_of_the_docs(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.run_triggerer(datetime.now(timezone.utc) - timedelta(hours=3, minutes=1))
    world.sandbox.control.configure(credits=4500)
    world.patch.setattr("airflow_provider_webdata.commands.doctor.installation.__version__", "0.1.0")
    ran = Ran(capsys)
    [example] = blocks("text")
    assert as_in_the_docs(world, ran.output) == example
    assert ran.status == 1


def test_no_problems(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys)
    assert ran.status == 0
    assert ran.output.startswith("Airflow\n")
    assert ran.output.endswith("\n15 checks: 15 passed\n")
    # Each check has a line, and the advice has another.
    checks = [line.split()[1] for line in ran.output.splitlines() if re.match(r"  \w", line)]
    assert checks == ALL_CHECKS


def test_on_the_path_of_the_readme(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """After `airflow webdata init`, before any triggerer runs."""
    world.execute("DELETE FROM job")
    world.connect(webhook_url=None)
    ran = Ran(capsys)
    assert (ran.status, ran.output.splitlines()[-1]) == (0, "15 checks: 14 passed, 1 warning")


def test_a_terminal(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines end between words, and continue below the finding."""
    world.connect(f"http://127.0.0.1:{free_port()}")
    world.patch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    world.patch.setenv("COLUMNS", "80")
    ran = Ran(capsys)
    assert [line for line in ran.output.splitlines() if len(line) > 80] == []
    [start] = [line for line in ran.output.splitlines() if line.startswith("  failed  host")]
    assert start.startswith("  failed  host         The host is unreachable: http://127.0.0.1:")


def test_warnings_do_not_fail(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.connect(webhook_secert="x" * 20)
    ran = Ran(capsys, "-o", "json")
    assert ran.status == 0
    assert {row["state"] for row in ran.rows} == {"passed", "warning"}


def test_the_formats(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them have the same findings, and the same exit status."""
    world.connect(key="wd-some-other-key")
    ran = {output: Ran(capsys, "-o", output) for output in ("table", "plain", "json", "yaml")}
    assert {one.status for one in ran.values()} == {1}
    rows = ran["json"].rows
    assert [row["check"] for row in rows] == ALL_CHECKS
    [key] = [row for row in rows if row["check"] == "key"]
    assert key == {
        "check": "key",
        "state": "failed",
        "seen": "The service rejects the API key: Unauthorized: Invalid token",
        "advice": 'Check "API Key".',
        "conn_id": CONNECTION_ID,
    }
    in_yaml = yaml.safe_load(ran["yaml"].output)
    assert [(row["check"], row["state"]) for row in in_yaml] == [(row["check"], row["state"]) for row in rows]
    for output in ("table", "plain"):
        assert "  failed  key          The service rejects the API key" in ran[output].output


def test_offline(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.connect("https://no-such-host.invalid")
    ran = Ran(capsys, "--offline", "--conn-id", CONNECTION_ID)
    assert ran.status == 0


def test_the_help_names_the_database(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        get_parser().parse_args(["webdata", "doctor", "--help"])
    assert "Needs Airflow's database." in " ".join(capsys.readouterr().out.split())


def test_the_page_names_every_check() -> None:
    table = PAGE.partition("## Checks")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert rows == ["connections", *ALL_CHECKS]


def test_the_figures_of_the_page() -> None:
    figures = [
        f"after {SECONDS:g} seconds",
        f"an expiry within {service_answer.CERTIFICATE_DAYS} days",
        f"less than {service_answer.FEW_CREDITS:.0%} of the plan".replace("%", " %"),
        f"more than {LEEWAY} seconds is a warning",
    ]
    assert [figure for figure in figures if figure not in PAGE] == []


def test_the_commands_of_the_page_exist() -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert commands
    for line in commands:
        assert get_parser().parse_args(shlex.split(line)[1:]).func, line


UNHURRIED = f"""
import sys
from airflow.__main__ import main
from airflow_provider_webdata.commands.doctor import checks

checks.SECONDS = {PATIENCE}
sys.argv[0] = "airflow"
main()
"""


def test_nothing_is_reachable(warm: Warm, tmp_path: Path) -> None:
    """A separate process without a database, a service, or an inbox."""
    port = free_port()
    nowhere = f"http://127.0.0.1:{port}"
    extra = {"webhook_url": nowhere, "inbox_url": nowhere, "webhook_secret": SECRETS[1]}
    environ = airflow_environ(
        tmp_path,
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"postgresql+psycopg2://u:{SECRETS[0]}@127.0.0.1:{port}/a",
        AIRFLOW_CONN_WEBDATA_DEFAULT=connection_text(nowhere, **extra),
        AIRFLOW__WEBDATA__INBOX="True",
    )
    done = warm.run(["-c", UNHURRIED, "webdata", "doctor", "-o", "json"], env=environ)
    assert done.returncode == 1, done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS)
    found = {finding["check"]: Finding(**finding) for finding in json.loads(done.stdout)}
    assert found.keys() == {"connections", *ALL_CHECKS}
    assert [check for check, finding in found.items() if finding.state == "passed"] == [
        *("versions", "plugin", "fields", "tls")
    ]
    assert {check for check, finding in found.items() if finding.state == "failed"} == {
        *("tables", "triggerer", "host", "inbox", "webhook")
    }
