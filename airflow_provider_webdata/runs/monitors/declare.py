# SPDX-License-Identifier: Apache-2.0
"""A declared monitor: found, created, or updated."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.endpoints import CREATE_MONITOR
from airflow_provider_webdata.api.errors import InvalidRequestError, NotFoundError, WebDataError
from airflow_provider_webdata.api.models import CrawlTarget, MonitorCreateRequest
from airflow_provider_webdata.api.monitor_diff import monitor_changes, previous_values
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.common.page_urls import monitor_page
from airflow_provider_webdata.common.xcom_keys import APPLIED_SCHEDULE
from airflow_provider_webdata.hooks.environment import environment
from airflow_provider_webdata.runs.failures import (
    MonitorConflictError,
    MonitorCostError,
    MonitorMissingError,
    may_have_acted,
)
from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook
from airflow_provider_webdata.runs.monitors.check import CheckRun
from airflow_provider_webdata.runs.monitors.lookup import visible_monitor
from airflow_provider_webdata.runs.replica import until_found
from airflow_provider_webdata.runs.request import checked_extra_body, checked_number, checked_request
from airflow_provider_webdata.states.check_arguments import checked_events
from airflow_provider_webdata.states.monitor_decision import (
    Declared,
    Listed,
    Mark,
    Refuse,
    Reporter,
    Use,
    decide,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.operators.monitor.create import WebDataCreateMonitorOperator


@dataclass(frozen=True)
class Declaration:
    """A monitor as its author declares it.

    :param request: the documented fields.
    :param extra: fields merged into the request unchecked.
    :param mark: the mark of the declaration.
    :param webhook: the managed webhook, if the author sets no other.
    """

    request: MonitorCreateRequest
    extra: Mapping[str, Any]
    mark: Mark
    webhook: ManagedWebhook | None

    @property
    def wire(self) -> dict[str, Any]:
        """All declared fields, in wire form."""
        return {**self.request.to_wire(), **self.extra}

    @property
    def url(self) -> str | None:
        """URL of the author's own webhook."""
        webhook = self.wire.get("webhook")
        return webhook.get("url") if isinstance(webhook, dict) else webhook

    @property
    def schedule_text(self) -> str | None:
        """The schedule, if it is a text schedule."""
        schedule = self.wire["schedule"]
        return schedule.get("text") if isinstance(schedule, dict) else None

    @cached_property
    def added(self) -> dict[str, Any]:
        """The additional fields of the create request."""
        webhook = self.webhook.new() if self.webhook else None
        return {**self.extra, **({"webhook": webhook} if webhook else {})}

    def of(self, use: Use) -> dict[str, Any]:
        """Return the desired state of an existing monitor, in wire form."""
        webhook = self.webhook.kept(use.key) if self.webhook and use.reports else None
        return {**self.wire, **({"webhook": webhook} if webhook else {})}


