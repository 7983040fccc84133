"""The agent operation: an autonomous run, emulated without a model.

The steps are fixed at the start: a search for the words of the prompt, unless the run is limited to its addresses, and
then a visit to each page. The answer is what those pages state (see ``engine/structured_data.py``). A later turn of a
thread in mode ``chat`` has no steps. It answers with a message that it cannot talk.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.sandbox.engine.structured_data import gather, missing
from airflow_provider_webdata.sandbox.reference.errors import ServiceError, UnsupportedHereError
from airflow_provider_webdata.sandbox.reference.timestamps import from_iso
from airflow_provider_webdata.sandbox.reference.urls import canonical, with_scheme
from airflow_provider_webdata.sandbox.reference.wire import whole_number

from .agent_trace import AgentTrace
from .call import Reply
from .endpoint import Endpoint
from .paging import next_link
from .step_jobs import BALANCE, JobFailedError, StepJobs
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.core import Core

    from .call import Call

COSTS = {"search": 2, "scrape": 5}
MAX_CREDITS = 2500
FOUND_PAGES = 3
DEFAULT_MODEL = "spark-1-pro"
PAGE = 20
INHERITED = ("mode", "urls", "schema", "exchange")
NO_TALK = "The sandbox has no language model: a turn in mode chat gets this answer, whatever was asked."


class Agent(StepJobs):
    """Answers the calls about agent runs."""

    kind: ClassVar[str] = "agent"
    not_found: ClassVar[str] = "Agent job not found"

    def __init__(self, core: Core, *engine: Any) -> None:
        super().__init__(core, *engine)
        self._trace = AgentTrace(core.clock)

    def endpoints(self) -> list[Endpoint]:
        """Return the calls that are answered here."""
        return [
            Endpoint("POST", "/v2/agent", self.start, "agent", activity="agent", target="prompt"),
            Endpoint("GET", "/v2/agent/{id}", self.status, "agent-status"),
            Endpoint("DELETE", "/v2/agent/{id}", self.cancel, "agent-status"),
            Endpoint("GET", "/v2/agent", self.runs, "agent-status"),
            Endpoint("GET", "/v2/agent/threads/{id}", self.thread, "agent-status"),
            Endpoint("GET", "/v2/agent/{id}/trace", self.trace, "agent-status"),
            Endpoint("GET", "/v2/agent/{id}/snapshots/{snapshot}", self.snapshot, "agent-status"),
        ]

    async def start(self, call: Call) -> Reply:
        """Start a run."""
        body = valid("agent", call.body)
        core = self._core
        for name in ("threatProtection", "zeroDataRetention"):
            if body.get(name) and name not in self._settings.entitlements:
                raise ServiceError(403, f"{name} is not enabled for your team.")
        if body.get("exchange", {}).keys() & {"approve", "decline"}:
            raise UnsupportedHereError("answer an approval, of which it asks for none (exchange)")
        thread_id, turn = body.get("threadId", str(uuid.uuid4())), 1
        if "threadId" in body:
            *_, last = runs = self._thread(thread_id)
            if last["finishedAt"] is None:
                error = "This thread already has a run in progress"
                raise ServiceError(409, error, code="thread_busy", extra={"runId": last["id"]})
            turn = len(runs) + 1
            body = {**{name: last["request"][name] for name in INHERITED if name in last["request"]}, **body}
        talks = turn > 1 and body.get("mode") == "chat"
        free = body.get("maxCredits", MAX_CREDITS) <= MAX_CREDITS and self._take_free_run()
        if not free:
            core.credits.require(BALANCE)
        more = {"threadId": thread_id, "turn": turn, "talks": talks, "trace": [], "snapshots": {}}
        job = self.begin(body, [] if talks else _steps(body), free=free, partial=None, stop=None, **more)
        self._trace.begin(job)
        self._save(job)
        return Reply(200, {"success": True, "id": job["id"], "threadId": thread_id, "threadTurn": turn})

    async def status(self, call: Call) -> Reply:
        """Answer with the state of a run; ``success`` stays true for a failed one."""
        job = self.find(call.params["id"])
        body: Json = {
            "success": True,
            "status": job["status"],
            "model": job["request"].get("model", DEFAULT_MODEL),
            "creditsUsed": 0 if job["free"] else job["spent"],
            "expiresAt": job["expiresAt"],
            "threadId": job["threadId"],
            "threadTurn": job["turn"],
            **_further(job),
        }
        if job["status"] == "completed":
            body["data"] = job["data"]
        if job["status"] == "failed":
            body["error"] = job["error"]
        return Reply(200, body)

    async def runs(self, call: Call) -> Reply:
        """Answer with the runs, newest first."""
        before = whole_number(call.query.get("before", str(2**53)))
        if before is None or before < 0:
            raise ServiceError(400, "Invalid before timestamp.")
        earlier = [job for job in reversed(self.all()) if _milliseconds(job) < before]
        body: Json = {"success": True, "agents": [_listed(job) for job in earlier[:PAGE]]}
        if len(earlier) > PAGE:
            body["next"] = next_link(call, self._quirks, {"before": _milliseconds(earlier[PAGE - 1])})
        return Reply(200, body)

    async def thread(self, call: Call) -> Reply:
        """Answer with a thread and its runs."""
        runs = self._thread(call.params["id"])
        with_data = call.query.get("includeData") == "true"
        thread = {
            "id": call.params["id"],
            "createdAt": runs[0]["createdAt"],
            "updatedAt": runs[-1]["finishedAt"] or runs[-1]["createdAt"],
            "status": "running" if runs[-1]["finishedAt"] is None else "idle",
            "runs": [_turn(job, with_data=with_data) for job in runs],
        }
        return Reply(200, {"success": True, "thread": thread})

    async def trace(self, call: Call) -> Reply:
        """Answer with the trace of a run."""
        job = self.find(call.params["id"])
        spent = 0 if job["free"] else job["spent"]
        body: Json = {"success": True, "id": job["id"], "events": job["trace"], "creditsUsed": spent}
        if call.query.get("liveView") == "true":
            body["activeBrowserSessions"] = []
        return Reply(200, body)

    async def snapshot(self, call: Call) -> Reply:
        """Answer with a snapshot that an event of the trace refers to."""
        job, snapshot = self.find(call.params["id"]), call.params["snapshot"]
        if snapshot not in job["snapshots"]:
            raise ServiceError(404, "Snapshot not found")
        found = {"id": job["id"], "snapshotId": snapshot, "snapshot": job["snapshots"][snapshot]}
        return Reply(200, {"success": True, **found})

    async def cancel(self, call: Call) -> Reply:
        """Request cancellation of a run, which stops at its next step."""
        job = self.find(call.params["id"])
        if job["finishedAt"] is not None:
            raise ServiceError(409, "Agent already finished")
        job["cancelling"] = True
        self._trace.add(job, "run.cancel_requested", reason="user")
        self._store.put(self.kind, job["id"], job)
        return Reply(200, {"success": True})

    def perform(self, job: Json, step: Json) -> None:
        """Search, or visit a page, unless that would cost more than the run may."""
        cost = COSTS[step["action"]]
        limit = job["request"].get("maxCredits", MAX_CREDITS)
        if job["spent"] + cost > limit:
            job["stop"] = "credit_limit_reached"
            job["partial"], _ = gather(job["request"].get("schema"), job["known"])
            raise JobFailedError(f"The run reached its limit of {limit:g} credits.")
        job["spent"] += cost
        self._notify(job, "action", {"creditsUsed": job["spent"], **step})
        with self._trace.tool_call(job, step):
            self._act(job, step)

    def _act(self, job: Json, step: Json) -> None:
        if step["action"] == "search":
            seen = {canonical(url) for url in job["request"].get("urls", [])}
            found = self._index.about(step["input"]["query"], FOUND_PAGES)
            job["steps"].extend(_visit(url) for url in found if url not in seen)
        else:
            self.visit(job, step["input"]["url"], {})

    def complete(self, job: Json) -> None:
        """Make the result, or the answer of a turn that talks."""
        if job["talks"]:
            job["message"] = NO_TALK
            return
        super().complete(job)
        self._trace.snapshot(job, json.dumps(job["data"]))

    def outcome(self, job: Json) -> Iterator[tuple[str, Json | None]]:
        """Yield the event of the end."""
        self._trace.end(job)
        data: Json = {"creditsUsed": 0 if job["free"] else job["spent"]}
        if job["status"] == "completed":
            data["data"] = job["data"]
        yield job["status"], data

    def bill(self, job: Json) -> None:
        """Settle the run, unless it is one of the day's free ones."""
        if not job["free"]:
            super().bill(job)

    def _thread(self, thread_id: str) -> list[Json]:
        """Return the runs of a thread, oldest first.

        :raises ServiceError: 404, 410: it never was, or it expired.
        """
        runs = [job for job in self.all() if job["threadId"] == thread_id]
        if not runs:
            raise ServiceError(404, "Agent thread not found", code="thread_not_found")
        last = runs[-1]
        if last["finishedAt"] and from_iso(last["expiresAt"]) <= self._clock.datetime():
            raise ServiceError(410, "Agent thread has expired", code="thread_expired")
        return sorted(runs, key=lambda job: int(job["turn"]))

    def _take_free_run(self) -> bool:
        today = self._clock.datetime().date().isoformat()
        counter = self._store.get("meta", "free-runs") or {}
        used = counter["used"] if counter.get("day") == today else 0
        if used >= self._settings.free_runs:
            return False
        self._store.put("meta", "free-runs", {"day": today, "used": used + 1})
        return True


