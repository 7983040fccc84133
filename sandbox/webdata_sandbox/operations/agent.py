# SPDX-License-Identifier: Apache-2.0
"""Agent runs, emulated without a language model.

The request determines the steps: a visit to each of its URLs and, unless the run is limited to them, a search for the
words of the prompt and a visit to each result. The result is the data that those pages state (see
``engine/structured_data.py``). A later turn of a thread in mode ``chat`` has no steps; its message says that the
sandbox has no language model. A run with an ``exchange`` also calls the data providers that share a word with its
prompt (see ``agent_exchange.py``).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from webdata_sandbox.engine.structured_data import gather, is_valid
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.timestamps import from_iso
from webdata_sandbox.reference.urls import canonical, with_scheme

from .agent_exchange import ANSWERS, AgentExchange, max_cost
from .call import Reply
from .endpoint import Endpoint
from .step_jobs import BALANCE, JobFailedError, StepJobs
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call
    from .providers import Providers

COSTS = {"search": 2, "scrape": 5}
MAX_CREDITS = 2500
FOUND_PAGES = 3
DEFAULT_MODEL = "spark-1-pro"
INHERITED = ("mode", "urls", "schema")
NO_CHAT = (
    "The sandbox has no language model: each later turn in mode chat returns this message for any prompt."
)


class Agent(StepJobs):
    """Handles agent requests."""

    kind: ClassVar[str] = "agent"
    not_found: ClassVar[str] = "Agent job not found"

    def __init__(self, core: Core, providers: Providers, *engine: Any) -> None:
        super().__init__(core, *engine)
        self._exchange = AgentExchange(providers)

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("POST", "/v2/agent", self.start, "agent", activity="agent", target="prompt"),
            Endpoint("GET", "/v2/agent/{id}", self.status, "agent-status"),
            Endpoint("DELETE", "/v2/agent/{id}", self.cancel, "agent-status"),
        ]

    async def start(self, call: Call) -> Reply:
        """Start a run."""
        body = valid("agent", call.body)
        core = self._core
        for name in ("threatProtection", "zeroDataRetention"):
            if body.get(name) and name not in self._settings.entitlements:
                raise ServiceError(403, f"{name} is not enabled for your team.")
        thread_id, turn, last = body.get("threadId", str(uuid.uuid4())), 1, None
        if "threadId" in body:
            *_, last = runs = self._thread(thread_id)
            if last["finishedAt"] is None:
                error = "This thread already has a run in progress"
                raise ServiceError(409, error, code="thread_busy", extra={"runId": last["id"]})
            turn = len(runs) + 1
            body = _inherit(last["request"], body)
        exchange = self._exchange.begin(body, last)
        steps = _steps(body, exchange)
        chat_only = not steps or (turn > 1 and body.get("mode") == "chat" and not exchange["calls"])
        free = body.get("maxCredits", MAX_CREDITS) <= MAX_CREDITS and self._use_free_run()
        if not free:
            core.credits.require(BALANCE)
        more = {"threadId": thread_id, "turn": turn, "chat_only": chat_only, "exchange": exchange}
        job = self.begin(body, [] if chat_only else steps, free=free, partial=None, stop=None, **more)
        if last is not None and self._exchange.resolve(last, job):
            self._save(last)
        return Reply(200, {"success": True, "id": job["id"], "threadId": thread_id, "threadTurn": turn})

    async def status(self, call: Call) -> Reply:
        """Return the status of a run; ``success`` is true even if the run failed."""
        job = self.find(call.params["id"])
        body: Json = {
            "success": True,
            "status": job["status"],
            "model": job["request"].get("model", DEFAULT_MODEL),
            "creditsUsed": _billed(job),
            "expiresAt": job["expiresAt"],
            "threadId": job["threadId"],
            "threadTurn": job["turn"],
            **_optional_fields(job),
            **self._exchange.status(job),
        }
        if job["status"] == "completed":
            body["data"] = job["data"]
        if job["status"] == "failed":
            body["error"] = job["error"]
        return Reply(200, body)

    async def cancel(self, call: Call) -> Reply:
        """Request cancellation of a run, which stops at its next step."""
        job = self.find(call.params["id"])
        if job["finishedAt"] is not None:
            raise ServiceError(409, "Agent already finished")
        job["cancelling"] = True
        self._store.put(self.kind, job["id"], job)
        return Reply(200, {"success": True})

    def perform(self, job: Json, step: Json) -> None:
        """Search, visit a page, or call a provider, within the credit limit of the run."""
        is_call = step["action"] == "provider"
        cost = max_cost(step["input"]) if is_call else COSTS[step["action"]]
        limit = job["request"].get("maxCredits", MAX_CREDITS)
        if job["spent"] + cost > limit:
            job["stop"] = "credit_limit_reached"
            job["partial"], _ = gather(job["request"].get("schema"), job["known"])
            raise JobFailedError(f"The run reached its limit of {limit:g} credits.")
        if not is_call:
            job["spent"] += cost
        self._notify(job, "action", {"creditsUsed": job["spent"], **step})
        if is_call:
            self._exchange.call(job, step["input"])
        elif step["action"] == "search":
            seen = {canonical(url) for url in job["request"].get("urls", [])}
            found = self._index.about(step["input"]["query"], FOUND_PAGES)
            job["steps"].extend(_visit(url) for url in found if url not in seen)
        else:
            self.visit(job, step["input"]["url"], {})

    def complete(self, job: Json) -> None:
        """Set the result, or the message of a chat turn or a pending approval."""
        pending = job["exchange"]["pending"]
        if pending is not None or job["chat_only"]:
            job["message"] = pending["reason"] if pending else NO_CHAT
        if not job["chat_only"]:
            super().complete(job)

    def outcome(self, job: Json) -> Iterator[tuple[str, Json | None]]:
        """Yield the final event."""
        data: Json = {"creditsUsed": _billed(job)}
        if job["status"] == "completed":
            data["data"] = job["data"]
        yield job["status"], data

    def bill(self, job: Json) -> None:
        """Bill the run. A free run costs only its data provider calls."""
        self._core.credits.spend(_billed(job))

    def _thread(self, thread_id: str) -> list[Json]:
        """Return the runs of a thread, oldest first.

        :raises ServiceError: 404: the thread is unknown; 410: it has expired.
        """
        runs = [job for job in self.all() if job["threadId"] == thread_id]
        if not runs:
            raise ServiceError(404, "Agent thread not found", code="thread_not_found")
        last = runs[-1]
        if last["finishedAt"] and from_iso(last["expiresAt"]) <= self._clock.datetime():
            raise ServiceError(410, "Agent thread has expired", code="thread_expired")
        return sorted(runs, key=lambda job: int(job["turn"]))

    def _use_free_run(self) -> bool:
        today = self._clock.datetime().date().isoformat()
        counter = self._store.get("meta", "free-runs") or {}
        used = counter["used"] if counter.get("day") == today else 0
        if used >= self._settings.free_runs:
            return False
        self._store.put("meta", "free-runs", {"day": today, "used": used + 1})
        return True


def _inherit(earlier: Json, body: Json) -> Json:
    """Return a request that inherits missing options from the thread's last request."""
    whole = {**{name: earlier[name] for name in INHERITED if name in earlier}, **body}
    if "exchange" in earlier:
        kept = {name: value for name, value in earlier["exchange"].items() if name not in ANSWERS}
        whole["exchange"] = {**kept, **body.get("exchange", {})}
    return whole


