"""The service's agent as a managed agent, against the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.ai.exceptions import ManagedAgentInvocationError, ManagedAgentRejected
from airflow.providers.common.ai.managed_agents import ManagedAgentClient, ManagedAgentRequest
from airflow.providers.common.ai.toolsets.managed_agent import ManagedAgentToolset

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.sandbox.server import SandboxServer
from airflow_provider_webdata.toolsets import managed_agent
from airflow_provider_webdata.toolsets.managed_agent import WebDataManagedAgentHook

PROMPT = "Which rivers rise?"
MODEL = "spark-1-mini"


@pytest.fixture
def agent(sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> ManagedAgentClient:
    monkeypatch.setattr(managed_agent, "POLL_SECONDS", 1.0)
    return WebDataManagedAgentHook(options={"max_credits": 100}).agent(MODEL)


def started(sandbox: SandboxServer) -> list[dict[str, Any]]:
    requests = sandbox.control.requests()
    return [one["body"] for one in requests if (one["method"], one["path"]) == ("POST", "/v2/agent")]


def test_an_answer_and_its_thread(sandbox: SandboxServer, agent: ManagedAgentClient) -> None:
    first = agent.invoke(ManagedAgentRequest(prompt=PROMPT))
    assert first.structured
    assert first.text.startswith(("{", "["))
    assert first.raw["status"] == "completed"
    second = agent.invoke(
        ManagedAgentRequest(prompt="And why?", session_id=first.session_id, vendor_options={"mode": "chat"})
    )
    assert second.session_id == first.session_id
    assert second.text
    assert second.trace_ref != first.trace_ref
    assert [one.get("threadId") for one in started(sandbox)] == [None, first.session_id]
    assert {(one["model"], one["maxCredits"]) for one in started(sandbox)} == {(MODEL, 100)}
    assert (agent.ref.platform, agent.ref.name) == ("webdata.agent", MODEL)


def test_a_tool_of_another_agent(
    sandbox: SandboxServer, agent: ManagedAgentClient, obey: Callable[..., str]
) -> None:
    toolset = ManagedAgentToolset(agent, tool_name="ask_web", description="Researches the web.")
    obey(f'CALL ask_web {{"prompt": "{PROMPT}"}}', toolset)
    assert [one["prompt"] for one in started(sandbox)] == [PROMPT]


def test_what_rephrasing_could_mend(sandbox: SandboxServer, agent: ManagedAgentClient) -> None:
    with pytest.raises(ManagedAgentRejected, match="prompt"):
        agent.invoke(ManagedAgentRequest(prompt="x" * 10_001))
    assert started(sandbox) == []


def test_what_nothing_mends(sandbox: SandboxServer, agent: ManagedAgentClient) -> None:
    with pytest.raises(ManagedAgentInvocationError, match="model"):
        WebDataManagedAgentHook().agent("spark-0").invoke(ManagedAgentRequest(prompt=PROMPT))
    capped = WebDataManagedAgentHook(WebDataHook().guarded(max_credits=5), options={"max_credits": 100})
    with pytest.raises(ManagedAgentInvocationError, match="credits"):
        capped.agent(MODEL).invoke(ManagedAgentRequest(prompt=PROMPT))
    assert started(sandbox) == []
    sandbox.control.add_fault("fail_agent")
    with pytest.raises(ManagedAgentInvocationError, match="failed"):
        agent.invoke(ManagedAgentRequest(prompt=PROMPT))
    sandbox.control.add_fault("status", path="/v2/agent", status=401)
    with pytest.raises(ManagedAgentInvocationError, match="WD-401"):
        agent.invoke(ManagedAgentRequest(prompt=PROMPT))


@pytest.mark.parametrize(
    "options", [{"model": "spark-2"}, {"thread_id": "x"}, {"webhook": "https://a.example"}]
)
def test_options_do_not_lead_elsewhere(agent: ManagedAgentClient, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot set"):
        agent.invoke(ManagedAgentRequest(prompt=PROMPT, vendor_options=options))


def test_messages_are_refused(agent: ManagedAgentClient) -> None:
    with pytest.raises(ValueError, match="session_id"):
        agent.invoke(ManagedAgentRequest(messages=[{"role": "user", "content": PROMPT}]))


def test_a_run_that_takes_too_long_is_canceled(sandbox: SandboxServer, agent: ManagedAgentClient) -> None:
    sandbox.control.configure(step_seconds=3600)
    with pytest.raises(TimeoutError, match="timed out and was canceled"):
        agent.invoke(ManagedAgentRequest(prompt=PROMPT, timeout=0.2))
    assert [job["cancelling"] for job in sandbox.control.jobs("agent")] == [True]


def test_an_outage_while_it_waits(sandbox: SandboxServer, agent: ManagedAgentClient) -> None:
    """The newest run may be missing for a moment."""
    sandbox.control.add_fault("status", method="GET", path="/v2/agent/.+", status=404, times=1)
    assert agent.invoke(ManagedAgentRequest(prompt=PROMPT)).text