def _steps(body: Json) -> list[Json]:
    visits = [_visit(with_scheme(url)) for url in dict.fromkeys(body.get("urls", []))]
    if visits and body.get("strictConstrainToURLs"):
        return visits
    return [*visits, {"action": "search", "input": {"query": body["prompt"]}}]


def _visit(url: str) -> Json:
    return {"action": "scrape", "input": {"url": url}}


def _further(job: Json) -> Json:
    """Return the fields of a status that are not always present."""
    request, found = job["request"], {}
    found.update({name: request[name] for name in ("effort", "mode") if name in request})
    if job.get("message"):
        found["message"] = job["message"]
    if job["stop"]:
        valid_so_far = not missing(request.get("schema"), job["partial"])
        found.update(stopReason=job["stop"], partial=job["partial"], partialSchemaValid=valid_so_far)
    if "exchange" in request:
        # It has no providers of data, and calls none.
        found["exchange"] = {"enabled": request["exchange"].get("enabled", True), "paidCalls": 0}
    return found


def _listed(job: Json) -> Json:
    request = job["request"]
    options = {name: request[name] for name in ("urls", "prompt", "schema", "effort") if name in request}
    return {
        "id": job["id"],
        "createdAt": job["createdAt"],
        "targetHint": (request.get("urls") or [request["prompt"]])[0],
        "origin": request.get("origin", "api"),
        "settings": {"hidden": False, "starred": False},
        # A list knows three states only.
        "status": "failed" if job["status"] == "cancelled" else job["status"],
        "options": {**options, "model": request.get("model", DEFAULT_MODEL)},
    }


def _turn(job: Json, *, with_data: bool) -> Json:
    request = job["request"]
    kept = {name: request[name] for name in ("prompt", "urls", "schema", "effort", "mode") if name in request}
    status = {"completed": "succeeded", "failed": job["stop"] or "failed"}.get(job["status"], job["status"])
    return {
        "id": job["id"],
        "turn": job["turn"],
        "status": status,
        "createdAt": job["createdAt"],
        "finishedAt": job["finishedAt"],
        "creditsUsed": 0 if job["free"] else job["spent"],
        **kept,
        **_further(job),
        **({"data": job["data"]} if with_data and job["data"] is not None else {}),
    }


def _milliseconds(job: Json) -> int:
    return round(from_iso(job["createdAt"]).timestamp() * 1000)
