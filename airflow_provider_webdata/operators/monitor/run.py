"""The operator that starts a check of a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.runs.intent import Intent, may_have_acted
from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook, checked_events
from airflow_provider_webdata.states.checks import CHECK_COMPLETED
from airflow_provider_webdata.tasks.monitors.check_operator import WaitsForCheck
from airflow_provider_webdata.tasks.monitors.monitor_operator import ExistingMonitorOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.errors import ConflictError
    from airflow_provider_webdata.api.models import MonitorCheck
    from airflow_provider_webdata.states.checks import Choice

T = TypeVar("T")


class WebDataRunMonitorOperator(WaitsForCheck, ExistingMonitorOperator):
    """Start a check of a monitor now. Bills credits.

    A retry after a crash or a lost answer finds the check that the first attempt started instead of starting another.

    XCom: the check, with wire names; with `wait_for_completion`, the finished check with the requested pages. The keys
    `check_id` and `monitor_id` hold the ids, also while the task waits.

    :param if_running: what to do when a check is running already: `return` it (default; with
        `wait_for_completion`, it is waited for) or `error`.
    :param attach_webhook: make the monitor report to this Airflow before the check is started: it is patched unless
        it does so already. Default: leave the monitor unchanged.
    :param webhook_events: what to report then: `monitor.check.completed` (default), `monitor.page`.
    :param wait_for_completion: wait until the check is over; the arguments of `WaitsForCheck` say how.
    :param on_skipped: as in `WaitsForCheck`, but `fail` by default.
    :param kwargs: arguments of `WaitsForCheck` and `ExistingMonitorOperator`: `monitor_id` or `monitor_name` say
        which monitor.
    """

    def __init__(
        self,
        *,
        if_running: Literal["return", "error"] = "return",
        attach_webhook: bool = False,
        webhook_events: Sequence[str] = (CHECK_COMPLETED,),
        on_skipped: Choice = "fail",
        **kwargs: Any,
    ) -> None:
        if if_running not in {"return", "error"}:
            raise ArgumentError(f"if_running must be 'return' or 'error' (given: {if_running!r})")
        super().__init__(on_skipped=on_skipped, **kwargs)
        self.if_running = if_running
        self.attach_webhook = attach_webhook
        self.webhook_events = checked_events(webhook_events)

    def call_service(self, context: Context) -> Any:
        """Start a check, or find the one that runs, and return it with wire names."""
        from airflow_provider_webdata.page_urls import check_page

        self.require_deliveries()
        intent = Intent(context, "webdata_check")
        monitor_id = self._ready_monitor()
        check = self._started_before(monitor_id, intent) or self._start(monitor_id, intent)
        self.webdata_page = check_page(self.webdata_conn_id, monitor_id, check.id)
        self.push(context, monitor_id=monitor_id, check_id=check.id)
        if not self.wait_for_completion:
            return check.to_wire(mask_headers=True)
        return self.wait_for_check(context, monitor_id, check.id)

    def _ready_monitor(self) -> str:
        """Return the monitor's id, once it has the managed webhook if it is to."""
        if self.monitor_id and not self.attach_webhook:
            return self.monitor_id
        monitor = self.found()
        if not self.attach_webhook:
            return monitor.id
        from airflow_provider_webdata.api.monitor_diff import monitor_changes

        webhook = ManagedWebhook(self.hook, True, self.webhook_events).of(monitor)
        changes = monitor_changes({"webhook": webhook}, monitor.to_wire())
        if changes:
            self.log.info("Monitor %s differs in %s; updating it", monitor.id, ", ".join(changes.fields))
            self.hook.update_monitor(monitor.id, extra_body=changes.patch)
        return monitor.id

    def _started_before(self, monitor_id: str, intent: Intent) -> MonitorCheck | None:
        if not intent.began:
            return None
        if (former := intent.recall("monitor_id")) not in (None, monitor_id):
            self.log.warning(
                "An earlier attempt ran monitor %s. The task's monitor is %s now: it is run too",
                former,
                monitor_id,
            )
            return None
        if intent.started_id:
            return self._check(monitor_id, intent.started_id)
        check = self.until_found(lambda: self._own_check(monitor_id, intent))
        if check is not None:
            self.log.info("An earlier attempt started check %s", check.id)
        return check

    def _own_check(self, monitor_id: str, intent: Intent) -> MonitorCheck | None:
        checks = self._once_visible(self._checks, monitor_id)
        own = (
            check
            for check in checks
            if check.trigger == "manual" and intent.is_own(check.id, check.created_at)
        )
        return next(own, None)

    def _start(self, monitor_id: str, intent: Intent) -> MonitorCheck:
        from airflow_provider_webdata.api.errors import ConflictError, WebDataError

        checks = self._once_visible(self._checks, monitor_id)
        intent.begin((check.id for check in checks), monitor_id=monitor_id)
        try:
            check = self._once_visible(self.hook.run_monitor, monitor_id)
        except ConflictError as error:
            intent.forget()
            check = self._running(monitor_id, error)
            if self.wait_for_completion:
                # Once it is over, a further attempt would get no conflict and start another.
                intent.remember(id=check.id, monitor_id=monitor_id)
            return check
        except WebDataError as error:
            if not may_have_acted(error):
                intent.forget()
                raise
            self.log.warning("%s. Checking whether a check was started all the same", error)
            found = self.until_found(lambda: self._own_check(monitor_id, intent))
            if found is None:
                raise
            check = found
        intent.started(check.id)
        self.log.info("Started check %s of monitor %s", check.id, monitor_id)
        return check

    def _checks(self, monitor_id: str) -> list[MonitorCheck]:
        return self.hook.list_monitor_checks(monitor_id, limit=100)

    def _once_visible(self, call: Callable[[str], T], monitor_id: str) -> T:
        """Call until the service knows the monitor: a 404 started nothing, and may be that of a late replica."""
        from airflow_provider_webdata.api.errors import NotFoundError

        missing: list[NotFoundError] = []

        def attempt() -> tuple[T] | None:
            try:
                return (call(monitor_id),)
            except NotFoundError as error:
                missing.append(error)
                return None

        done = self.until_found(attempt)
        if done is None:
            raise missing[-1]
        return done[0]

    def _running(self, monitor_id: str, error: ConflictError) -> MonitorCheck:
        from airflow_provider_webdata.runs.failures import MonitorConflictError

        check_id = error.body.get("checkId")
        if not isinstance(check_id, str) or not check_id:
            raise MonitorConflictError(
                f"{error.text()}. Monitor {monitor_id} may be paused: resume it before running it"
            ) from error
        if self.if_running == "error":
            raise MonitorConflictError(
                f"Check {check_id} of monitor {monitor_id} is running already (if_running='error')"
            )
        self.log.info("Check %s of monitor %s is running already", check_id, monitor_id)
        return self._check(monitor_id, check_id)

    def _check(self, monitor_id: str, check_id: str) -> MonitorCheck:
        from airflow_provider_webdata.api.errors import NotFoundError
        from airflow_provider_webdata.api.models import MonitorCheck

        def lookup() -> MonitorCheck | None:
            try:
                detail = self.hook.get_monitor_check(monitor_id, check_id, limit=1).to_wire()
            except NotFoundError:
                return None
            return MonitorCheck.model_validate(
                {k: v for k, v in detail.items() if k not in {"pages", "next"}}
            )

        return self.until_found(lookup) or MonitorCheck(id=check_id, monitor_id=monitor_id)
