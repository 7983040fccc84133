# SPDX-License-Identifier: Apache-2.0
"""Runs of the agent: threads that continue, and the report of a run that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from tests.support import direct
from webdata_sandbox.server import SandboxServer

IMPORT = "from airflow_provider_webdata.operators.agent import WebDataAgentOperator"
LEVELS = "https://weather.example/levels"
STRICT: dict[str, Any] = {"urls": [LEVELS], "strict_constrain_to_urls": True, "poll_interval": 1}


@pytest.mark.rule("agent-threads", "agent-server-fields", "agent-exchange")
def test_a_thread_continues(run_dag: Any, sandbox: SandboxServer, tmp_path: Path) -> None:
    """A turn that is answered with a message brings no item, and nothing to validate."""
    done = run_dag(
        f"""
        first = WebDataAgentOperator(
            task_id="first", prompt="levels", mode="chat", location={{"country": "DE"}}, deferrable=True,
            exchange={{"enabled": False}}, schema={{"type": "object"}}, **{STRICT!r},
        )
        why = WebDataAgentOperator(
            task_id="why", prompt="why?", thread_id="{{{{ ti.xcom_pull('first')['threadId'] }}}}",
            save_to="{tmp_path}/why.jsonl", schema={{"type": "object", "required": ["x"]}},
            on_invalid_result="fail", poll_interval=1, deferrable=False,
        )
        first >> why
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success", done.log[-3000:]
    first, why = done.xcom["first.return_value"], done.xcom["why.return_value"]
    assert first["data"]
    assert (first["threadTurn"], why["thread_turn"]) == (1, 2)
    assert first["threadId"] == why["thread_id"]
    assert (why["count"], why["validation"]["checked"]) == (0, 0)
    assert why["message"].startswith("The sandbox has no language model")
    sent = [request["body"] for request in sandbox.control.requests("/v2/agent") if request["body"]]
    assert (sent[0]["exchange"], sent[0]["location"], sent[0]["mode"]) == (
        {"enabled": False},
        {"country": "DE"},
        "chat",
    )
    assert sent[1]["threadId"] == first["threadId"]


@pytest.mark.rule("agent-approval")
def test_a_run_that_asks_says_so(here: SandboxServer, log: Callable[[], str], tmp_path: Path) -> None:
    asking: dict[str, Any] = {
        "prompt": "price",
        "mode": "chat",
        "exchange": {"requireApproval": True, "toolkits": ["market-prices"]},
        "save_to": f"{tmp_path}/asked.jsonl",
        "schema": {"type": "object", "properties": {"prices": {"type": "array"}}, "required": ["prices"]},
        "on_invalid_result": "fail",
        "poll_interval": 1,
    }
    outcome = direct.run(WebDataAgentOperator(task_id="ask", **asking))
    asked = outcome.value
    pending = asked["pending_approval"]
    assert (asked["count"], len(pending["calls"])) == (0, 2)
    assert f"next run of thread {asked['thread_id']} with exchange={{'approve': {{'approvalId': " in log()
    answered = {
        **asking,
        "save_to": f"{tmp_path}/answered.jsonl",
        "thread_id": asked["thread_id"],
        "exchange": {"approve": {"approvalId": pending["id"], "callIds": [pending["calls"][0]["id"]]}},
    }
    outcome = direct.run(WebDataAgentOperator(task_id="answer", **answered))
    assert (outcome.value["count"], outcome.value["exchange"]["paidCalls"]) == (1, 1)


@pytest.mark.rule("agent-partial")
@pytest.mark.parametrize("deferrable", [False, True])
def test_the_report_of_a_run_that_failed(here: SandboxServer, deferrable: bool) -> None:
    here.control.configure(free_runs=0)
    outcome = direct.run(
        WebDataAgentOperator(
            task_id="find",
            prompt="river",
            max_credits=6,
            urls=[LEVELS],
            poll_interval=1,
            deferrable=deferrable,
        )
    )
    assert outcome.state == "failed"
    assert "read XCom 'partial', then raise max_credits or request less (WD-068)" in str(outcome.error)
    (page,) = outcome.xcom["partial"]["pages"]
    assert page["url"] == LEVELS
