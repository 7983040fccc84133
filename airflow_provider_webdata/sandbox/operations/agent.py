"""The agent operation: an autonomous run, played without a model.

Its steps are fixed when it starts: a search by the words of the prompt, unless it is kept to its addresses, then a
visit of each page. What it answers is what those pages state (see ``engine/structured_data.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from airflow_provider_webdata.sandbox.reference.errors import ServiceError, UnsupportedHereError
from airflow_provider_webdata.sandbox.reference.urls import canonical, with_scheme

from .call import Reply
from .endpoint import Endpoint
from .step_jobs import BALANCE, JobFailedError, StepJobs
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.sandbox.reference.wire import Json

    from .call import Call

COSTS = {"search": 2, "scrape": 5}
MAX_CREDITS = 2500
FOUND_PAGES = 3
DEFAULT_MODEL = "spark-1-pro"
NOT_PLAYED = ("threadId", "exchange")


class Agent(StepJobs):
    """Answers the calls about agent runs."""

    kind: ClassVar[str] = "agent"
    not_found: ClassVar[str] = "Agent job not found"

    def endpoints(self) -> list[Endpoint]:
        """Return the calls that are answered here."""
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
        for name in NOT_PLAYED:
            if name in body:
                raise UnsupportedHereError(f"go on with earlier runs ({name})")
        if body.get("mode") == "chat":
            raise UnsupportedHereError("hold a conversation (mode chat)")
        free = body.get("maxCredits", MAX_CREDITS) <= MAX_CREDITS and self._take_free_run()
        if not free:
            core.credits.require(BALANCE)
        job = self.begin(body, _steps(body), free=free)
        return Reply(200, {"success": True, "id": job["id"]})

    async def status(self, call: Call) -> Reply:
        """Answer with the state of a run; ``success`` stays true for a failed one."""
        job = self.find(call.params["id"])
        body: Json = {
            "success": True,
            "status": job["status"],
            "model": job["request"].get("model", DEFAULT_MODEL),
            "creditsUsed": 0 if job["free"] else job["spent"],
            "expiresAt": job["expiresAt"],
        }
        if job["status"] == "completed":
            body["data"] = job["data"]
        if job["status"] == "failed":
            body["error"] = job["error"]
        return Reply(200, body)

    async def cancel(self, call: Call) -> Reply:
        """Ask a run to stop; it does so at its next step."""
        job = self.find(call.params["id"])
        if job["finishedAt"] is not None:
            raise ServiceError(409, "Agent already finished")
        job["cancelling"] = True
        self._store.put(self.kind, job["id"], job)
        return Reply(200, {"success": True})

    def perform(self, job: Json, step: Json) -> None:
        """Search, or visit a page, unless that would cost more than the run may."""
        cost = COSTS[step["action"]]
        limit = job["request"].get("maxCredits", MAX_CREDITS)
        if job["spent"] + cost > limit:
            raise JobFailedError(f"The run reached its limit of {limit:g} credits.")
        job["spent"] += cost
        self._notify(job, "action", {"creditsUsed": job["spent"], **step})
        if step["action"] == "search":
            seen = {canonical(url) for url in job["request"].get("urls", [])}
            found = self._index.about(step["input"]["query"], FOUND_PAGES)
            job["steps"].extend(_visit(url) for url in found if url not in seen)
        else:
            self.visit(job, step["input"]["url"], {})

    def outcome(self, job: Json) -> Iterator[tuple[str, Json | None]]:
        """Yield the event of the end."""
        data: Json = {"creditsUsed": 0 if job["free"] else job["spent"]}
        if job["status"] == "completed":
            data["data"] = job["data"]
        yield job["status"], data

    def bill(self, job: Json) -> None:
        """Settle the run, unless it is one of the day's free ones."""
        if not job["free"]:
            super().bill(job)

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
