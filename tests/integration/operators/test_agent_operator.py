"""Runs of the agent in a real Airflow: threads that go on, and what is told of a run that fails."""

from __future__ import annotations

from typing import Any

import pytest

IMPORT = """
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor

STRICT = dict(urls=["https://weather.example/levels"], strict_constrain_to_urls=True, poll_interval=1)
"""
MODES = [pytest.param("deferrable=False", id="worker"), pytest.param("deferrable=True", id="defer")]


@pytest.mark.rule("agent-threads", "agent-server-fields", "agent-exchange")
@pytest.mark.parametrize("mode", MODES)
def test_a_thread_goes_on(run_dag: Any, sandbox: Any, tmp_path: Any, mode: str) -> None:
    """A turn that is answered in words brings no item, and nothing to validate."""
    done = run_dag(
        f"""
        first = WebDataAgentOperator(
            task_id="first", prompt="levels", mode="chat", location={{"country": "DE"}},
            exchange={{"enabled": False}}, schema={{"type": "object"}}, **STRICT, {mode},
        )
        why = WebDataAgentOperator(
            task_id="why", prompt="why?", thread_id="{{{{ ti.xcom_pull('first')['threadId'] }}}}",
            output="{tmp_path}/why.jsonl", schema={{"type": "object", "required": ["x"]}}, on_invalid="fail",
            poll_interval=1, {mode},
        )
        first >> why
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success", done.log[-3000:]
    first, why = done.xcom["first.return_value"], done.xcom["why.return_value"]
    assert first["data"]
    assert (first["threadTurn"], why["threadTurn"]) == (1, 2)
    assert first["threadId"] == why["threadId"]
    assert (why["count"], why["validation"]["checked"]) == (0, 0)
    assert why["message"].startswith("The sandbox has no language model")
    sent = [request["body"] for request in sandbox.control.requests("/v2/agent") if request["body"]]
    assert (sent[0]["exchange"], sent[0]["location"], sent[0]["mode"]) == (
        {"enabled": False},
        {"country": "DE"},
        "chat",
    )
    assert sent[1]["threadId"] == first["threadId"]


@pytest.mark.rule("agent-partial", "agent-trace")
@pytest.mark.parametrize("mode", MODES)
def test_what_a_run_had_done_when_it_failed(run_dag: Any, sandbox: Any, mode: str) -> None:
    sandbox.control.configure(free_runs=0)
    done = run_dag(
        f"""
        WebDataAgentOperator(
            task_id="find", prompt="river", max_credits=6, urls=["https://weather.example/levels"],
            poll_interval=1, {mode}
        )
        """,
        before=IMPORT,
    )
    assert done.state("find") == "failed"
    assert "(WD-031)" in done.log
    assert "steps of agent run" in done.log
    assert "tool_call.started scrape {'url': 'https://weather.example/levels'}" in done.log
    assert "run.finished credit_limit_reached" in done.log
    (page,) = done.xcom["find.partial"]["pages"]
    assert page["url"] == "https://weather.example/levels"


@pytest.mark.parametrize("mode", MODES)
def test_the_sensor_tells_it_too(run_dag: Any, sandbox: Any, mode: str) -> None:
    sandbox.control.add_fault("fail_agent")
    done = run_dag(
        f"""
        start = WebDataAgentOperator(task_id="start", prompt="levels", wait_for_completion=False, **STRICT)
        take = WebDataJobSensor(
            task_id="take", kind="agent", job_id="{{{{ ti.xcom_pull('start') }}}}", poke_interval=1,
            poll_interval=1, {mode},
        )
        start >> take
        """,
        before=IMPORT,
    )
    assert done.state("take") == "failed"
    assert "run.finished failed" in done.log


def test_a_trace_that_cannot_be_read_is_no_second_failure(run_dag: Any, sandbox: Any) -> None:
    sandbox.control.add_fault("fail_agent")
    sandbox.control.add_fault("status", status=500, path="/v2/agent/[^/]+/trace", times=10)
    done = run_dag(
        'WebDataAgentOperator(task_id="find", prompt="levels", **STRICT)', before=IMPORT, retry_budget=0
    )
    assert done.state("find") == "failed"
    assert "(WD-031)" in done.log
    assert "did is not known" in done.log
