"""A declared monitor: found, created, or updated, once for all attempts of the task."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.endpoints import CREATE_MONITOR
from airflow_provider_webdata.api.errors import InvalidRequestError, NotFoundError, WebDataError
from airflow_provider_webdata.api.models import CrawlTarget, MonitorCreateRequest
from airflow_provider_webdata.api.monitor_diff import monitor_changes, previous_values
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.common.page_urls import monitor_page
from airflow_provider_webdata.common.xcom_keys import APPLIED_SCHEDULE
from airflow_provider_webdata.runs.failures import MonitorConflictError, MonitorCostError, MonitorMissingError
from airflow_provider_webdata.runs.intent import Intent, may_have_acted
from airflow_provider_webdata.runs.managed_webhook import DECLARED_BY, ManagedWebhook, origin_of
from airflow_provider_webdata.runs.monitors.check import CheckRun
from airflow_provider_webdata.runs.monitors.lookup import monitors_named, only_one, visible_monitor
from airflow_provider_webdata.runs.replica import until_found
from airflow_provider_webdata.runs.request import checked_extra_body, checked_number, checked_request
from airflow_provider_webdata.states.check_arguments import checked_events

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.operators.monitor.create import WebDataCreateMonitorOperator


@dataclass(frozen=True)
class Declaration:
    """A monitor as its author declares it.

    :param request: the documented fields.
    :param extra: fields merged into the request unchecked.
    :param managed_webhook: the webhook if the author sets none.
    """

    request: MonitorCreateRequest
    extra: Mapping[str, Any]
    managed_webhook: ManagedWebhook | None

    @property
    def wire(self) -> dict[str, Any]:
        """All declared fields, in wire form."""
        return {**self.request.to_wire(), **self.extra}

    @property
    def name(self) -> str:
        """The monitor's name."""
        return str(self.wire["name"])

    @property
    def schedule_text(self) -> str | None:
        """The schedule, if it is a text schedule."""
        schedule = self.wire["schedule"]
        return schedule.get("text") if isinstance(schedule, dict) else None

    def added(self) -> dict[str, Any]:
        """Return the additional fields of the create request."""
        webhook = self.managed_webhook.new() if self.managed_webhook else None
        return {**self.extra, **({"webhook": webhook} if webhook else {})}

    def of(self, monitor: Monitor) -> dict[str, Any]:
        """Return the desired state of an existing monitor, in wire form: a managed webhook keeps its key."""
        webhook = self.managed_webhook.of(monitor) if self.managed_webhook else None
        return {**self.wire, **({"webhook": webhook} if webhook else {})}


@dataclass(frozen=True)
class DeclarationResult:
    """The outcome for a declared monitor.

    :param created: True if this task created it, in this attempt or an earlier one.
    :param restore: update that undoes this attempt's changes, if any.
    :param lost: fields that cannot be restored.
    """

    monitor: Monitor
    created: bool = False
    restore: Mapping[str, Any] | None = None
    lost: tuple[str, ...] = ()


