"""Both hooks against the sandbox: the list of agent runs, a thread, a trace, and its snapshots."""

from __future__ import annotations

import json

import pytest

from airflow_provider_webdata.api.errors import ConflictError, InvalidRequestError, NotFoundError
from tests.support.waiting import settled

LEVELS = "https://weather.example/levels"
STRICT = {"prompt": "levels", "urls": [LEVELS], "strict_constrain_to_urls": True}
NOBODY = "00000000-0000-0000-0000-000000000007"


@pytest.fixture
async def hook(kind_of_hook, sandbox, connect):
    connect(sandbox.url, sandbox.api_key, retry_budget=0)
    hook = kind_of_hook()
    yield hook
    await settled(hook.close())


@pytest.mark.rule("agent-list")
async def test_all_runs_are_listed_once(hook, sandbox):
    """From several pages of 20, whose links name another host."""
    sandbox.control.set_quirks(["next-wrong-host"])
    ids = []
    for _ in range(21):
        ids.append((await settled(hook.start_agent(STRICT))).id)
        sandbox.control.advance(1)
    sandbox.control.settle()
    runs = await settled(hook.iter_agents())
    assert [run.id for run in runs] == ids[::-1]
    assert (runs[0].target_hint, runs[0].status) == (LEVELS, "completed")
    first = await settled(hook.list_agents(before=0))
    assert (first.agents, first.next) == ([], None)


@pytest.mark.rule("agent-threads", "agent-thread-read", "agent-thread-errors")
async def test_a_thread(hook, sandbox):
    sandbox.control.configure(step_seconds=60)
    first = (await settled(hook.start_agent(STRICT))).to_wire()
    with pytest.raises(ConflictError, match="already has a run in progress") as busy:
        await settled(hook.start_agent({"prompt": "more", "thread_id": first["threadId"]}))
    assert busy.value.body["runId"] == first["id"]
    sandbox.control.advance(600)
    await settled(hook.start_agent({**STRICT, "prompt": "more", "thread_id": first["threadId"]}))
    sandbox.control.advance(600)
    thread = await settled(hook.agent_thread(first["threadId"], include_data=True))
    assert [(run.turn, run.prompt) for run in thread.runs] == [(1, "levels"), (2, "more")]
    assert thread.runs[0].data == (await settled(hook.job_status("agent", first["id"]))).data
    assert (await settled(hook.agent_thread(first["threadId"]))).runs[0].data is None
    with pytest.raises(NotFoundError, match="thread_not_found"):
        await settled(hook.agent_thread(NOBODY))


@pytest.mark.rule("agent-trace", "agent-snapshot")
async def test_a_trace_and_its_snapshots(hook, sandbox):
    run = await settled(hook.start_agent(STRICT))
    sandbox.control.settle()
    trace = await settled(hook.agent_trace(run.id, live_view=True))
    assert [trace.events[0].type, trace.events[-1].type] == ["run.started", "run.finished"]
    assert trace.active_browser_sessions == []
    assert (await settled(hook.agent_trace(run.id))).active_browser_sessions is None
    (artifact,) = (event.to_wire()["artifact"] for event in trace.events if event.type == "artifact.updated")
    text = await settled(hook.agent_snapshot(run.id, artifact["snapshotId"]))
    assert json.loads(text) == (await settled(hook.job_status("agent", run.id))).data
    with pytest.raises(NotFoundError):
        await settled(hook.agent_snapshot(run.id, NOBODY))


@pytest.mark.rule("agent-exchange")
async def test_a_contradiction_is_not_sent(hook, sandbox):
    with pytest.raises(InvalidRequestError, match="requireApproval requires mode 'chat'"):
        await settled(hook.start_agent({**STRICT, "exchange": {"require_approval": True}}))
    assert sandbox.control.requests("/v2/agent") == []
