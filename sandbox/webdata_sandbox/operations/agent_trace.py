"""Traces of agent runs: events of the service's schema 1, stored in the run."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from webdata_sandbox.engine.scraper import PageError
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.timestamps import from_iso, iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.clock import Clock

ORCHESTRATOR = {"id": "orchestrator", "role": "orchestrator", "name": "agent"}


class AgentTrace:
    """Appends events to the ``trace`` of a run and texts to its ``snapshots``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def add(self, job: Json, type_: str, **fields: Any) -> None:
        """Add an event."""
        event = {
            "schemaVersion": 1,
            "eventId": str(uuid.uuid4()),
            "runId": job["id"],
            "occurredAt": iso(self._clock.datetime()),
            "producerSequence": len(job["trace"]),
            "agent": ORCHESTRATOR,
        }
        job["trace"].append({**event, "type": type_, **fields})

    def begin(self, job: Json) -> None:
        """Record the start of the run."""
        self.add(job, "run.started")
        self.add(job, "agent.started")

    @contextmanager
    def tool_call(self, job: Json, step: Json) -> Iterator[None]:
        """Record a step that runs in this context."""
        call = {"toolCallId": str(uuid.uuid4()), "toolName": step["action"]}
        self.add(job, "tool_call.started", **call, parameters=step["input"])
        try:
            yield
        except (PageError, ServiceError) as error:
            self.add(job, "tool_call.finished", **call, result={"error": error.code})
            raise
        self.add(job, "tool_call.finished", **call, result={"pages": len(job["known"])})

    def snapshot(self, job: Json, text: str) -> None:
        """Store a result and record it."""
        snapshot = str(uuid.uuid4())
        job["snapshots"][snapshot] = text
        artifact = {"kind": "json", "artifactId": "data", "snapshotId": snapshot, "change": "init"}
        self.add(job, "artifact.updated", artifact=artifact)

    def end(self, job: Json) -> None:
        """Record the end of the run."""
        outcome = "succeeded" if job["status"] == "completed" else job["status"]
        error = None
        if job["error"]:
            code, source = (job["stop"], "billing") if job["stop"] else ("internal", "agent")
            error = {"code": code, "source": source, "retryable": False, "message": job["error"]}
        lasted = self._clock.datetime() - from_iso(job["createdAt"])
        milliseconds = max(0, round(lasted.total_seconds() * 1000))
        self.add(job, "agent.finished", outcome=outcome, durationMs=milliseconds, error=error)
        self.add(job, "run.finished", outcome=job["stop"] or outcome, error=error)
