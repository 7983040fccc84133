# SPDX-License-Identifier: Apache-2.0
"""A monitor check, started once for all attempts of the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import ConflictError, NotFoundError, WebDataError
from airflow_provider_webdata.api.models import MonitorCheck
from airflow_provider_webdata.api.monitor_diff import monitor_changes
from airflow_provider_webdata.common.page_urls import monitor_page
from airflow_provider_webdata.runs.failures import MonitorConflictError, may_have_acted
from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook
from airflow_provider_webdata.runs.monitors.check import CheckRun
from airflow_provider_webdata.runs.monitors.lookup import required_monitor
from airflow_provider_webdata.runs.replica import until_found, until_visible
from airflow_provider_webdata.states.check_arguments import checked_events
from airflow_provider_webdata.states.task_record import Started, new_key

if TYPE_CHECKING:
    from airflow_provider_webdata.operators.monitor.run import WebDataRunMonitorOperator


class RunMonitorRun(CheckRun):
    """One attempt of a task that starts a check."""

    task: WebDataRunMonitorOperator

    def call(self) -> Any:
        """Start a check, or find the running one, and return it with wire names."""
        monitor_id = self._ready_monitor()
        check = self._started_before(monitor_id) or self._start(monitor_id)
        self.task._webdata_page = monitor_page(self.task.webdata_conn_id, monitor_id, check.id)
        self.push(monitor_id=monitor_id, check_id=check.id)
        if not self.task.wait_for_completion:
            return check.to_wire(mask_headers=True)
        return self.wait_for_check(monitor_id, check.id)

    def _ready_monitor(self) -> str:
        """Return the monitor's id, after attaching the managed webhook if configured."""
        if self.task.monitor_id and not self.task.attach_webhook:
            return str(self.task.monitor_id)
        monitor = required_monitor(self, self.task)
        if not self.task.attach_webhook:
            return monitor.id
        webhook = ManagedWebhook(self.hook.get_settings(), True, checked_events(self.task.webhook_events)).of(
            monitor
        )
        changes = monitor_changes({"webhook": webhook}, monitor.to_wire()) if webhook else None
        if changes:
            self.log.info("Monitor %s differs in %s; updating it", monitor.id, ", ".join(changes.fields))
            self.hook.update_monitor(monitor.id, extra_body=changes.patch)
        return monitor.id

    def _started_before(self, monitor_id: str) -> MonitorCheck | None:
        started = self.memory.record.started_as("check")
        if started is None:
            return None
        if started.request != monitor_id:
            self.log.warning(
                "An earlier attempt ran monitor %s. The task's monitor is now %s, which also runs",
                started.request,
                monitor_id,
            )
            return None
        if started.id is not None:
            return self._check(monitor_id, started.id)
        check = until_found(lambda: self._own_check(monitor_id), self.task.replica_wait)
        if check is not None:
            self.log.info("An earlier attempt started check %s", check.id)
            self._record(monitor_id, check.id)
        return check

    def _own_check(self, monitor_id: str) -> MonitorCheck | None:
        """Return the check that a request of unknown outcome started, or None."""
        started = self.memory.record.started_as("check")
        known = () if started is None else started.known
        own = (
            check for check in self._checks(monitor_id) if check.trigger == "manual" and check.id not in known
        )
        return next(own, None)

    def _record(self, monitor_id: str, check_id: str) -> None:
        started = Started(kind="check", key=new_key(), request=monitor_id, id=check_id)
        self.memory.note(started=started, phase="known")

    def _start(self, monitor_id: str) -> MonitorCheck:
        known = tuple(sorted(check.id for check in self._checks(monitor_id)))
        started = Started(kind="check", key=new_key(), request=monitor_id, known=known)
        self.memory.write(started=started, phase="requested", wait_since=None, wait_until=None)
        try:
            # A 404 started no check, and may come from a lagging replica.
            check = until_visible(lambda: self.hook.run_monitor(monitor_id), self.task.replica_wait)
        except ConflictError as error:
            self.memory.note(started=None, phase="planned")
            check = self._running(monitor_id, error)
            if self.task.wait_for_completion:
                # After the check ends, another attempt would get no conflict and start a second check.
                self._record(monitor_id, check.id)
            return check
        except WebDataError as error:
            if not may_have_acted(error):
                self.memory.note(started=None, phase="planned")
                raise
            self.log.warning("%s. Checking whether a check was started anyway", error.brief())
            found = until_found(lambda: self._own_check(monitor_id), self.task.replica_wait)
            if found is None:
                raise
            check = found
        self._record(monitor_id, check.id)
        self.log.info("Started check %s of monitor %s", check.id, monitor_id)
        return check

    def _checks(self, monitor_id: str) -> list[MonitorCheck]:
        return until_visible(
            lambda: self.hook.list_monitor_checks(monitor_id, limit=100), self.task.replica_wait
        )

    def _running(self, monitor_id: str, error: ConflictError) -> MonitorCheck:
        check_id = error.body.get("checkId")
        if not isinstance(check_id, str) or not check_id:
            raise MonitorConflictError(
                f"{error.text()}. Monitor {monitor_id} may be paused: resume it before running it"
            ) from error
        if self.task.if_running == "error":
            raise MonitorConflictError(
                f"Check {check_id} of monitor {monitor_id} is already running (if_running='error')"
            )
        self.log.info("Check %s of monitor %s is already running", check_id, monitor_id)
        return self._check(monitor_id, check_id)

    def _check(self, monitor_id: str, check_id: str) -> MonitorCheck:
        try:
            detail = until_visible(
                lambda: self.hook.get_monitor_check(monitor_id, check_id, limit=1), self.task.replica_wait
            ).to_wire()
        except NotFoundError:
            return MonitorCheck(id=check_id, monitor_id=monitor_id)
        return MonitorCheck.model_validate({k: v for k, v in detail.items() if k not in {"pages", "next"}})
