# SPDX-License-Identifier: Apache-2.0
"""Feedback on the results of earlier calls."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.rules import check
from webdata_sandbox.reference.timestamps import from_iso

from .call import Reply
from .endpoint import Endpoint
from .validation import details_of

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call

WINDOW = timedelta(seconds=120)
REFUND = 1
DAILY_CAP = 10
WEBSITE_CAP, PROVIDERS_CAP = 10, 100
"""Maximum credits refunded per UTC day for feedback on data providers: per website, and in total."""


class Feedback:
    """Handles ``POST /v2/search/{jobId}/feedback`` and ``POST /v2/feedback``."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("POST", "/v2/search/{job_id}/feedback", self.on_search, "account"),
            Endpoint("POST", "/v2/feedback", self.on_any, "account"),
        ]

    async def on_search(self, call: Call) -> Reply:
        """Record feedback on a search."""
        _valid("search.feedback", call.body)
        return self._record("search", call.params["job_id"], call.body)

    async def on_any(self, call: Call) -> Reply:
        """Record feedback on a search, scrape, parse, or map, or on the data providers of a website."""
        is_of_website = isinstance(call.body, dict) and call.body.get("endpoint") == "alexandria"
        if is_of_website and self._core.settings.profile.providers:
            return self._record_website(call.body)
        _valid("feedback", call.body)
        return self._record(call.body["endpoint"], call.body["jobId"], call.body)

    def _record(self, endpoint: str, job_id: str, body: Json) -> Reply:
        core = self._core
        if not core.settings.profile.feedback:
            raise _refusal(503, "Feedback needs database authentication.", "DB_DISABLED")
        job = self._job(endpoint, job_id)
        if job is None:
            code = "SEARCH_NOT_FOUND" if endpoint == "search" else "JOB_NOT_FOUND"
            raise _refusal(404, f"{endpoint} job not found for this team.", code)
        earlier = core.store.get("feedback", job_id)
        today = self._refunded_today()
        response: Json = {"success": True, "creditsRefundedToday": today, "dailyRefundCap": DAILY_CAP}
        if earlier is not None:
            warning = "Feedback was already submitted for this job; no additional refund issued."
            response.update(
                feedbackId=earlier["id"], creditsRefunded=0, alreadySubmitted=True, warning=warning
            )
            return Reply(200, response)
        if core.clock.datetime() - from_iso(job["created_at"]) > WINDOW:
            seconds = int(WINDOW.total_seconds())
            text = f"Feedback must be submitted within {seconds} seconds of the job."
            raise _refusal(409, text, "FEEDBACK_WINDOW_EXPIRED")
        refund = min(REFUND if endpoint == "search" else 0, DAILY_CAP - today)
        core.credits.spend(-refund)
        record = {"id": str(uuid.uuid4()), "refund": refund, "day": core.clock.iso()[:10], "body": body}
        core.store.put("feedback", job_id, record)
        response.update(feedbackId=record["id"], creditsRefunded=refund, creditsRefundedToday=today + refund)
        if today + refund >= DAILY_CAP:
            response["dailyCapReached"] = True
            response["warning"] = f"Daily refund cap of {DAILY_CAP} credits reached for this team (UTC day)."
        return Reply(200, response)

    def _record_website(self, body: Json) -> Reply:
        """Record feedback that has no job; its refunds are capped per website."""
        _valid("feedback.alexandria", body)
        core, today = self._core, self._core.clock.iso()[:10]
        website = urlsplit(body["requestedWebsite"]["url"]).hostname
        refunded = [item for item in core.store.list("provider_feedback") if item["day"] == today]
        team_refund = sum(item["refund"] for item in refunded)
        website_refund = sum(item["refund"] for item in refunded if item["website"] == website)
        refund = min(REFUND, WEBSITE_CAP - website_refund, PROVIDERS_CAP - team_refund)
        core.credits.spend(-refund)
        record = {"id": str(uuid.uuid4()), "refund": refund, "day": today, "website": website, "body": body}
        core.store.put("provider_feedback", record["id"], record)
        response: Json = {
            "success": True,
            "feedbackId": record["id"],
            "creditsRefunded": refund,
            "creditsRefundedToday": team_refund + refund,
            "dailyRefundCap": PROVIDERS_CAP,
        }
        if not refund:
            response["dailyCapReached"] = True
        return Reply(200, response)

    def _job(self, endpoint: str, job_id: str) -> Json | None:
        if endpoint == "parse":
            return self._core.store.get("parse", job_id)
        job = self._core.store.get("activity", job_id)
        return job if job is not None and job["endpoint"] == endpoint else None

    def _refunded_today(self) -> int:
        today = self._core.clock.iso()[:10]
        return sum(item["refund"] for item in self._core.store.list("feedback") if item["day"] == today)


def _valid(operation: str, body: Any) -> None:
    issues = check(operation, body)
    if issues:
        raise _refusal(400, "Invalid request body", "INVALID_BODY", details_of(issues))


def _refusal(status: int, text: str, code: str, details: Any = None) -> ServiceError:
    return ServiceError(status, text, details=details, extra={"feedbackErrorCode": code})
