# SPDX-License-Identifier: Apache-2.0
"""The team: credits, tokens, queue, concurrency, and threat protection policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webdata_sandbox.reference.prices import TOKENS_PER_CREDIT

from .call import Reply
from .endpoint import Endpoint
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call
    from .extract import Extract
    from .page_jobs import PageJobs

KEY_NAME = "Default"
POLICY = "/v2/team/threat-protection"
DEFAULT_POLICY: Json = {
    "mode": "off",
    "riskScoreThreshold": 75,
    "blacklist": [],
    "whitelist": [],
    "blockedTlds": [],
    "failurePolicy": "closed",
    "allowRequestOverrides": True,
}


class Team:
    """Handles requests under ``/v2/team``, except the activity, and the concurrency check."""

    def __init__(self, core: Core, page_jobs: Sequence[PageJobs], extract: Extract) -> None:
        self._core, self._page_jobs, self._extract = core, page_jobs, extract

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("GET", "/v2/team/credit-usage", self.credit_usage, "account"),
            Endpoint("GET", "/v2/team/credit-usage/historical", self.credit_history, "account"),
            Endpoint("GET", "/v2/team/token-usage", self.token_usage, "account"),
            Endpoint("GET", "/v2/team/token-usage/historical", self.token_history, "account"),
            Endpoint("GET", "/v2/team/queue-status", self.queue_status, "account"),
            Endpoint("GET", "/v2/concurrency-check", self.concurrency, "crawl-status"),
            Endpoint("GET", POLICY, self.policy, "account"),
            Endpoint("PUT", POLICY, self.replace_policy, "account"),
        ]

    async def credit_usage(self, _: Call) -> Reply:
        """Return the credit balance."""
        return Reply(200, {"success": True, "data": self._core.credits.usage()})

    async def credit_history(self, call: Call) -> Reply:
        """Return the used credits by period."""
        name = "creditsUsed" if self._core.quirks.on("history-credits-used") else "totalCredits"
        used = self._core.credits.used
        return Reply(200, {"success": True, "periods": [self._period(call, name, used)]})

    async def token_usage(self, _: Call) -> Reply:
        """Return the balance in tokens."""
        usage = self._core.credits.usage()
        data = {
            "remainingTokens": usage["remainingCredits"] * TOKENS_PER_CREDIT,
            "planTokens": usage["planCredits"] * TOKENS_PER_CREDIT,
            "billingPeriodStart": usage["billingPeriodStart"],
            "billingPeriodEnd": usage["billingPeriodEnd"],
        }
        return Reply(200, {"success": True, "data": data})

    async def token_history(self, call: Call) -> Reply:
        """Return the tokens used by extract jobs, by period."""
        used = sum(job["tokens"] for job in self._extract.all() if job["finishedAt"])
        name = "tokensUsed" if self._core.quirks.on("history-credits-used") else "totalTokens"
        return Reply(200, {"success": True, "periods": [self._period(call, name, used)]})

    async def queue_status(self, _: Call) -> Reply:
        """Return the numbers of active and waiting pages, at the top level instead of in ``data``."""
        active, waiting, ends = self._pages()
        body = {
            "success": True,
            "jobsInQueue": active + waiting,
            "activeJobsInQueue": active,
            "waitingJobsInQueue": waiting,
            "maxConcurrency": self._core.settings.concurrency,
            "mostRecentSuccess": max(ends, default=None),
        }
        return Reply(200, body)

    async def concurrency(self, _: Call) -> Reply:
        """Return the number of active pages and its limit."""
        limit = self._core.settings.concurrency
        return Reply(200, {"success": True, "concurrency": self._pages()[0], "maxConcurrency": limit})

    async def policy(self, _: Call) -> Reply:
        """Return the threat protection policy."""
        self._core.settings.require_entitlement("threatProtection")
        stored = self._core.store.get("meta", "threat-policy")
        policy = {**DEFAULT_POLICY, "configured": stored is not None, "updatedAt": None, **(stored or {})}
        return Reply(200, {"success": True, "data": policy})

    async def replace_policy(self, call: Call) -> Reply:
        """Replace the whole policy. Omitted fields get their defaults."""
        self._core.settings.require_entitlement("threatProtection")
        body = valid("team.threat-protection", call.body)
        self._core.store.put("meta", "threat-policy", {**body, "updatedAt": self._core.clock.iso()})
        return await self.policy(call)

    def _pages(self) -> tuple[int, int, list[str]]:
        """Return the numbers of active and waiting pages, and the completion times of jobs."""
        active = waiting = 0
        ends: list[str] = []
        for jobs in self._page_jobs:
            for job in jobs.all():
                if job["finishedAt"] is not None:
                    ends.extend([job["finishedAt"]] if job["status"] == "completed" else [])
                    continue
                now = min(jobs.waiting(job), jobs.width(job))
                active += now
                waiting += jobs.waiting(job) - now
        spare = max(0, active - self._core.settings.concurrency)  # the sandbox runs jobs independently
        return active - spare, waiting + spare, ends

    def _period(self, call: Call, name: str, used: int) -> Json:
        usage = self._core.credits.usage()
        by_key = call.query.get("byApiKey") == "true"
        return {
            "startDate": usage["billingPeriodStart"],
            "endDate": usage["billingPeriodEnd"],
            "apiKey": KEY_NAME if by_key else None,
            name: used,
        }
