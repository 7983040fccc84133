"""Bringing the service in step with a declared monitor: found, created or patched, once over all attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.runs.intent import may_have_acted
from airflow_provider_webdata.tasks.monitors.monitor_operator import MonitorOperator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import Monitor, MonitorCreateRequest
    from airflow_provider_webdata.runs.intent import Intent
    from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook

APPLIED_SCHEDULE = "applied_schedule"
"""XCom key of what the service made of a schedule in words."""


@dataclass(frozen=True)
class Declaration:
    """A monitor as its author declares it.

    :param request: the documented fields.
    :param extra: what is merged into them unchecked.
    :param managed_webhook: where the author gave no webhook.
    """

    request: MonitorCreateRequest
    extra: Mapping[str, Any]
    managed_webhook: ManagedWebhook | None

    @property
    def wire(self) -> dict[str, Any]:
        """All that the author declares, in wire form."""
        return {**self.request.to_wire(), **self.extra}

    @property
    def name(self) -> str:
        """The monitor's name."""
        return str(self.wire["name"])

    @property
    def schedule_text(self) -> str | None:
        """The schedule's text, if it is given as text."""
        schedule = self.wire["schedule"]
        return schedule.get("text") if isinstance(schedule, dict) else None

    def added(self) -> dict[str, Any]:
        """Return what a request to create it has beside the documented fields."""
        webhook = self.managed_webhook.new() if self.managed_webhook else None
        return {**self.extra, **({"webhook": webhook} if webhook else {})}

    def of(self, monitor: Monitor) -> dict[str, Any]:
        """Return the desired state of an existing monitor, in wire form: a managed webhook keeps its key.

        :param monitor: its current state.
        """
        webhook = self.managed_webhook.of(monitor) if self.managed_webhook else None
        return {**self.wire, **({"webhook": webhook} if webhook else {})}


@dataclass(frozen=True)
class DeclarationResult:
    """The outcome for a declared monitor.

    :param monitor: its current state.
    :param created: whether this task created it, in this attempt or an earlier one.
    :param restore: update that undoes what this attempt changed, if it changed anything.
    :param lost: fields that cannot be put back.
    """

    monitor: Monitor
    created: bool = False
    restore: Mapping[str, Any] | None = None
    lost: tuple[str, ...] = ()


