# SPDX-License-Identifier: Apache-2.0
"""`init` and its first DAG on servers that require no API key: one without a search backend, one without crawls."""

from __future__ import annotations

import pytest

from tests.integration.init.test_init import Prompted, Terminal
from tests.support.other_servers import FirecrawlCompat, OtherServer
from tests.support.warm import Warm
from webdata_sandbox.server import SandboxServer


@pytest.mark.parametrize(
    ("other", "dag_id", "line"),
    [
        (None, "site_pages", "Example Domain 8 words"),
        (FirecrawlCompat, "one_page", "Page https://example.com 3 words"),
    ],
)
def test_init_and_the_first_dag(
    environ: dict[str, str], warm: Warm, other: type[OtherServer] | None, dag_id: str, line: str
) -> None:
    with other() if other else SandboxServer(profile="self-hosted") as own:
        flags = ["--base-url", own.url, *(("--server", "self-hosted") if other else ())]
        made = warm.run(["-m", "airflow", "webdata", "init", *flags], env=environ, input="\n")
        assert made.returncode == 0, made.stdout + made.stderr
        assert "The server responds. It does not report credits" in made.stdout
        assert f"Run it once: airflow dags test {dag_id}\n" in made.stdout
        done = warm.run(["-m", "airflow", "dags", "test", dag_id], env=environ)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert line in done.stdout, done.stdout[-5000:]
    assert "WD-" not in done.stdout + done.stderr


def test_a_plain_http_webhook_address(environ: dict[str, str], warm: Warm) -> None:
    """A self-hosted server in the same network delivers to it: the server is asked before the address is judged."""
    url = "http://airflow.internal:8080"
    with SandboxServer(profile="self-hosted") as own, SandboxServer() as hosted:
        terminal = Terminal(environ, own, warm)
        with_url = ("--no-example", "--webhook-url", url)
        made, refused, unknown = terminal.run(
            terminal.order(*with_url, key=""),
            terminal.order(*with_url, "--conn-id", "billed", base_url=hosted.url, key=hosted.api_key),
            terminal.order(*with_url, "--conn-id", "untested", "--skip-test", key="any"),
        )
    assert made["status"] in (0, None), made
    assert made["connections"]["webdata_default"]["extra"]["webhook_url"] == url
    assert "to which the server delivers only with ALLOW_LOCAL_WEBHOOKS=true" in made["output"]
    for answer in (refused, unknown):
        assert "webhook_url must be an https address" in answer["status"]
        assert "set server to self-hosted" in answer["status"]
        assert answer["connections"].keys() == {"webdata_default"}


@pytest.mark.timeout(600)
def test_the_question_for_the_webhook_address(environ: dict[str, str], warm: Warm) -> None:
    with SandboxServer(profile="self-hosted") as own:
        prompted = Prompted(environ, warm)
        prompted.answer("Base URL [", f"{own.url}\n")
        prompted.answer("API key (not shown; leave empty if the server requires none): ", "\n")
        prompted.answer("Address at which the server reaches this Airflow, for webhooks (optional): ", "\n")
        assert prompted.end() == 0, prompted.shown
    assert "https address" not in prompted.shown