@dataclass(frozen=True)
class DeclarationResult:
    """The outcome for a declared monitor.

    :param created: True if this attempt created it.
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
    _has_lost_response = False

    def call(self) -> Any:
        """Create or update the monitor; return it, or the awaited check."""
        request = checked_request(
            self.task, MonitorCreateRequest, CREATE_MONITOR.label, map_index=self.attempt.map_index
        )
        limit = checked_number(CREATE_MONITOR.label, "max_credits_per_month", self.task.max_credits_per_month)
        if not self.task.allow_unlimited_crawl:
            _refuse_unlimited_crawls(request)
        extra = checked_extra_body(self.task, CREATE_MONITOR.label) or {}
        mark = self._mark(str(extra.get("name", request.name)))
        declared = Declaration(request, extra, mark, self._managed_webhook(request, extra, mark))
        outcome = self._outcome(declared)
        if limit is not None:
            self._hold_credit_limit(outcome, limit)
        self._remember_schedule(declared, outcome.monitor)
        return self._answer(outcome.monitor)

    def _mark(self, name: str) -> Mark:
        ti = self.context.get("ti")
        dag_id, task_id = ("", "") if ti is None else (str(ti.dag_id), str(ti.task_id))
        return Mark(environment(), dag_id, task_id, name.strip())

    def _managed_webhook(
        self, request: MonitorCreateRequest, extra: Mapping[str, Any], mark: Mark
    ) -> ManagedWebhook | None:
        if request.webhook is not None or "webhook" in extra:
            if self.task.attach_webhook:
                self.refuse("attach_webhook=True and webhook are mutually exclusive; remove one of them")
            return None
        events = checked_events(self.task.webhook_events)
        managed = ManagedWebhook(self.hook.get_settings(), self.task.attach_webhook, events, mark.metadata)
        # Reports missing connection fields before any request.
        managed.new()
        return managed

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

    def _outcome(self, declared: Declaration) -> DeclarationResult:
        found = self._found(declared)
        if found is None and self.attempt.number > 1:
            # An earlier attempt may have created it.
            found = until_found(lambda: self._found(declared), self.task.replica_wait)
        return self._in_step(declared, *found) if found else self._created(declared)

    def _found(self, declared: Declaration) -> tuple[Monitor, Use] | None:
        """Return the declared monitor, by its mark or its name, or None if it must be created.

        :raises MonitorConflictError: it belongs to another declaration, or there are several.
        """
        monitors = {monitor.id: monitor for monitor in self.hook.iter_monitors()}
        if selected := self.task.monitor_id:
            monitor = visible_monitor(self.hook, selected, self.task.replica_wait)
            if monitor is None:
                self.refuse(MonitorMissingError(f"monitor_id={selected!r}: the monitor does not exist"))
            selected = monitor.id
            monitors[selected] = monitor
        webhook = declared.webhook
        facts = Declared(
            mark=declared.mark,
            here=Reporter(declared.mark.environment, self.hook.get_settings().webhook.url),
            is_managed=webhook is not None and webhook.is_possible,
            is_answered=webhook is not None and webhook.wanted,
            replaces=self.task.attach_webhook is True,
            url=declared.url,
            adopt=self.task.adopt,
            monitor_id=selected or None,
            reuse=self.task.if_exists == "reuse",
        )
        self._listed = {monitor_id: monitor.name for monitor_id, monitor in monitors.items()}
        action = decide(facts, [Listed.of(monitor) for monitor in monitors.values()])
        if isinstance(action, Refuse):
            raise MonitorConflictError(action.text)
        return (monitors[action.id], action) if isinstance(action, Use) else None

    def _in_step(self, declared: Declaration, monitor: Monitor, use: Use) -> DeclarationResult:
        if self.task.if_exists == "reuse":
            self.log.info("Monitor %s exists and is used unchanged", monitor.id)
            return DeclarationResult(monitor)
        if declared.webhook and monitor.webhook and not use.reports and self.task.attach_webhook is None:
            self._warn_of_webhook(monitor, declared.webhook)
        stored, wire = monitor.to_wire(), declared.of(use)
        changes = monitor_changes(wire, stored, self._applied_schedule(declared))
        if not changes:
            self.log.info("Monitor %s matches the declaration", monitor.id)
            return DeclarationResult(monitor)
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
        return DeclarationResult(updated, restore=restore, lost=lost)

    def _warn_of_webhook(self, monitor: Monitor, webhook: ManagedWebhook) -> None:
        if not webhook.is_possible:
            self.log.warning(
                "Monitor %s has a webhook, which the service cannot remove. The connection has no Webhook URL with a "
                "secret, so its checks are not reported here",
                monitor.id,
            )
            return
        self.log.warning(
            "Monitor %s reports to an address other than this Airflow's inbox; its webhook is unchanged",
            monitor.id,
        )
        self.log.warning(
            "Set attach_webhook=True to replace it, or attach_webhook=False to silence this warning"
        )

    def _created(self, declared: Declaration) -> DeclarationResult:
        """Create the monitor; find it if the response was lost."""
        former = self._former_monitor()
        try:
            monitor = self.hook.create_monitor(declared.request, extra_body=declared.added)
        except WebDataError as error:
            if not may_have_acted(error):
                raise
            self.log.warning("%s. Checking whether the monitor was created anyway", error.brief())
            self._has_lost_response = True
            found = until_found(lambda: self._found(declared), self.task.replica_wait)
            if found is None:
                raise
            return self._in_step(declared, *found)
        self.log.info("Created monitor %s, next run at %s", monitor.id, monitor.next_run_at)
        if former:
            self.log.warning("%s. Monitor %s replaces it", former, monitor.id)
        return DeclarationResult(monitor, created=True)

    def _former_monitor(self) -> str:
        """Return what happened to the monitor of an earlier run, if this task must create it again."""
        ti = self.context.get("ti")
        if ti is None:
            return ""
        earlier = ti.xcom_pull(key="monitor_id", include_prior_dates=True, map_indexes=ti.map_index)
        if not isinstance(earlier, str):
            return ""
        if earlier not in self._listed:
            return (
                f"Monitor {earlier}, which this task declared earlier, does not exist: it may have been deleted, and "
                "pages were not checked since"
            )
        return (
            f"Monitor {earlier}, which this task declared earlier, is named {self._listed[earlier]!r}. It continues: "
            "delete it if you have renamed it in the DAG"
        )

    def _hold_credit_limit(self, outcome: DeclarationResult, limit: float) -> None:
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
            done = self._undo(outcome)
        except WebDataError:
            self.log.error(
                "Monitor %s could not be changed back and continues, at an estimated %s credits per month",
                monitor.id,
                credits_text(estimate),
            )
            raise
        raise MonitorCostError(
            f"Monitor {monitor.name!r} ({monitor.id}) is estimated at {credits_text(estimate)} credits per month, over "
            f"max_credits_per_month={credits_text(limit)}; {done}",
            {"max_credits_per_month": estimate},
        )

    def _undo(self, outcome: DeclarationResult) -> str:
        """Undo what this attempt did, and return what was done."""
        monitor = outcome.monitor
        if outcome.created:
            # A repeated deletion, whose first response was lost, finds no monitor.
            with suppress(NotFoundError):
                self.hook.delete_monitor(monitor.id)
            return "the task deleted it"
        if outcome.restore is not None:
            if outcome.restore:
                self.hook.update_monitor(monitor.id, extra_body=outcome.restore)
            lost = (
                f", except {', '.join(outcome.lost)}, which the service cannot remove" if outcome.lost else ""
            )
            return f"the task restored its previous values{lost}"
        if self.attempt.number > 1 or self._has_lost_response:
            self.hook.update_monitor(monitor.id, extra_body={"status": "paused"})
            return "the task paused it, because an earlier attempt may have created or changed it"
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
