# SPDX-License-Identifier: Apache-2.0
"""Monitors: create, list, get, update, delete, and run them, and read their checks."""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING, Any

from webdata_sandbox.reference import schedule as timetable
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.prices import check_estimate
from webdata_sandbox.reference.rules import NEEDS_GOAL, check
from webdata_sandbox.reference.urls import with_scheme
from webdata_sandbox.reference.wire import Issue, Json, webhook_object

from .call import Call, Reply
from .endpoint import Endpoint
from .paging import next_link, page_number
from .validation import without_issues

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webdata_sandbox.engine.check_runner import CheckRunner
    from webdata_sandbox.state.core import Core


PAGE_STATES = ("same", "new", "changed", "removed", "error")
CHECK_STATES = (
    "queued",
    "running",
    "completed",
    "partial",
    "failed",
    "skipped_overlap",
    "skipped_no_credits",
)
PLAIN_FIELDS = ("name", "judgeEnabled", "retentionDays")


class Monitor:
    """Handles requests under ``/v2/monitor``."""

    def __init__(self, core: Core, checks: CheckRunner) -> None:
        self._core, self._store, self._checks = core, core.store, checks

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("POST", "/v2/monitor", self.create, "crawl"),
            Endpoint("GET", "/v2/monitor", self.list_monitors, "crawl-status"),
            Endpoint("GET", "/v2/monitor/{id}", self.get, "crawl-status"),
            Endpoint("PATCH", "/v2/monitor/{id}", self.update, "crawl"),
            Endpoint("DELETE", "/v2/monitor/{id}", self.delete, "crawl-status"),
            Endpoint("POST", "/v2/monitor/{id}/run", self.run, "crawl"),
            Endpoint("GET", "/v2/monitor/{id}/checks", self.list_checks, "crawl-status"),
            Endpoint("GET", "/v2/monitor/{id}/checks/{check}", self.get_check, "crawl-status"),
        ]

    async def create(self, call: Call) -> Reply:
        """``POST /v2/monitor``."""
        body = self._valid("monitor.create", call.body)
        self._core.credits.require()
        now = self._core.clock.iso()
        goal = (body.get("goal") or "").strip() or None
        monitor: Json = {
            "id": str(uuid.uuid4()),
            "name": body["name"],
            "status": "active",
            "schedule": {},
            "nextRunAt": None,
            "lastRunAt": None,
            "currentCheckId": None,
            "targets": [_normal_target(target) for target in body["targets"]],
            "goal": goal,
            "judgeEnabled": body.get("judgeEnabled", goal is not None),
            "notification": _notification({}, body.get("notification", {})),
            "webhook": webhook_object(body.get("webhook")),
            "retentionDays": body.get("retentionDays", 30),
            "estimatedCreditsPerMonth": None,
            "lastCheckSummary": None,
            "createdAt": now,
            "updatedAt": now,
        }
        monitor["schedule"] = self._schedule(body["schedule"], monitor["id"])
        _subscriptions(monitor)
        monitor["estimatedCreditsPerMonth"] = self._estimate(monitor)
        monitor["nextRunAt"] = self._checks.next_run(monitor)
        self._store.put("monitor", monitor["id"], monitor)
        self._core.replica.note(monitor["id"], None)
        self._checks.plan(monitor)
        return self._answer(monitor)

    async def list_monitors(self, call: Call) -> Reply:
        """``GET /v2/monitor``: newest first, without deleted monitors."""
        limit, offset = _paging(call.query, "offset")
        shown = []
        for monitor in reversed(self._store.list("monitor")):
            seen = self._core.replica.see(monitor["id"], monitor)
            if seen is not None and seen["status"] != "deleted":
                shown.append(self._shown(seen))
        return Reply(200, {"success": True, "data": shown[offset : offset + limit]})

    async def get(self, call: Call) -> Reply:
        """``GET /v2/monitor/{id}``."""
        key = call.params["id"]
        monitor = self._core.replica.see(key, self._store.get("monitor", key))
        if monitor is None or monitor["status"] == "deleted":
            raise ServiceError(404, "Monitor not found")
        return self._answer(monitor)

    async def update(self, call: Call) -> Reply:
        """``PATCH /v2/monitor/{id}``."""
        before = self._stored(call)
        body = self._valid("monitor.update", call.body)
        self._core.credits.require()
        monitor = copy.deepcopy(before)
        monitor.update({name: body[name] for name in PLAIN_FIELDS if name in body})
        if "goal" in body:
            self._set_goal(monitor, body)
        if "targets" in body:
            monitor["targets"] = [_normal_target(target) for target in body["targets"]]
        if "notification" in body:
            monitor["notification"] = _notification(monitor["notification"], body["notification"])
        if "webhook" in body:
            monitor["webhook"] = webhook_object(body["webhook"])
        _subscriptions(monitor)
        searches = any(target["type"] == "search" for target in monitor["targets"])
        if searches and not monitor["goal"] and monitor["judgeEnabled"]:
            raise ServiceError(400, NEEDS_GOAL, code="BAD_REQUEST")
        self._set_schedule(monitor, body)
        monitor["estimatedCreditsPerMonth"] = self._estimate(monitor)
        monitor["updatedAt"] = self._core.clock.iso()
        with self._store.transaction():
            self._store.put("monitor", monitor["id"], monitor)
            if "targets" in body:
                kept = {target["id"] for target in monitor["targets"]}
                for target in before["targets"]:
                    if target["id"] not in kept:
                        self._checks.forget(target["id"])
        self._core.replica.note(monitor["id"], before)
        self._checks.plan(monitor)
        return self._answer(monitor)

    def _set_goal(self, monitor: Json, body: Json) -> None:
        monitor["goal"] = (body["goal"] or "").strip() or None
        if "judgeEnabled" not in body and monitor["goal"] and not self._core.quirks.on("patch-keeps-judge"):
            monitor["judgeEnabled"] = True

    def _set_schedule(self, monitor: Json, body: Json) -> None:
        resumed = body.get("status") == "active" and monitor["status"] == "paused"
        monitor["status"] = body.get("status", monitor["status"])
        if "schedule" in body:
            monitor["schedule"] = self._schedule(body["schedule"], monitor["id"])
            monitor["nextRunAt"] = self._checks.next_run(monitor)
        elif resumed and not self._core.quirks.on("resume-keeps-next-run"):
            monitor["nextRunAt"] = self._checks.next_run(monitor)

    async def delete(self, call: Call) -> Reply:
        """``DELETE /v2/monitor/{id}``: a soft delete."""
        monitor = self._stored(call)
        self._core.replica.note(monitor["id"], copy.deepcopy(monitor))
        monitor.update(status="deleted", nextRunAt=None, updatedAt=self._core.clock.iso())
        self._store.put("monitor", monitor["id"], monitor)
        return Reply(200, {"success": True})

    async def run(self, call: Call) -> Reply:
        """``POST /v2/monitor/{id}/run``."""
        monitor = self._stored(call)
        if monitor["status"] == "paused":
            raise ServiceError(409, "Monitor is paused")
        if monitor["currentCheckId"]:
            raise ServiceError(
                409, "A monitor check is already running", extra={"checkId": monitor["currentCheckId"]}
            )
        self._core.credits.require()
        started = self._checks.start(monitor, "manual")
        self._core.replica.note(started["id"], None)
        return Reply(200, {"success": True, "id": started["id"], "data": self._shown_check(started)})

    async def list_checks(self, call: Call) -> Reply:
        """``GET /v2/monitor/{id}/checks``: newest first, without pages."""
        monitor = self._stored(call)
        limit, offset = _paging(call.query, "offset")
        wanted = _choice(call.query, "status", CHECK_STATES)
        shown = []
        for record in reversed(self._store.list("check", parent=monitor["id"])):
            seen = self._core.replica.see(record["id"], record)
            if seen is not None and wanted in (None, seen["status"]):
                shown.append(self._shown_check(seen))
        return Reply(200, {"success": True, "data": shown[offset : offset + limit]})

    async def get_check(self, call: Call) -> Reply:
        """``GET /v2/monitor/{id}/checks/{checkId}``: with its pages, oldest first and paginated."""
        monitor = self._stored(call)
        stored = self._store.get("check", call.params["check"])
        record = self._core.replica.see(call.params["check"], stored)
        if record is None or record["monitorId"] != monitor["id"]:
            raise ServiceError(404, "Check not found")
        limit, skip = _paging(call.query, "skip")
        wanted = _choice(call.query, "status", PAGE_STATES)
        pages = [
            page
            for page in self._store.list("result", parent=record["id"])
            if wanted in (None, page["status"])
        ]
        quirks = self._core.quirks
        first = max(0, skip - 1) if quirks.on("repeated-pages") and skip else skip
        data = {
            **self._shown_check(record),
            "pages": [self._shown_page(page) for page in pages[first : skip + limit]],
        }
        answer: Json = {"success": True, "data": data}
        if skip + limit < len(pages):
            query = {"skip": skip + limit, "limit": limit, **({"status": wanted} if wanted else {})}
            answer["next"] = data["next"] = next_link(call, quirks, query)
        elif quirks.on("next-null"):
            answer["next"] = data["next"] = None
        return Reply(200, answer)

    def _stored(self, call: Call) -> Json:
        monitor = self._store.get("monitor", call.params["id"])
        if monitor is None or monitor["status"] == "deleted":
            raise ServiceError(404, "Monitor not found")
        return monitor

    def _valid(self, operation: str, body: Any) -> Json:
        quirks = self._core.quirks
        issues = check(operation, body)
        if not issues and quirks.on("origin-refused") and "origin" in body:
            issues = [Issue((), 'Unrecognized key: "origin"', "unrecognized_keys", {"keys": ["origin"]})]
        return without_issues(body, issues)

    def _schedule(self, schedule: Json, monitor_id: str) -> Json:
        cron = schedule.get("cron") or timetable.cron_of_text(schedule["text"])
        if "text" in schedule and self._core.quirks.on("schedule-spread"):
            minute, rest = cron.split(" ", 1)
            offset = uuid.UUID(monitor_id).int % (int(minute[2:]) if minute.startswith("*/") else 60)
            cron = f"{offset}-59/{minute[2:]} {rest}" if minute.startswith("*/") else f"{offset} {rest}"
        return {"cron": cron, "timezone": schedule.get("timezone", "UTC")}

    def _estimate(self, monitor: Json) -> int:
        cron = self._checks.cron(monitor)
        runs = cron.runs_in_30_days(self._core.clock.datetime().date())
        return runs * check_estimate(monitor)

    def _answer(self, monitor: Json) -> Reply:
        return Reply(200, {"success": True, "data": self._shown(monitor)})

    def _shown(self, monitor: Json) -> Json:
        if self._core.quirks.on("unknown-states"):
            return {**monitor, "status": "hibernating"}
        return monitor

    def _shown_check(self, record: Json) -> Json:
        if self._core.quirks.on("unknown-states"):
            return {**record, "status": "reconciled" if record["finishedAt"] else "warming_up"}
        return record

    def _shown_page(self, page: Json) -> Json:
        if self._core.quirks.on("diff-string") and page["diff"]:
            page = {**page, "diff": page["diff"].get("text", "")}
        if self._core.quirks.on("unknown-states"):
            page = {**page, "status": "moved"}
        return page


