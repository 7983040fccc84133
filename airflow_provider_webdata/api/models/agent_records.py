"""The service's records of agent runs: list, threads, traces, and snapshots."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.api.models.base import Answer, Entries, Lenient, OrNone, ResponseModel


class AgentRun(ResponseModel):
    """A run in the list of runs.

    :ivar target_hint: the first URL of the run, or its prompt.
    :ivar options: request fields of the run: `urls`, `prompt`, `schema`, `model`, `effort`.
    """

    id: str
    created_at: OrNone[str] = None
    target_hint: OrNone[str] = None
    origin: OrNone[str] = None
    integration: OrNone[str] = None
    status: OrNone[str] = None
    options: OrNone[dict[str, Any]] = None


class AgentRuns(Answer):
    """Response of `GET /v2/agent`: at most 20 runs, newest first.

    :ivar next: URL of the next page; its host may be wrong.
    """

    agents: Entries[AgentRun]
    next: str | None = None


class AgentTurn(ResponseModel):
    """A run of a thread.

    :ivar turn: position in the thread, from 1.
    :ivar status: an open set, such as `succeeded`, which differs from that of `AgentStatus`.
    :ivar data: the result, if requested.
    """

    id: str
    turn: OrNone[int] = None
    mode: OrNone[str] = None
    prompt: OrNone[str] = None
    status: OrNone[str] = None
    created_at: OrNone[str] = None
    finished_at: OrNone[str] = None
    credits_used: Lenient[int | float | None] = None
    message: OrNone[str] = None
    data: Any = None


class AgentThread(ResponseModel):
    """A thread and its runs, oldest first.

    :ivar status: `idle` or `running`; a thread has one run at a time.
    """

    id: str
    status: OrNone[str] = None
    created_at: OrNone[str] = None
    updated_at: OrNone[str] = None
    runs: Entries[AgentTurn]


class AgentThreadResponse(Answer):
    """Response of `GET /v2/agent/threads/{threadId}`."""

    thread: AgentThread


class AgentTraceEvent(ResponseModel):
    """A step of a run.

    :ivar type: an open set, such as `tool_call.started`; it determines the other fields.
    :ivar agent: the part of the agent that performed the step: `id`, `role`, `name`.
    """

    type: str
    event_id: OrNone[str] = None
    occurred_at: OrNone[str] = None
    agent: OrNone[dict[str, Any]] = None


class AgentTrace(Answer):
    """Response of `GET /v2/agent/{jobId}/trace`: the actions of a run, oldest first.

    :ivar active_browser_sessions: running browsers, each with `id` and `liveViewUrl`, if requested.
    """

    id: OrNone[str] = None
    events: Entries[AgentTraceEvent]
    credits_used: Lenient[int | float | None] = None
    active_browser_sessions: OrNone[Entries[dict[str, Any]]] = None


class AgentSnapshot(Answer):
    """Response of `GET /v2/agent/{jobId}/snapshots/{snapshotId}`, to which a trace's `artifact.updated` refers.

    :ivar snapshot: the content, as text.
    """

    id: OrNone[str] = None
    snapshot_id: OrNone[str] = None
    snapshot: str
