# SPDX-License-Identifier: Apache-2.0
"""The set-up of docs/webhooks.md, step by step, in an Airflow with default addresses, as `airflow standalone` has."""

from __future__ import annotations

import re
import signal
import textwrap
from pathlib import Path

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.snippets import ROOT
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import Warm
from webdata_sandbox.server import SandboxServer

PAGE = ROOT / "docs" / "webhooks.md"

CRAWL = """
import pendulum
from airflow.sdk import DAG

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator

with DAG("crawl", schedule=None, start_date=pendulum.datetime(2026, 1, 1)):
    WebDataCrawlOperator(task_id="crawl", url="https://river.example", limit=2)
"""


def steps() -> list[str]:
    """Return the numbered steps under "Set up"."""
    section = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1]
    assert section.startswith("Set up\n")
    return re.split(r"^\d\. ", section, flags=re.MULTILINE)[1:]


@pytest.mark.timeout(600)
def test_the_steps_lead_to_deliveries(
    environ: dict[str, str], home: Path, sandbox: SandboxServer, warm: Warm
) -> None:
    turn_on, migrate, connect, check = steps()
    [setting] = re.findall(r"^   ```ini\n(.*?)^   ```$", turn_on, re.MULTILINE | re.DOTALL)
    assert "`airflow db migrate`" in migrate
    assert "`airflow webdata init`" in connect
    assert "`airflow webdata doctor`" in check
    (home / "airflow.cfg").write_text(textwrap.dedent(setting))
    (home / "dags").mkdir()
    (home / "dags" / "crawl.py").write_text(CRAWL)
    # The default one may be in use.
    port = str(free_port())
    environ |= {"AIRFLOW__API__PORT": port, "NO_PROXY": "localhost,127.0.0.1"}
    assert not {"AIRFLOW__API__BASE_URL", "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"} & environ.keys()
    webhook_url = f"http://127.0.0.1:{port}"

    def airflow(*argv: str, given: str = "") -> str:
        done = warm.run(["-m", "airflow", *argv], env=environ, input=given)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
        return done.stdout + done.stderr

    airflow("db", "migrate")
    output = home / "api-server.log"
    with output.open("w") as log:
        server = warm.start(["-m", "airflow", "api-server", "--port", port], env=environ, stdout=log)
    try:
        assert wait_until(lambda: answers(f"{webhook_url}/webdata/inbox-health"), pause=0.5), (
            output.read_text()
        )
        flags = ("--base-url", sandbox.url, "--webhook-url", webhook_url)
        made = airflow("webdata", "init", "--no-example", *flags, given=sandbox.api_key)
        assert "wait by polling" not in made
        checked = airflow("webdata", "doctor")
        assert f"the inbox at http://localhost:{port} accepts this connection's tokens" in checked
        assert (
            f"{webhook_url}/webdata/inbox/webdata_default: the inbox responds and knows the secret" in checked
        )
        logged = airflow("dags", "test", "crawl")
        assert "by polling" not in logged
        assert wait_until(lambda: "completed" in airflow("webdata", "inbox", "list"), pause=1.0)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
