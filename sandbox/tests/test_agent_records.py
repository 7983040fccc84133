"""What the sandbox keeps of agent runs: threads, lists, traces, snapshots; read by the public client, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from firecrawl import Firecrawl

from .step_job_calls import DAY, FLOODS, LEVELS, NOBODY, SCHEMA, done, start, started, status

STRICT = {"urls": [LEVELS], "strictConstrainToURLs": True}


@pytest.fixture
def client(sandbox: Any) -> Any:
    return Firecrawl(api_key=sandbox.api_key, api_url=sandbox.url)


def read(api: Any, path: str, expected: int = 200) -> Any:
    response = api.http.get(f"/v2/agent{path}")
    assert response.status_code == expected, response.text
    return response.json()


@pytest.mark.rule("agent-threads", "agent-answer")
def test_a_thread_goes_on_with_what_was_said(sandbox: Any, api: Any, client: Any) -> None:
    first = start(api, "agent", prompt="levels", schema=SCHEMA, **STRICT).json()
    assert first["threadTurn"] == 1
    sandbox.control.settle()
    second = start(
        api, "agent", prompt="again", threadId=first["threadId"], strictConstrainToURLs=True
    ).json()
    assert (second["threadId"], second["threadTurn"]) == (first["threadId"], 2)
    sandbox.control.settle()
    one, two = (status(api, "agent", run["id"]) for run in (first, second))
    assert one["data"] == two["data"]
    assert (two["threadId"], two["threadTurn"]) == (first["threadId"], 2)
    thread = client.get_agent_thread(first["threadId"], include_data=True).thread
    assert [(run.turn, run.prompt, run.status, run.data) for run in thread.runs] == [
        (1, "levels", "succeeded", one["data"]),
        (2, "again", "succeeded", one["data"]),
    ]
    assert thread.status == "idle"
    assert client.get_agent_thread(first["threadId"]).thread.runs[0].data is None


@pytest.mark.rule("agent-threads", "agent-server-fields")
def test_a_turn_may_answer_in_words(sandbox: Any, api: Any) -> None:
    fields = {"mode": "chat", "exchange": {"enabled": False}, "location": {"country": "DE"}, **STRICT}
    first = start(api, "agent", prompt="levels", **fields).json()
    sandbox.control.settle()
    found = status(api, "agent", first["id"])
    assert (found["mode"], found["exchange"]) == (
        "chat",
        {"enabled": False, "paidCalls": 0, "creditsUsed": None},
    )
    assert "message" not in found
    assert found["data"]
    talk = done(sandbox, api, "agent", prompt="why?", threadId=first["threadId"])
    assert (talk["status"], talk["data"], talk["mode"]) == ("completed", None, "chat")
    assert talk["message"].startswith("The sandbox has no language model")


@pytest.mark.rule("agent-thread-errors")
def test_threads_that_cannot_go_on(sandbox: Any, api: Any) -> None:
    def refused(thread: str) -> tuple[int, str, Any]:
        answer = start(api, "agent", prompt="x", threadId=thread, **STRICT)
        return answer.status_code, answer.json()["code"], answer.json().get("runId")

    assert refused(NOBODY) == (404, "thread_not_found", None)
    sandbox.control.configure(step_seconds=60)
    first = start(api, "agent", prompt="x", **STRICT).json()
    assert refused(first["threadId"]) == (409, "thread_busy", first["id"])
    assert read(api, f"/threads/{first['threadId']}")["thread"]["status"] == "running"
    sandbox.control.advance(600)
    sandbox.control.advance(DAY + 60)
    assert refused(first["threadId"]) == (410, "thread_expired", None)
    assert read(api, f"/threads/{first['threadId']}", 410)["code"] == "thread_expired"
    assert read(api, f"/threads/{NOBODY}", 404)["code"] == "thread_not_found"


@pytest.mark.rule("agent-list")
def test_lists_come_in_parts(sandbox: Any, api: Any, client: Any) -> None:
    ids = []
    for number in range(43):
        ids.append(started(api, "agent", prompt=f"run {number}", urls=[FLOODS], strictConstrainToURLs=True))
        sandbox.control.advance(1)
    sandbox.control.settle()
    newest_first = ids[::-1]
    first = client.list_agents()
    assert [run.id for run in first.agents] == newest_first[:20]
    assert (first.agents[0].target_hint, first.agents[0].options.prompt) == (FLOODS, "run 42")
    seen, link = [], "/v2/agent"
    while link:
        page = api.http.get(link).json()
        seen += [run["id"] for run in page["agents"]]
        link = page.get("next")
    assert seen == newest_first
    assert read(api, "?before=soon", 400)["error"] == "Invalid before timestamp."
    assert read(api, "?before=0")["agents"] == []


@pytest.mark.rule("agent-trace", "agent-snapshot")
def test_a_trace_and_what_it_refers_to(sandbox: Any, api: Any, client: Any) -> None:
    found = done(sandbox, api, "agent", prompt="river", urls=[LEVELS, "https://nowhere.example/"])
    job = read(api, "")["agents"][0]["id"]
    trace = client.get_agent_trace(job, live_view=True)
    assert [event.type for event in trace.events][:4] == [
        "run.started",
        "agent.started",
        "tool_call.started",
        "tool_call.finished",
    ]
    assert [event.type for event in trace.events][-3:] == [
        "artifact.updated",
        "agent.finished",
        "run.finished",
    ]
    assert [event.producer_sequence for event in trace.events] == list(range(len(trace.events)))
    assert any("error" in event.result for event in trace.events if event.type == "tool_call.finished")
    assert trace.active_browser_sessions == []
    (artifact,) = (event.artifact for event in trace.events if event.type == "artifact.updated")
    assert json.loads(client.get_agent_snapshot(job, artifact.snapshot_id).snapshot) == found["data"]
    read(api, f"/{job}/snapshots/{NOBODY}", 404)
    read(api, f"/{NOBODY}/trace", 404)
    sandbox.control.advance(DAY + 60)
    read(api, f"/{job}/trace", 404)


@pytest.mark.rule("agent-partial", "agent-trace")
def test_a_run_that_reaches_its_limit_says_what_it_had(sandbox: Any, api: Any, gauges: Any) -> None:
    body = {"urls": gauges[:2], "strictConstrainToURLs": True, "maxCredits": 5, "effort": "low"}
    found = done(sandbox, api, "agent", prompt="levels", schema=SCHEMA, **body)
    assert (found["status"], found["stopReason"], found["effort"]) == (
        "failed",
        "credit_limit_reached",
        "low",
    )
    assert found["partial"]["pages"] == [{"title": "Gauge a", "level": 412}]
    assert found["partialSchemaValid"] is True
    job = read(api, "")["agents"][0]["id"]
    last = read(api, f"/{job}/trace")["events"][-1]
    assert (last["outcome"], last["error"]["code"]) == ("credit_limit_reached", "credit_limit_reached")
    assert read(api, f"/threads/{found['threadId']}")["thread"]["runs"][0]["status"] == "credit_limit_reached"


def test_a_cancelled_run_says_so_in_its_trace(sandbox: Any, api: Any) -> None:
    sandbox.control.configure(step_seconds=60)
    job = started(api, "agent", prompt="x", **STRICT)
    sandbox.control.advance(60)
    api.http.delete(f"/v2/agent/{job}")
    sandbox.control.advance(60)
    events = read(api, f"/{job}/trace")["events"]
    assert [event["type"] for event in events if event["type"].startswith("run.")] == [
        "run.started",
        "run.cancel_requested",
        "run.finished",
    ]
    assert events[-1]["outcome"] == "cancelled"
