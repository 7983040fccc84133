"""What a team can ask about itself: credits, tokens, its queue, and what it did of late (supplement 14)."""

from __future__ import annotations

import base64
import binascii
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.config import ACTIVITIES
from airflow_provider_webdata.sandbox.reference.wire import Json, Reply, ServiceError, whole_number
from airflow_provider_webdata.sandbox.state.clock import from_iso, iso

from .extract import TOKENS_PER_CREDIT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow_provider_webdata.sandbox.reference.wire import Call
    from airflow_provider_webdata.sandbox.service import Sandbox

    Handler = Callable[[Call], Awaitable[Reply]]

REMEMBERED = timedelta(hours=24)
KEY_NAME = "Default"


class Team:
    """Answers the calls under ``/v2/team``, and remembers what was started."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._store, self._clock = sandbox.store, sandbox.clock

    def noting(self, endpoint: str, field: str | None, handler: Handler) -> Handler:
        """Return a handler that also notes each successful call in the team's activity.

        :param endpoint: the activity's name.
        :param field: of the body: what the call is about.
        """

        async def noted(call: Call) -> Reply:
            reply = await handler(call)
            if reply.status == 200 and reply.body and reply.body.get("success") is not False:
                self._note(endpoint, call.body.get(field) if field else None, reply.body)
            return reply

        return noted

    async def credit_usage(self, _: Call) -> Reply:
        """Tell the balance."""
        return Reply(200, {"success": True, "data": self._sandbox.credits.usage()})

    async def credit_history(self, call: Call) -> Reply:
        """Tell what was used in each period."""
        name = "creditsUsed" if self._sandbox.quirks.on("history-credits-used") else "totalCredits"
        used = self._sandbox.credits.used
        return Reply(200, {"success": True, "periods": [self._period(call, name, used)]})

    async def token_usage(self, _: Call) -> Reply:
        """Tell the balance in tokens."""
        usage = self._sandbox.credits.usage()
        data = {
            "remainingTokens": usage["remainingCredits"] * TOKENS_PER_CREDIT,
            "planTokens": usage["planCredits"] * TOKENS_PER_CREDIT,
            "billingPeriodStart": usage["billingPeriodStart"],
            "billingPeriodEnd": usage["billingPeriodEnd"],
        }
        return Reply(200, {"success": True, "data": data})

    async def token_history(self, call: Call) -> Reply:
        """Tell the tokens that extract jobs used in each period."""
        used = sum(job["tokens"] for job in self._sandbox.extracting.all() if job["finishedAt"])
        name = "tokensUsed" if self._sandbox.quirks.on("history-credits-used") else "totalTokens"
        return Reply(200, {"success": True, "periods": [self._period(call, name, used)]})

    async def queue_status(self, _: Call) -> Reply:
        """Tell how many pages are being scraped, and how many wait; at the top level, without ``data``."""
        active, waiting, ends = self._pages()
        body = {
            "success": True,
            "jobsInQueue": active + waiting,
            "activeJobsInQueue": active,
            "waitingJobsInQueue": waiting,
            "maxConcurrency": self._sandbox.concurrency,
            "mostRecentSuccess": max(ends, default=None),
        }
        return Reply(200, body)

    async def concurrency(self, _: Call) -> Reply:
        """Tell how many pages are being scraped."""
        limit = self._sandbox.concurrency
        return Reply(200, {"success": True, "concurrency": self._pages()[0], "maxConcurrency": limit})

    def _pages(self) -> tuple[int, int, list[str]]:
        """Return how many pages of jobs are being scraped, how many wait, and when jobs were completed."""
        active = waiting = 0
        ends: list[str] = []
        for jobs in (self._sandbox.crawls, self._sandbox.batches):
            for job in jobs.all():
                if job["finishedAt"] is not None:
                    ends.extend([job["finishedAt"]] if job["status"] == "completed" else [])
                    continue
                now = min(jobs.waiting(job), jobs.width(job))
                active += now
                waiting += jobs.waiting(job) - now
        spare = max(0, active - self._sandbox.concurrency)  # jobs do not wait for each other here
        return active - spare, waiting + spare, ends

    async def activity(self, call: Call) -> Reply:
        """List what was started in the last 24 hours, newest first."""
        query = call.query
        endpoint = query.get("endpoint")
        if endpoint is not None and endpoint not in ACTIVITIES:
            raise ServiceError(400, f"Invalid endpoint filter: {endpoint!r}")
        limit = whole_number(query.get("limit", "50"))
        if limit is None or not 1 <= limit <= 100:
            raise ServiceError(400, "Invalid limit: it must be between 1 and 100")
        skip = _skip(query.get("cursor"))
        oldest = self._clock.datetime() - REMEMBERED
        found = [
            item
            for item in reversed(self._store.list("activity"))
            if from_iso(item["created_at"]) > oldest and endpoint in (None, item["endpoint"])
        ]
        # A cursor counts from the oldest, so what is started meanwhile does not move it.
        end = len(found) if skip is None else min(skip, len(found))
        shown = found[len(found) - end :][:limit]
        left = end - len(shown)
        cursor = base64.urlsafe_b64encode(str(left).encode()).decode() if left else None
        return Reply(200, {"success": True, "data": shown, "cursor": cursor, "has_more": left > 0})

    def _period(self, call: Call, name: str, used: int) -> Json:
        usage = self._sandbox.credits.usage()
        by_key = call.query.get("byApiKey") == "true"
        return {
            "startDate": usage["billingPeriodStart"],
            "endDate": usage["billingPeriodEnd"],
            "apiKey": KEY_NAME if by_key else None,
            name: used,
        }

    def _note(self, endpoint: str, target: object, answer: Json) -> None:
        if isinstance(target, list):
            target = target[0] if target else None
        data = answer.get("data")
        metadata = data.get("metadata", {}) if isinstance(data, dict) else {}
        item = {
            "id": answer.get("id") or metadata.get("scrapeId") or str(uuid.uuid4()),
            "endpoint": endpoint,
            "api_version": "v2",
            "created_at": iso(self._clock.datetime()),
            "target": target,
        }
        self._store.put("activity", str(item["id"]), item)


def _skip(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    try:
        count = whole_number(base64.urlsafe_b64decode(cursor.encode()).decode())
    except (ValueError, binascii.Error):
        count = None
    if count is None:
        raise ServiceError(400, "Invalid cursor")
    return count
