# SPDX-License-Identifier: Apache-2.0
"""The acceptance run, with every operator in a real Airflow: two profiles of the sandbox, and one replay."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.other_servers import Groktocrawl, OtherServer
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import Program, Warm, airflow_environ
from tools.acceptance.hook_cases import REASONS
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "contributing" / "acceptance.md"
SERVERS = ROOT / "docs" / "servers.md"
# One process runs all: what its first DAG run costs is most of the test's time.
PROGRAM = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, os.getcwd())
from tools.acceptance.__main__ import Settings, accept
for environ in json.loads(sys.argv[1]):
    status = accept(Settings.of(environ), Path(os.environ["AIRFLOW_HOME"]), sys.stderr)
    print("status", status, flush=True)
"""
STATED = {
    "WebDataToTableOperator",
    *(f"hook.{name}" for name in REASONS),
}
NAMED = re.compile(r"it |the plan of this team: ")
DOWN = "https://down.example/"
OF_PAGES = {
    *(
        f"WebData{name}Operator"
        for name in ("Scrape", "BatchScrape", "Crawl", "IncrementalCrawl", "Interact")
    ),
    *(
        f"hook.{name}"
        for name in ("scrape", "get_scrape", "iter_job_documents", "execute", "interact_with_scrape")
    ),
}
"""Operations that return the text of a page."""
SETTLED: dict[str, Any] = {"settle": True, "closing_seconds": 0, "queue_seconds": 0}


@dataclass
class Ended:
    """The end of one run: its exit status and its report."""

    status: int
    report: dict[str, Any]

    @property
    def outcomes(self) -> dict[str, str]:
        return {result["operation"]: result["outcome"] for result in self.report["results"]}

    def reasons(self, outcome: str) -> dict[str, str]:
        results = self.report["results"]
        return {result["operation"]: result["reason"] for result in results if result["outcome"] == outcome}


def environ_of(server: SandboxServer | OtherServer, folder: Path, **more: str) -> dict[str, str]:
    port = free_port()
    return {
        "BASE_URL": server.url,
        "SITE": "https://river.example/",
        "TEXT": "News of the valley and its river",
        "WEBHOOK_URL": f"http://127.0.0.1:{port}",
        "WEBHOOK_PORT": str(port),
        "REPORT": str(folder),
        **more,
    }


@pytest.fixture(scope="module")
def ended(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> dict[str, Ended]:
    """The ends of a run in each profile, and of one that is terminated during its first task."""
    folder = tmp_path_factory.mktemp("acceptance")
    migrated_database.copy_to(folder)
    with (
        SandboxServer(entitlements=("threatProtection",), **SETTLED) as hosted,
        SandboxServer(profile="self-hosted", **SETTLED) as own,
        SandboxServer(entitlements=("threatProtection",), **SETTLED) as down,
        SandboxServer(**SETTLED) as slow,
        Groktocrawl() as other,
    ):
        own.control.set_site("river.example", sitemap=["https://river.example/floods"])
        down.control.set_page(DOWN, "<h1>Service Unavailable</h1>", title="503", status=503)
        slow.control.add_fault("delay", path="/v2/search", seconds=60)
        key = {"API_KEY": hosted.api_key}
        settings = {
            "hosted": environ_of(hosted, folder / "hosted", **key, CREDITS="1000", UNBOUNDED="yes"),
            "self-hosted": environ_of(own, folder / "self-hosted"),
            "down": environ_of(down, folder / "down", **key, CREDITS="1000", UNBOUNDED="yes", SITE=DOWN),
            # It sends no webhooks.
            "other": environ_of(other, folder / "other", SERVER=other.kind, TEXT="river", WEBHOOK_URL=""),
            "terminated": environ_of(slow, folder / "terminated", **key),
        }
        environ = airflow_environ(
            folder,
            AIRFLOW__API_AUTH__JWT_SECRET="a secret of this run alone, long enough to sign with it",
            AIRFLOW__CORE__DAGS_FOLDER=str(folder / "dags"),
            AIRFLOW__LOGGING__LOGGING_LEVEL="ERROR",
        )
        log = folder / "log"
        with log.open("wb") as output:
            arguments = ["-c", PROGRAM, json.dumps([*settings.values()])]
            program = warm.start(arguments, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=output)
            assert program.stdout is not None
            try:
                statuses = [_status(program, log) for _ in range(4)]
                assert wait_until(lambda: bool(slow.control.requests("/v2/search"))), log.read_text()
                program.terminate()
                statuses.append(_status(program, log))
                program.wait(PATIENCE)
            finally:
                program.kill()
    reports = [json.loads((folder / name / "acceptance.json").read_text()) for name in settings]
    return {
        name: Ended(status, report) for name, status, report in zip(settings, statuses, reports, strict=True)
    }


def _status(program: Program, log: Path) -> int:
    assert program.stdout is not None
    for line in program.stdout:
        if line.startswith("status "):
            return int(line.split()[1])
    raise AssertionError(log.read_text(errors="replace")[-5000:])


@pytest.mark.timeout(600)
def test_everything_works_on_a_hosted_server(ended: dict[str, Ended]) -> None:
    run = ended["hosted"]
    assert run.reasons("failed") == {}
    assert run.status == 0
    assert run.reasons("lacks") == {}
    assert set(run.reasons("not run")) == STATED


def test_a_result_without_the_text_of_the_page_is_a_failure(ended: dict[str, Ended]) -> None:
    """The site answers 503 to everything."""
    run = ended["down"]
    assert run.status == 1
    assert set(run.reasons("failed")) >= OF_PAGES


def test_a_self_hosted_server_names_what_it_lacks(ended: dict[str, Ended]) -> None:
    run = ended["self-hosted"]
    assert run.reasons("failed") == {}
    assert run.status == 0
    assert set(run.reasons("not run")) == STATED
    strange = {
        operation: reason for operation, reason in run.reasons("lacks").items() if not NAMED.match(reason)
    }
    assert strange == {}


def test_the_page_has_the_results(ended: dict[str, Ended]) -> None:
    hosted, own = (ended[name].outcomes for name in ("hosted", "self-hosted"))
    rows = [
        f"| `{name}` | {hosted[name]} | {own[name]} |" for name in sorted(hosted) if hosted[name] != "not run"
    ]
    written = [line for line in PAGE.read_text().splitlines() if line.startswith(("| `hook.", "| `WebData"))]
    assert written == rows, "\n".join(rows)


def test_another_implementation_names_what_it_lacks(ended: dict[str, Ended]) -> None:
    run = ended["other"]
    assert run.reasons("failed") == {}
    counts = [
        ", ".join(str(sum(is_counted(name) for name in run.reasons(outcome))) for outcome in ("ok", "lacks"))
        for is_counted in (lambda name: name.startswith("WebData"), lambda name: name.startswith("hook."))
    ]
    (row,) = (line for line in SERVERS.read_text().splitlines() if line.startswith("| groktocrawl "))
    assert row.endswith(f" | {' | '.join(counts)} |")


def test_a_signal_ends_the_run_during_a_task(ended: dict[str, Ended]) -> None:
    run = ended["terminated"]
    assert run.status == 1
    reasons = run.reasons("not run")
    assert reasons["WebDataSearchOperator"] == reasons["hook.scrape"] == "interrupted"
    assert run.report["left"] == []


def test_names_of_secrets_are_not_in_the_report(ended: dict[str, Ended]) -> None:
    assert "wd-sandbox-key" not in json.dumps([run.report for run in ended.values()])
