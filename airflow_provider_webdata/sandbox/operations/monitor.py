"""The monitor operations: create, list, get, update, delete, run, and reading checks (supplement 13)."""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from airflow_provider_webdata.sandbox.reference import schedule as timetable
from airflow_provider_webdata.sandbox.reference.rules import NEEDS_GOAL, check, with_scheme
from airflow_provider_webdata.sandbox.reference.wire import (
    Call,
    Issue,
    Json,
    Reply,
    ServiceError,
    whole_number,
)
from airflow_provider_webdata.sandbox.state.credits import check_estimate

from .validation import settled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.sandbox.service import Sandbox

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
OWN_FIELDS = ("name", "judgeEnabled", "retentionDays")


class Monitors:
    """Answers all calls under ``/v2/monitor``."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._store = sandbox.store

    async def create(self, call: Call) -> Reply:
        """``POST /v2/monitor``."""
        body = self._valid("monitor.create", call.body)
        self._sandbox.credits.require()
        now = self._sandbox.clock.iso()
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
            "webhook": _webhook(body.get("webhook")),
            "retentionDays": body.get("retentionDays", 30),
            "estimatedCreditsPerMonth": None,
            "lastCheckSummary": None,
            "createdAt": now,
            "updatedAt": now,
        }
        monitor["schedule"] = self._schedule(body["schedule"], monitor["id"])
        _subscriptions(monitor)
        monitor["estimatedCreditsPerMonth"] = self._estimate(monitor)
        monitor["nextRunAt"] = self._sandbox.checks.next_run(monitor)
        self._store.put("monitor", monitor["id"], monitor)
        self._sandbox.replica.note(monitor["id"], None)
        self._sandbox.checks.plan(monitor)
        return self._answer(monitor)

    async def list(self, call: Call) -> Reply:
        """``GET /v2/monitor``: newest first, without the deleted ones."""
        limit, offset = _number(call.query, "limit", 25, 1, 100), _number(call.query, "offset", 0, 0)
        shown = []
        for monitor in reversed(self._store.list("monitor")):
            seen = self._sandbox.replica.see(monitor["id"], monitor)
            if seen is not None and seen["status"] != "deleted":
                shown.append(self._shown(seen))
        return Reply(200, {"success": True, "data": shown[offset : offset + limit]})

    async def get(self, call: Call) -> Reply:
        """``GET /v2/monitor/{id}``."""
        key = call.params["id"]
        monitor = self._sandbox.replica.see(key, self._store.get("monitor", key))
        if monitor is None or monitor["status"] == "deleted":
            raise ServiceError(404, "Monitor not found")
        return self._answer(monitor)

    async def update(self, call: Call) -> Reply:
        """``PATCH /v2/monitor/{id}``."""
        before = self._stored(call)
        body = self._valid("monitor.update", call.body)
        self._sandbox.credits.require()
        monitor = copy.deepcopy(before)
        monitor.update({name: body[name] for name in OWN_FIELDS if name in body})
        if "goal" in body:
            self._set_goal(monitor, body)
        if "targets" in body:
            monitor["targets"] = [_normal_target(target) for target in body["targets"]]
        if "notification" in body:
            monitor["notification"] = _notification(monitor["notification"], body["notification"])
        if "webhook" in body:
            monitor["webhook"] = _webhook(body["webhook"])
        _subscriptions(monitor)
        searches = any(target["type"] == "search" for target in monitor["targets"])
        if searches and not monitor["goal"] and monitor["judgeEnabled"]:
            raise ServiceError(400, NEEDS_GOAL, code="BAD_REQUEST")
        self._set_schedule(monitor, body)
        monitor["estimatedCreditsPerMonth"] = self._estimate(monitor)
        monitor["updatedAt"] = self._sandbox.clock.iso()
        with self._store.transaction():
            self._store.put("monitor", monitor["id"], monitor)
            if "targets" in body:
                kept = {target["id"] for target in monitor["targets"]}
                for target in before["targets"]:
                    if target["id"] not in kept:
                        self._sandbox.checks.forget(target["id"])
        self._sandbox.replica.note(monitor["id"], before)
        self._sandbox.checks.plan(monitor)
        return self._answer(monitor)

    def _set_goal(self, monitor: Json, body: Json) -> None:
        monitor["goal"] = (body["goal"] or "").strip() or None
        if (
            "judgeEnabled" not in body
            and monitor["goal"]
            and not self._sandbox.quirks.on("patch-keeps-judge")
        ):
            monitor["judgeEnabled"] = True

    def _set_schedule(self, monitor: Json, body: Json) -> None:
        resumed = body.get("status") == "active" and monitor["status"] == "paused"
        monitor["status"] = body.get("status", monitor["status"])
        if "schedule" in body:
            monitor["schedule"] = self._schedule(body["schedule"], monitor["id"])
            monitor["nextRunAt"] = self._sandbox.checks.next_run(monitor)
        elif resumed and not self._sandbox.quirks.on("resume-keeps-next-run"):
            monitor["nextRunAt"] = self._sandbox.checks.next_run(monitor)

    async def delete(self, call: Call) -> Reply:
        """``DELETE /v2/monitor/{id}``: a soft delete."""
        monitor = self._stored(call)
        self._sandbox.replica.note(monitor["id"], copy.deepcopy(monitor))
        monitor.update(status="deleted", nextRunAt=None, updatedAt=self._sandbox.clock.iso())
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
        self._sandbox.credits.require()
        started = self._sandbox.checks.start(monitor, "manual")
        self._sandbox.replica.note(started["id"], None)
        return Reply(200, {"success": True, "id": started["id"], "data": self._shown_check(started)})

    async def list_checks(self, call: Call) -> Reply:
        """``GET /v2/monitor/{id}/checks``: newest first, without pages."""
        monitor = self._stored(call)
        limit, offset = _number(call.query, "limit", 25, 1, 100), _number(call.query, "offset", 0, 0)
        wanted = _choice(call.query, "status", CHECK_STATES)
        shown = []
        for record in reversed(self._store.list("check", parent=monitor["id"])):
            seen = self._sandbox.replica.see(record["id"], record)
            if seen is not None and wanted in (None, seen["status"]):
                shown.append(self._shown_check(seen))
        return Reply(200, {"success": True, "data": shown[offset : offset + limit]})

    async def get_check(self, call: Call) -> Reply:
        """``GET /v2/monitor/{id}/checks/{checkId}``: with its pages, oldest first, a part at a time."""
        monitor = self._stored(call)
        stored = self._store.get("check", call.params["check"])
        record = self._sandbox.replica.see(call.params["check"], stored)
        if record is None or record["monitorId"] != monitor["id"]:
            raise ServiceError(404, "Check not found")
        limit, skip = _number(call.query, "limit", 25, 1, 100), _number(call.query, "skip", 0, 0)
        wanted = _choice(call.query, "status", PAGE_STATES)
        pages = [
            page
            for page in self._store.list("result", parent=record["id"])
            if wanted in (None, page["status"])
        ]
        quirks = self._sandbox.quirks
        first = max(0, skip - 1) if quirks.on("repeated-pages") and skip else skip
        data = {
            **self._shown_check(record),
            "pages": [self._shown_page(page) for page in pages[first : skip + limit]],
        }
        answer: Json = {"success": True, "data": data}
        if skip + limit < len(pages):
            query = {"skip": skip + limit, "limit": limit, **({"status": wanted} if wanted else {})}
            origin = "http://internal.invalid:8080" if quirks.on("next-wrong-host") else call.origin
            answer["next"] = data["next"] = f"{origin}{call.path}?{urlencode(query)}"
        elif quirks.on("next-null"):
            answer["next"] = data["next"] = None
        return Reply(200, answer)

    def _stored(self, call: Call) -> Json:
        monitor = self._store.get("monitor", call.params["id"])
        if monitor is None or monitor["status"] == "deleted":
            raise ServiceError(404, "Monitor not found")
        return monitor

    def _valid(self, operation: str, body: Any) -> Json:
        quirks = self._sandbox.quirks
        issues = check(operation, body)
        if quirks.on("http-webhooks"):
            issues = [issue for issue in issues if issue.message != "Webhook URL must be https"]
        if not issues and quirks.on("origin-refused") and "origin" in body:
            issues = [Issue((), "Unrecognized key(s) in object: 'origin'", "unrecognized_keys")]
        return settled(body, issues)

    def _schedule(self, given: Json, monitor_id: str) -> Json:
        cron = given.get("cron") or timetable.cron_of_text(given["text"])
        if "text" in given and self._sandbox.quirks.on("schedule-spread"):
            minute, rest = cron.split(" ", 1)
            offset = uuid.UUID(monitor_id).int % (int(minute[2:]) if minute.startswith("*/") else 60)
            cron = f"{offset}-59/{minute[2:]} {rest}" if minute.startswith("*/") else f"{offset} {rest}"
        return {"cron": cron, "timezone": given.get("timezone", "UTC")}

    def _estimate(self, monitor: Json) -> int:
        cron = self._sandbox.checks.cron(monitor)
        runs = cron.runs_in_30_days(self._sandbox.clock.datetime().date())
        return runs * check_estimate(monitor)

    def _answer(self, monitor: Json) -> Reply:
        return Reply(200, {"success": True, "data": self._shown(monitor)})

    def _shown(self, monitor: Json) -> Json:
        if self._sandbox.quirks.on("unknown-states"):
            return {**monitor, "status": "hibernating"}
        return monitor

    def _shown_check(self, record: Json) -> Json:
        if self._sandbox.quirks.on("unknown-states"):
            return {**record, "status": "reconciled" if record["finishedAt"] else "warming_up"}
        return record

    def _shown_page(self, page: Json) -> Json:
        if self._sandbox.quirks.on("diff-string") and page["diff"]:
            page = {**page, "diff": page["diff"].get("text", "")}
        if self._sandbox.quirks.on("unknown-states"):
            page = {**page, "status": "moved"}
        return page


def _normal_target(given: Json) -> Json:
    target = {"id": given.get("id") or str(uuid.uuid4()), "type": given["type"]}
    if given["type"] == "scrape":
        urls = given.get("urls") or [given["url"]]
        target.update(urls=[with_scheme(url) for url in urls], scrapeOptions=given.get("scrapeOptions", {}))
    elif given["type"] == "crawl":
        target.update(url=with_scheme(given["url"]), crawlOptions=given.get("crawlOptions", {}))
        target["scrapeOptions"] = given.get("scrapeOptions", {})
    else:
        target.update(
            queries=given["queries"],
            searchWindow=given.get("searchWindow", "24h"),
            maxResults=given.get("maxResults", 10),
        )
        for name in ("includeDomains", "excludeDomains"):
            if given.get(name):
                target[name] = [domain.strip().lower() for domain in given[name]]
    return target


def _notification(before: Json, given: Json) -> Json:
    email = {"enabled": False, "includeDiffs": False, "recipients": []}
    merged = {**before, **given}
    return {**merged, "email": {**email, **merged.get("email", {})}}


def _webhook(given: Any) -> Json | None:
    return {"url": given} if isinstance(given, str) else given


def _subscriptions(monitor: Json) -> None:
    """State the recipients as unconfirmed: no sandbox sends mail."""
    recipients = monitor["notification"]["email"]["recipients"]
    monitor.pop("emailRecipientSubscriptions", None)
    if recipients:
        monitor["emailRecipientSubscriptions"] = [
            {"email": address, "status": "pending", "source": "opt_in", "confirmationEmailSent": False}
            for address in recipients
        ]


def _number(query: Mapping[str, str], name: str, default: int, low: int, high: int | None = None) -> int:
    text = query.get(name)
    if text is None:
        return default
    number = whole_number(text)
    if number is None or number < low or (high is not None and number > high):
        raise ServiceError(400, "Invalid pagination", code="BAD_REQUEST")
    return number


def _choice(query: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str | None:
    text = query.get(name)
    if text is not None and text not in allowed:
        raise ServiceError(400, f"Invalid {name}", code="BAD_REQUEST")
    return text