def _normal_target(spec: Json) -> Json:
    target = {"id": spec.get("id") or str(uuid.uuid4()), "type": spec["type"]}
    if spec["type"] == "scrape":
        urls = spec.get("urls") or [spec["url"]]
        target.update(urls=[with_scheme(url) for url in urls], scrapeOptions=spec.get("scrapeOptions", {}))
    elif spec["type"] == "crawl":
        target.update(url=with_scheme(spec["url"]), crawlOptions=spec.get("crawlOptions", {}))
        target["scrapeOptions"] = spec.get("scrapeOptions", {})
    else:
        target.update(
            queries=spec["queries"],
            searchWindow=spec.get("searchWindow", "24h"),
            maxResults=spec.get("maxResults", 10),
        )
        for name in ("includeDomains", "excludeDomains"):
            if spec.get(name):
                target[name] = [domain.strip().lower() for domain in spec[name]]
    return target


def _notification(before: Json, changes: Json) -> Json:
    email = {"enabled": False, "includeDiffs": False, "recipients": []}
    merged = {**before, **changes}
    return {**merged, "email": {**email, **merged.get("email", {})}}


def _subscriptions(monitor: Json) -> None:
    """List the recipients as unconfirmed, because the sandbox sends no email."""
    recipients = monitor["notification"]["email"]["recipients"]
    monitor.pop("emailRecipientSubscriptions", None)
    if recipients:
        monitor["emailRecipientSubscriptions"] = [
            {"email": address, "status": "pending", "source": "opt_in", "confirmationEmailSent": False}
            for address in recipients
        ]


def _paging(query: Mapping[str, str], first: str) -> tuple[int, int]:
    """Return the limit and the offset of a query."""
    limit = page_number(query, "limit", 1, 100, code="BAD_REQUEST")
    return limit or 25, page_number(query, first, 0, code="BAD_REQUEST") or 0


def _choice(query: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str | None:
    text = query.get(name)
    if text is not None and text not in allowed:
        raise ServiceError(400, f"Invalid {name}", code="BAD_REQUEST")
    return text
