"""Support questions about jobs, answered from the job records."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from .call import Reply
from .endpoint import Endpoint
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call
    from .jobs import Jobs

NO_JOB_ID = "The sandbox has no language model: it answers only from the record of a job. Send its jobId."
NO_JOB = "No job of this team has this id."


class Support:
    """Handles ``POST /v2/support/ask``."""

    def __init__(self, core: Core, jobs: Sequence[Jobs]) -> None:
        self._store, self._jobs = core.store, jobs

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [Endpoint("POST", "/v2/support/ask", self.ask, "account")]

    async def ask(self, call: Call) -> Reply:
        """Answer a question about a job. The call succeeds even without an answer."""
        body = valid("support.ask", call.body)
        job_id = body.get("jobId")
        answer = self._answer(job_id) if job_id else None
        blocked = {"blockedBy": NO_JOB if job_id else NO_JOB_ID, "attempted": ["the jobs of the sandbox"]}
        response: Json = {
            "requestId": str(uuid.uuid4()),
            "answer": answer or "",
            "confidence": "high" if answer else "low",
            "fixParameters": None,
            "validation": {"tested": False, "result": "skipped", "evidence": ""} if answer else None,
            "feedback": None if answer else blocked,
            "durationMs": 0,
        }
        return Reply(200, response)

    def _answer(self, job_id: str) -> str | None:
        for jobs in self._jobs:
            job = self._store.get(jobs.kind, job_id)
            if job is not None:
                name = f"The {jobs.kind.replace('_', ' ')} job {job_id}"
                return f"{name} {self._outcome(jobs.kind, job)}"
        return None

    def _outcome(self, kind: str, job: Json) -> str:
        if job["finishedAt"] is None:
            return "is still running. Wait until it ends."
        if job["error"]:
            return f"{job['status']}: {job['error']} Start it again."
        if job["status"] == "cancelled":
            return "was canceled. Start it again."
        errors = self._store.list(f"{kind}-error", parent=job["id"])
        if not errors:
            return f"{job['status']}. No page failed."
        first = errors[0]
        return f"{job['status']}. {len(errors)} of its pages failed. First error: {first['url']}: {first['error']}"