class DeclareMonitorRun(CheckRun):
    """One attempt of a task that declares a monitor."""

    task: WebDataCreateMonitorOperator

    def call(self) -> Any:
        """Create or update the monitor; return it, or the awaited check."""
        request = checked_request(
            self.task, MonitorCreateRequest, CREATE_MONITOR.label, map_index=self.attempt.map_index
        )
        limit = checked_number(CREATE_MONITOR.label, "max_credits_per_month", self.task.max_credits_per_month)
        if not self.task.allow_unlimited_crawl:
            _refuse_unlimited_crawls(request)
        extra = checked_extra_body(self.task, CREATE_MONITOR.label) or {}
        declared = Declaration(request, extra, self._managed_webhook(request, extra))

        intent = Intent(self.context, "webdata_monitor")
        outcome = self._existing_monitor(declared, intent) or self._created_monitor(declared, intent)
        if limit is not None:
            self._hold_credit_limit(outcome, limit, intent)
        self._remember_schedule(declared, outcome.monitor)
        return self._answer(outcome.monitor)

    def _managed_webhook(
        self, request: MonitorCreateRequest, extra: Mapping[str, Any]
    ) -> ManagedWebhook | None:
        if request.webhook is None and "webhook" not in extra:
            origin = origin_of(self.context, DECLARED_BY)
            managed = ManagedWebhook(
                self.hook.get_settings(),
                self.task.attach_webhook,
                checked_events(self.task.webhook_events),
                origin,
                monitor_name=str(extra.get("name", request.name)),
            )
            # Reports missing connection fields before any request.
            return managed if managed.new() else None
        if self.task.attach_webhook:
            self.refuse("attach_webhook=True and webhook are mutually exclusive; remove one of them")
        return None

    def _answer(self, monitor: Monitor) -> Any:
        self.task._webdata_page = monitor_page(self.task.webdata_conn_id, monitor.id)
        wire = monitor.to_wire(mask_headers=True)
        if monitor.status == "paused":
            self.log.warning("Monitor %s is paused and runs no checks", monitor.id)
        self.push(monitor_id=monitor.id)
        if not self.task.wait_for_completion:
            return wire
        if monitor.status == "paused":
            raise MonitorConflictError(
                f"Monitor {monitor.id} is paused: resume it before waiting for its next check"
            )
        self.push(monitor=wire)
        return self.wait_for_check(monitor.id, None)

    def _remember_schedule(self, declared: Declaration, monitor: Monitor) -> None:
        text = declared.schedule_text
        if text is not None and self.task.if_exists != "reuse":
            self.push(**{APPLIED_SCHEDULE: {"text": text, "cron": cron_of(monitor)}})

    def _existing_monitor(self, declared: Declaration, intent: Intent) -> DeclarationResult | None:
        """Return the existing monitor, updated to the declaration, or None if it must be created."""
        wait = self.task.replica_wait
        if self.task.monitor_id:
            monitor = visible_monitor(self.hook, self.task.monitor_id, wait)
            if monitor is None:
                self.refuse(
                    MonitorMissingError(f"monitor_id={self.task.monitor_id!r}: the monitor does not exist")
                )
            return self._in_step(monitor, declared, intent)
        if self.task.if_exists == "create" and not intent.began:
            return None
        if intent.started_id and (monitor := visible_monitor(self.hook, intent.started_id, wait)):
            self.log.info("An earlier attempt created monitor %s", monitor.id)
            return self._in_step(monitor, declared, intent, created=True)

        def lookup() -> list[Monitor]:
            return self._candidates(declared, intent)

        found = until_found(lookup, wait) if intent.began else lookup()
        monitor = only_one(declared.name, found or [])
        if monitor is None:
            return None
        own = intent.is_own(monitor.id, monitor.created_at)
        if own:
            self.log.info("An earlier attempt created monitor %s", monitor.id)
        elif self.task.if_exists == "error":
            raise MonitorConflictError(
                f"A monitor named {declared.name!r} already exists: {monitor.id} (if_exists='error')"
            )
        return self._in_step(monitor, declared, intent, created=own)

    def _candidates(self, declared: Declaration, intent: Intent) -> list[Monitor]:
        if self.task.if_exists != "create":
            return monitors_named(self.hook, declared.name)
        own = self._own_monitors(declared.name, intent)
        if not intent.exists:
            # The service may have adjusted a text schedule, so it is not comparable.
            content = {field: value for field, value in declared.wire.items() if field != "schedule"}
            own = [monitor for monitor in own if not monitor_changes(content, monitor.to_wire())]
        return own[:1]

    def _in_step(
        self, monitor: Monitor, declared: Declaration, intent: Intent, *, created: bool = False
    ) -> DeclarationResult:
        if self.task.if_exists == "reuse" and not created:
            self.log.info("Monitor %s exists and is used unchanged", monitor.id)
            return DeclarationResult(monitor)
        stored, wire = monitor.to_wire(), declared.of(monitor)
        changes = monitor_changes(wire, stored, self._applied_schedule(declared))
        if not changes:
            self.log.info("Monitor %s matches the declaration", monitor.id)
            return DeclarationResult(monitor, created)
        self.log.info("Monitor %s differs in %s; updating it", monitor.id, ", ".join(changes.fields))
        if not created:
            # If this attempt dies before it checks the cost, the next one sees no change.
            intent.begin({monitor.id}, monitor_id=monitor.id)
        updated = self.hook.update_monitor(monitor.id, extra_body=changes.patch)
        schedule = {"text": declared.schedule_text, "cron": cron_of(updated)}
        if left := monitor_changes(wire, updated.to_wire(), schedule):
            self.log.warning(
                "Monitor %s still differs in %s after the update: the service sets its own values there",
                monitor.id,
                ", ".join(left.fields),
            )
        restore, lost = previous_values(changes.patch, stored)
        return DeclarationResult(updated, created, restore, lost)

    def _created_monitor(self, declared: Declaration, intent: Intent) -> DeclarationResult:
        """Create the monitor; find it if the response was lost."""
        name = declared.name
        known = (
            {monitor.id for monitor in monitors_named(self.hook, name)}
            if self.task.if_exists == "create"
            else set()
        )
        missing = self._missing_monitor(intent)
        intent.begin(known)
        try:
            monitor = self.hook.create_monitor(declared.request, extra_body=declared.added())
        except WebDataError as error:
            if not may_have_acted(error):
                intent.forget()
                raise
            self.log.warning("%s. Checking whether the monitor was created anyway", error.brief())
            found = until_found(lambda: self._own_monitors(name, intent), self.task.replica_wait)
            if not found:
                raise
            monitor = found[0]
        intent.started(monitor.id)
        self.log.info("Created monitor %s, next run at %s", monitor.id, monitor.next_run_at)
        if missing:
            self.log.warning("%s. Monitor %s replaces it", missing, monitor.id)
        return DeclarationResult(monitor, created=True)

    def _missing_monitor(self, intent: Intent) -> str:
        """Return what happened to the monitor of an earlier run or attempt, if this task must create it again."""
        ti = self.context.get("ti")
        if ti is None or self.task.if_exists == "create":
            return ""
        earlier = intent.started_id or ti.xcom_pull(
            key="monitor_id", include_prior_dates=True, map_indexes=ti.map_index
        )
        if not isinstance(earlier, str):
            return ""
        if (monitor := visible_monitor(self.hook, earlier, 0)) is None:
            return (
                f"Monitor {earlier}, which this task declared earlier, does not exist: it may have been deleted, and "
                "pages were not checked since"
            )
        return (
            f"Monitor {earlier}, which this task declared earlier, is named {monitor.name!r}. It continues: delete it "
            "if you have renamed it in the DAG"
        )

    def _own_monitors(self, name: str, intent: Intent) -> list[Monitor]:
        return [
            monitor
            for monitor in monitors_named(self.hook, name)
            if intent.is_own(monitor.id, monitor.created_at)
        ]

    def _hold_credit_limit(self, outcome: DeclarationResult, limit: float, intent: Intent) -> None:
        """Undo the changes and fail the task if the monitor's estimated cost exceeds the limit."""
        monitor = outcome.monitor
        estimate = known_credits(monitor.estimated_credits_per_month)
        if estimate is None:
            self.log.warning(
                "Monitor %s has no cost estimate, so max_credits_per_month was not checked",
                monitor.id,
            )
            return
        if estimate <= limit:
            return
        try:
            done = self._undo(outcome, intent)
        except WebDataError:
            self.log.error(
                "Monitor %s could not be changed back and continues, at an estimated %s credits per month",
                monitor.id,
                credits_text(estimate),
            )
            raise
        raise MonitorCostError(
            f"Monitor {monitor.name!r} ({monitor.id}) is estimated at {credits_text(estimate)} credits per month, over "
            f"max_credits_per_month={credits_text(limit)}; {done}"
        )

    def _undo(self, outcome: DeclarationResult, intent: Intent) -> str:
        """Undo the changes of all attempts, and return what was done."""
        monitor = outcome.monitor
        if outcome.created and intent.started_id == monitor.id:
            # A repeated deletion, whose first response was lost, finds no monitor.
            with suppress(NotFoundError):
                self.hook.delete_monitor(monitor.id)
            intent.forget()
            return "the task deleted it"
        if outcome.restore is not None:
            if outcome.restore:
                self.hook.update_monitor(monitor.id, extra_body=outcome.restore)
            intent.forget()
            lost = (
                f", except {', '.join(outcome.lost)}, which the service cannot remove" if outcome.lost else ""
            )
            return f"the task restored its previous values{lost}"
        reason = ""
        if outcome.created:
            # Without a record of its id, it may be another's.
            reason = "may have created it"
        elif intent.record.monitor_id == monitor.id:
            # Its previous values may contain secrets, so they are not recorded.
            reason = "changed it and did not restore its previous values"
        if reason:
            self.hook.update_monitor(monitor.id, extra_body={"status": "paused"})
            return f"the task paused it, because an earlier attempt {reason}"
        if intent.began and not intent.is_lasting:
            return "this attempt did not change it, but an earlier one may have"
        return "it is unchanged"

    def _applied_schedule(self, declared: Declaration) -> Mapping[str, Any] | None:
        """Return the cron that the service derived from the text schedule in an earlier run."""
        ti = self.context.get("ti")
        if ti is None or declared.schedule_text is None:
            return None
        applied: object = ti.xcom_pull(
            key=APPLIED_SCHEDULE, include_prior_dates=True, map_indexes=ti.map_index
        )
        return applied if isinstance(applied, dict) else None


def cron_of(monitor: Monitor) -> str | None:
    """Return the cron of a monitor's schedule, if the service shows it."""
    return monitor.schedule.cron if monitor.schedule is not None else None


def _refuse_unlimited_crawls(request: MonitorCreateRequest) -> None:
    """Reject crawl targets without a page limit, for which the service reserves 10,000 credits per check."""
    problems = [
        f"targets[{index}].crawlOptions.limit: is missing, so the service would reserve 10,000 credits "
        f"for every check of {target.url!r}; set a limit, or allow_unlimited_crawl=True"
        for index, target in enumerate(request.targets)
        if isinstance(target, CrawlTarget)
        and (target.crawl_options is None or target.crawl_options.limit is None)
    ]
    if problems:
        raise InvalidRequestError(CREATE_MONITOR.label, problems)
