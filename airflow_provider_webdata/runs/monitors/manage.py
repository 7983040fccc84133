# SPDX-License-Identifier: Apache-2.0
"""Updates, deletions, and lists of monitors."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.endpoints import LIST_MONITORS, UPDATE_MONITOR
from airflow_provider_webdata.api.errors import InvalidRequestError, NotFoundError
from airflow_provider_webdata.api.models import MonitorUpdateRequest
from airflow_provider_webdata.api.monitor_diff import complete_update
from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.common.page_urls import monitor_page
from airflow_provider_webdata.runs.failures import MonitorMissingError
from airflow_provider_webdata.runs.monitors.lookup import described, find_monitor, required_monitor
from airflow_provider_webdata.runs.request import checked_extra_body, valid_request
from airflow_provider_webdata.runs.run import Run

if TYPE_CHECKING:
    from airflow_provider_webdata.operators.monitor.delete import WebDataDeleteMonitorOperator
    from airflow_provider_webdata.operators.monitor.list import WebDataListMonitorsOperator
    from airflow_provider_webdata.operators.monitor.update import WebDataUpdateMonitorOperator


class UpdateMonitorRun(Run):
    """One attempt of a task that updates a monitor."""

    task: WebDataUpdateMonitorOperator

    def call(self) -> dict[str, Any]:
        """Update the given fields and return the monitor with wire names."""
        extra_body = checked_extra_body(self.task, UPDATE_MONITOR.label) or {}
        fields: dict[str, Any] = {}
        if not extra_body or self.task._field_values():
            request = valid_request(
                self.task, MonitorUpdateRequest, UPDATE_MONITOR.label, self.task._field_values()
            )
            # Later code handles the model's other warnings (ids, judgeEnabled, schedule).
            for warning in request.webhook.warnings() if request.webhook is not None else ():
                self.log.warning("%s: %s", UPDATE_MONITOR.label, warning)
            fields = request.to_wire()
        monitor = required_monitor(self, self.task)
        self.task._webdata_page = monitor_page(self.task.webdata_conn_id, monitor.id)
        patch = complete_update({**fields, **extra_body}, monitor.to_wire())
        self.log.info("Updating %s of monitor %s", ", ".join(patch), monitor.id)
        return self.hook.update_monitor(monitor.id, extra_body=patch).to_wire(mask_headers=True)


class DeleteMonitorRun(Run):
    """One attempt of a task that deletes a monitor."""

    task: WebDataDeleteMonitorOperator

    def call(self) -> dict[str, Any]:
        """Delete the monitor and return whether it existed."""
        monitor_id = self.task.monitor_id
        if monitor_id and checked_text(monitor_id) is None:
            self.refuse(
                f"monitor_id is {monitor_id!r} after rendering, since its template has no value; set a monitor's id"
            )
        if not monitor_id:
            monitor = find_monitor(self, self.task)
            monitor_id = monitor.id if monitor is not None else None
        if monitor_id:
            try:
                self.hook.delete_monitor(monitor_id)
            except NotFoundError:
                self.log.info("Monitor %s does not exist. It may have been deleted", monitor_id)
            else:
                self.log.info("Deleted monitor %s", monitor_id)
                return {"id": monitor_id, "deleted": True}
        if not self.task.ignore_missing:
            raise MonitorMissingError(
                f"The monitor {described(self.task)} does not exist (ignore_missing=False)"
            )
        return {"id": monitor_id or None, "deleted": False}


class ListMonitorsRun(Run):
    """One attempt of a task that lists monitors."""

    task: WebDataListMonitorsOperator

    def call(self) -> list[dict[str, Any]]:
        """List the matching monitors."""
        limit = self._checked_limit()
        found = []
        for monitor in self.hook.iter_monitors():
            if self.task.status and monitor.status != self.task.status:
                continue
            if self.task.name_pattern and not fnmatch.fnmatchcase(monitor.name or "", self.task.name_pattern):
                continue
            found.append(monitor.to_wire(mask_headers=True))
            if limit is not None and len(found) >= limit:
                break
        self.log.info("%d monitors match", len(found))
        return found

    def _checked_limit(self) -> int | None:
        given = self.task.limit
        if given is None or given == "":
            return None
        text = "" if isinstance(given, bool) else str(given).strip()
        if not text.isdecimal() or int(text) < 1:
            raise InvalidRequestError(
                LIST_MONITORS.label, [f"limit: must be a whole number of at least 1 (given: {given!r})"]
            )
        return int(text)