def _billed(job: Json) -> int:
    """Return the billed credits of a run."""
    spent: int = job["spent"]
    return min(spent, job["exchange"]["credits"]) if job["free"] else spent


def _steps(body: Json, exchange: Json) -> list[Json]:
    """Return the steps of a run: none while paid calls await approval, and only the approved calls afterward."""
    calls = [{"action": "provider", "input": item} for item in exchange["calls"]]
    pending = exchange["pending"]
    if "approve" in body.get("exchange", {}) or (pending and pending["kind"] == "calls"):
        return calls
    return [*_visits(body), *calls]


def _visits(body: Json) -> list[Json]:
    visits = [_visit(with_scheme(url)) for url in dict.fromkeys(body.get("urls", []))]
    if visits and body.get("strictConstrainToURLs"):
        return visits
    return [*visits, {"action": "search", "input": {"query": body["prompt"]}}]


def _visit(url: str) -> Json:
    return {"action": "scrape", "input": {"url": url}}


def _optional_fields(job: Json) -> Json:
    """Return the optional fields of a status."""
    request, found = job["request"], {}
    found.update({name: request[name] for name in ("effort", "mode") if name in request})
    if job.get("message"):
        found["message"] = job["message"]
    if job["stop"]:
        valid_so_far = is_valid(request.get("schema"), job["partial"])
        found.update(stopReason=job["stop"], partial=job["partial"], partialSchemaValid=valid_so_far)
    return found
