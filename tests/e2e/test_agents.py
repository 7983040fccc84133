"""Agents, indexes and calls of the team, by the real scheduler."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from airflow_provider_webdata.sandbox.control import SandboxControl
from tests.e2e.conftest import Run
from tests.e2e.holding_proxy import HoldingProxy
from tests.support.stack import Stack
from tests.support.waiting import PATIENCE

FLOODS = "https://river.example/floods"


def test_an_agent_whose_worker_died_pays_for_no_page_again(stack: Stack, sandbox: SandboxControl) -> None:
    pytest.importorskip("airflow.providers.common.ai", reason="Common AI needs Python 3.11")
    prompt = f'CALL read_page {{"url": "{FLOODS}"}}\nCALL list_site {{"url": "https://river.example/"}}'
    stack.api.add_connection(
        {"connection_id": "pydanticai_default", "conn_type": "pydanticai", "password": "none"}
    )
    with HoldingProxy(stack.sandbox_url, hold=("POST", "/v2/map")) as proxy:
        stack.api.add_connection(stack.connection("webdata_agent", {}, proxy.url))
        run = Run(stack, "e2e_agent", {"prompt": prompt, "connection": "webdata_agent"})
        running = run.wait_for("agent", "running")
        assert proxy.answered.wait(PATIENCE), run.log(running)
        psutil.Process(run.task("agent")["pid"]).kill()
        proxy.release()
        task = run.end("agent")

    assert task["try_number"] == 2
    assert "412 cm" in run.xcom("agent")
    assert [source["url"] for source in run.xcom("agent", "sources")][:1] == [FLOODS]
    paths = [request["path"] for request in sandbox.requests("/v2/", "POST")]
    # The answer to the second call never arrived: only this one is made again.
    assert paths == ["/v2/scrape", "/v2/map", "/v2/map"]


def test_indexes_feedback_and_the_team(stack: Stack, sandbox: SandboxControl, tmp_path: Path) -> None:
    file = tmp_path / "level.html"
    file.write_text("<title>Level</title><p>412 cm</p>")
    sandbox.configure(entitlements=["threatProtection"])
    run = Run(stack, "e2e_indexes", {"file": str(file)})

    assert run.wait_until_ended() == "success", [
        run.log(task) for task in run.tasks() if task["state"] == "failed"
    ]
    sandbox.configure(entitlements=[])

    assert run.xcom("issues")["count"] >= 1
    assert run.xcom("papers")["count"] >= 1
    assert (run.xcom("rate")["creditsRefunded"], run.xcom("rate")["alreadySubmitted"]) == (1, None)
    assert "412 cm" in run.xcom("parse")["markdown"]
    assert run.xcom("of_the_team").keys() == {"laws", "similar", "policy", "most"}
    # Each is made once; the file goes to the storage that the service names, and not with the call.
    paid = [request["path"] for request in sandbox.requests("/v2/(search|parse)", "POST")]
    assert sorted(paid)[:2] == ["/v2/parse", "/v2/parse/upload-url"]
