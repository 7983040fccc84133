# SPDX-License-Identifier: Apache-2.0
"""The checks of monitors: schedule, results, cost, and notifications."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from webdata_sandbox.reference import schedule as timetable
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.prices import check_estimate
from webdata_sandbox.reference.timestamps import from_iso, iso

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .target_runner import Finding, TargetRunner
    from .webhooks import Webhooks

NO_SUMMARY: Json = {"totalPages": 0, "same": 0, "changed": 0, "new": 0, "removed": 0, "error": 0}
OVERLAP = "Skipped: the previous check was still running"
OUT_OF_CREDITS = "Skipped: not enough credits to reserve for this check"
STALE_AFTER = 3600.0
STALE = "Monitor check exceeded the running timeout."
CHECK_FAULT = "The check failed because of the fault fail_check."


class CheckRunner:
    """Schedules and runs the checks of all monitors."""

    def __init__(self, core: Core, targets: TargetRunner, webhooks: Webhooks) -> None:
        self._core, self._targets, self._webhooks = core, targets, webhooks
        self._store, self._clock, self._agenda = core.store, core.clock, core.agenda

    def resume(self) -> None:
        """Resume the planned runs and unfinished checks of an earlier sandbox."""
        for monitor in self._store.list("monitor"):
            self.plan(monitor)
        for check in self._store.list("check"):
            if check["finishedAt"] is None:
                self._plan_begin(check["id"], 0.0)

    def cron(self, monitor: Json) -> timetable.Cron:
        """Return the monitor's schedule."""
        return timetable.parse_cron(monitor["schedule"]["cron"], either_day=self._core.quirks.on("cron-or"))

    def next_run(self, monitor: Json) -> str | None:
        """Return the time of the next run by the monitor's schedule, or None."""
        zone = timetable.zone_of(monitor["schedule"]["timezone"])
        run = next(self.cron(monitor).after(self._clock.datetime(), zone), None)
        return iso(run) if run else None

    def plan(self, monitor: Json) -> None:
        """Schedule the monitor's run at its ``nextRunAt``."""
        planned = monitor["nextRunAt"]
        if monitor["status"] == "active" and planned:
            self._agenda.at(from_iso(planned).timestamp(), lambda: self._fire(monitor["id"], planned))

    def forget(self, target_id: str) -> None:
        """Delete the page history of a target."""
        for entry in self._store.list("history", parent=target_id):
            self._store.delete("history", entry["key"])

    def start(self, monitor: Json, trigger: str, scheduled_for: str | None = None) -> Json:
        """Create a check and queue it."""
        check = self._new(monitor, trigger, scheduled_for)
        self._plan_begin(check["id"], self._core.settings.queue_seconds)
        return check

    def _plan_begin(self, check_id: str, seconds: float) -> None:
        self._agenda.after(seconds, lambda: self._begin(check_id))

    def _new(self, monitor: Json, trigger: str, scheduled_for: str | None) -> Json:
        now = self._clock.iso()
        check: Json = {
            "id": str(uuid.uuid4()),
            "monitorId": monitor["id"],
            "status": "queued",
            "trigger": trigger,
            "scheduledFor": scheduled_for,
            "startedAt": None,
            "finishedAt": None,
            "estimatedCredits": check_estimate(monitor),
            "reservedCredits": None,
            "actualCredits": None,
            "billingStatus": "not_applicable",
            "summary": dict(NO_SUMMARY),
            "targetResults": None,
            "notificationStatus": None,
            "error": None,
            "createdAt": now,
            "updatedAt": now,
        }
        self._store.put("check", check["id"], check, parent=monitor["id"])
        return check

    async def _fire(self, monitor_id: str, planned: str) -> None:
        """Start a scheduled check unless the schedule has changed in the meantime."""
        monitor = self._store.get("monitor", monitor_id)
        if monitor is None or monitor["status"] != "active" or monitor["nextRunAt"] != planned:
            return
        monitor["nextRunAt"] = self.next_run(monitor)
        if monitor["currentCheckId"]:
            self._skip(monitor, planned, "skipped_overlap", OVERLAP)
        elif self._core.credits.remaining < check_estimate(monitor):
            self._skip(monitor, planned, "skipped_no_credits", OUT_OF_CREDITS)
        else:
            check = self.start(monitor, "scheduled", planned)
            monitor["currentCheckId"] = check["id"]
            self._store.put("monitor", monitor_id, monitor)
        self.plan(monitor)

    def _skip(self, monitor: Json, planned: str, status: str, error: str) -> None:
        check = self._new(monitor, "scheduled", planned)
        now = self._clock.iso()
        check.update(status=status, error=error, finishedAt=now, updatedAt=now, actualCredits=0)
        monitor.update(lastRunAt=now, lastCheckSummary=dict(NO_SUMMARY))
        self._store.put("check", check["id"], check)
        self._store.put("monitor", monitor["id"], monitor)
        if self._core.quirks.on("skipped-event"):
            self._notify_completed(monitor, check)

    async def _begin(self, check_id: str) -> None:
        check = self._store.get("check", check_id)
        if check is None or check["finishedAt"] is not None:
            return
        monitor = self._store.get("monitor", check["monitorId"]) or {}
        now = self._clock.iso()
        reserved = min(check["estimatedCredits"], self._core.credits.remaining)
        check.update(status="running", startedAt=now, updatedAt=now)
        check.update(reservedCredits=reserved, billingStatus="reserved")
        monitor["currentCheckId"] = check_id
        with self._store.transaction():
            self._store.put("check", check_id, check)
            self._store.put("monitor", monitor["id"], monitor)
        if self._core.settings.check_seconds > STALE_AFTER:
            self._agenda.after(STALE_AFTER, lambda: self._finish(check_id, STALE))
        elif self._core.settings.check_seconds > 0:
            self._agenda.after(self._core.settings.check_seconds, lambda: self._finish(check_id))
        else:
            await self._finish(check_id)

    async def _finish(self, check_id: str, failure: str | None = None) -> None:
        """Compare all pages, bill, and notify the webhook."""
        check = self._store.get("check", check_id)
        if check is None or check["finishedAt"] is not None:
            return
        monitor = self._store.get("monitor", check["monitorId"]) or {}
        deleted = monitor["status"] == "deleted"
        if deleted:
            failure = "The monitor was deleted."
        elif failure is None and self._core.faults.consume_check_failure():
            failure = CHECK_FAULT
        findings: list[Finding] = []
        if failure is None:
            try:
                with self._store.transaction():
                    findings = self._compare(monitor, check)
            except (ServiceError, TypeError, ValueError, re.error) as error:
                # The options of a target are stored without validation, so their errors occur here.
                failure = f"The check failed: {error}"
        with self._store.transaction():
            self._close(monitor, check, findings, failure)
            if not deleted:
                for finding in findings:
                    self._notify_page(monitor, check, finding)
                self._notify_completed(monitor, check)
        self._core.keep_time()
        self.plan(monitor)

    def _compare(self, monitor: Json, check: Json) -> list[Finding]:
        findings: list[Finding] = []
        results: list[Json] = []
        for target in monitor["targets"]:
            found, result = self._targets.run(monitor, target)
            findings.extend(found)
            results.append(result)
        for finding in findings:
            self._store.put("result", finding.page["id"], finding.page, parent=check["id"])
        check["targetResults"] = results
        return findings

    def _close(self, monitor: Json, check: Json, findings: list[Finding], failure: str | None) -> None:
        now = self._clock.iso()
        summary = dict(NO_SUMMARY)
        for finding in findings:
            summary["totalPages"] += 1
            summary[finding.page["status"]] += 1
        spent = sum(finding.credits for finding in findings)
        spent += sum(result.get("searchCredits", 0) for result in check["targetResults"] or [])
        self._core.credits.spend(spent)
        status = "failed" if failure else "partial" if summary["error"] else "completed"
        check.update(status=status, error=failure, summary=summary, finishedAt=now, updatedAt=now)
        check.update(actualCredits=spent, billingStatus="released" if failure else "confirmed")
        monitor.update(lastRunAt=now, lastCheckSummary=summary)
        if monitor["currentCheckId"] == check["id"]:
            monitor["currentCheckId"] = None
        monitor["nextRunAt"] = self.next_run(monitor) if monitor["status"] == "active" else None
        self._store.put("check", check["id"], check)
        self._store.put("monitor", monitor["id"], monitor)

    def _notify_page(self, monitor: Json, check: Json, finding: Finding) -> None:
        page = finding.page
        if page["status"] == "removed":
            return
        judgment = page["judgment"]
        meaningful = judgment["meaningful"] if judgment else None
        if meaningful is None and page["status"] == "new" and self._core.quirks.on("meaningful-on-new"):
            meaningful = True
        data: Json = {"monitorId": monitor["id"], "checkId": check["id"], "isMeaningful": meaningful}
        names: tuple[str, ...] = ("url", "status", "error", "judgment", "diff")
        if not finding.by_search:
            names = (*names, "previousScrapeId", "currentScrapeId")
        data.update({name: page[name] for name in names})
        self._notify(
            monitor, check, "monitor.page", data, error=page["error"], success=page["status"] != "error"
        )

    def _notify_completed(self, monitor: Json, check: Json) -> None:
        data: Json = {"monitorId": monitor["id"], "checkId": check["id"]}
        data.update(status=check["status"], summary=check["summary"])
        success = check["status"] == "completed"
        self._notify(monitor, check, "monitor.check.completed", data, error=check["error"], success=success)

    def _notify(self, monitor: Json, check: Json, event: str, data: Json, **outcome: Any) -> None:
        if monitor["webhook"]:
            self._webhooks.emit(monitor["webhook"], event, check["id"], data, **outcome)