class DeclaredMonitorOperator(MonitorOperator):
    """Base of the operator that declares a monitor; its arguments are described there."""

    if_exists: str
    monitor_id: str | None

    def existing_monitor(
        self, declared: Declaration, intent: Intent, context: Context
    ) -> DeclarationResult | None:
        """Return the existing monitor, updated to the declaration, or None if it must be created.

        :param declared: its desired state.
        :param intent: the recorded intent of earlier attempts.
        :param context: the task's context.
        """
        from airflow_provider_webdata.runs.failures import MonitorConflictError, MonitorMissingError

        if self.monitor_id:
            monitor = self.visible_monitor(self.monitor_id)
            if monitor is None:
                self.refuse(MonitorMissingError(f"monitor_id={self.monitor_id!r}: there is no such monitor"))
            return self._in_step(monitor, declared, context)
        if self.if_exists == "create" and not intent.began:
            return None
        if intent.started_id and (monitor := self.visible_monitor(intent.started_id)):
            self.log.info("An earlier attempt created monitor %s", monitor.id)
            return self._in_step(monitor, declared, context, created=True)

        def lookup() -> list[Monitor]:
            return self._candidates(declared, intent)

        found = self.until_found(lookup) if intent.began else lookup()
        monitor = self.only_one(declared.name, found or [])
        if monitor is None:
            return None
        own = intent.is_own(monitor.id, monitor.created_at)
        if own:
            self.log.info("An earlier attempt created monitor %s", monitor.id)
        elif self.if_exists == "error":
            raise MonitorConflictError(
                f"A monitor named {declared.name!r} exists already: {monitor.id} (if_exists='error')"
            )
        return self._in_step(monitor, declared, context, created=own)

    def _candidates(self, declared: Declaration, intent: Intent) -> list[Monitor]:
        from airflow_provider_webdata.api.monitor_diff import monitor_changes

        named = self.monitors_named(declared.name)
        if self.if_exists != "create":
            return named
        own = [monitor for monitor in named if intent.is_own(monitor.id, monitor.created_at)]
        if not intent.remembers:
            # A text schedule may have been moved, so a comparison says nothing.
            content = {field: value for field, value in declared.wire.items() if field != "schedule"}
            own = [monitor for monitor in own if not monitor_changes(content, monitor.to_wire())]
        return own[:1]

    def _in_step(
        self, monitor: Monitor, declared: Declaration, context: Context, *, created: bool = False
    ) -> DeclarationResult:
        from airflow_provider_webdata.api.monitor_diff import monitor_changes, previous_values

        if self.if_exists == "reuse" and not created:
            self.log.info("Monitor %s exists and is used as it is", monitor.id)
            return DeclarationResult(monitor)
        stored, wire = monitor.to_wire(), declared.of(monitor)
        changes = monitor_changes(wire, stored, self._applied_schedule(declared, context))
        if not changes:
            self.log.info("Monitor %s is as declared", monitor.id)
            return DeclarationResult(monitor, created)
        self.log.info("Monitor %s differs in %s; updating it", monitor.id, ", ".join(changes.fields))
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

    def created_monitor(self, declared: Declaration, intent: Intent) -> DeclarationResult:
        """Create the monitor; find it if the answer was lost.

        :param declared: its desired state.
        :param intent: the recorded intent of earlier attempts.
        """
        from airflow_provider_webdata.api.errors import WebDataError

        name = declared.name
        known = {monitor.id for monitor in self.monitors_named(name)} if self.if_exists == "create" else set()
        intent.begin(known)
        try:
            monitor = self.hook.create_monitor(declared.request, extra_body=declared.added())
        except WebDataError as error:
            if not may_have_acted(error):
                intent.forget()
                raise
            self.log.warning("%s. Checking whether the monitor was created all the same", error)
            found = self.until_found(lambda: self._candidates_new(name, intent))
            if not found:
                raise
            monitor = found[0]
        intent.started(monitor.id)
        self.log.info("Created monitor %s, next run at %s", monitor.id, monitor.next_run_at)
        return DeclarationResult(monitor, created=True)

    def _candidates_new(self, name: str, intent: Intent) -> list[Monitor]:
        return [
            monitor for monitor in self.monitors_named(name) if intent.is_own(monitor.id, monitor.created_at)
        ]

    def hold_credit_limit(self, outcome: DeclarationResult, limit: float, intent: Intent) -> None:
        """Undo what was done, and fail the task, if the monitor is estimated to cost too much.

        :param outcome: what was done.
        :param limit: most credits a month.
        :param intent: what earlier attempts began.
        """
        from airflow_provider_webdata.runs.failures import CreditLimitError

        monitor = outcome.monitor
        estimate = monitor.estimated_credits_per_month
        if estimate is None:
            self.log.warning(
                "Monitor %s has no estimate of its cost, so that max_credits_per_month was not checked",
                monitor.id,
            )
            return
        if estimate <= limit:
            return
        if outcome.created:
            self.hook.delete_monitor(monitor.id)
            intent.forget()
            done = "it was deleted again"
        elif outcome.restore is not None:
            if outcome.restore:
                self.hook.update_monitor(monitor.id, extra_body=outcome.restore)
            done = "its former values were put back"
            if outcome.lost:
                done += f", but for {', '.join(outcome.lost)}, which the service cannot remove"
        else:
            done = "it was left as it is"
        raise CreditLimitError(
            f"Monitor {monitor.name!r} ({monitor.id}) is estimated at {estimate:g} credits a month, over "
            f"max_credits_per_month={limit:g}; {done}. Check less often or fewer pages, or raise the limit"
        )

    def _applied_schedule(self, declared: Declaration, context: Context) -> Mapping[str, Any] | None:
        """Return the cron that the service made of the text schedule when a former run applied it."""
        ti = context.get("ti")
        if ti is None or declared.schedule_text is None:
            return None
        applied: object = ti.xcom_pull(
            key=APPLIED_SCHEDULE, include_prior_dates=True, map_indexes=ti.map_index
        )
        return applied if isinstance(applied, dict) else None


def cron_of(monitor: Monitor) -> str | None:
    """Return the cron of a monitor's schedule, where the service shows it."""
    return monitor.schedule.cron if monitor.schedule is not None else None
