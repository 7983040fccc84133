"""The operator that declares a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.runs.intent import Intent
from airflow_provider_webdata.runs.managed_webhook import (
    DECLARED_BY,
    ManagedWebhook,
    checked_events,
    origin_of,
)
from airflow_provider_webdata.states.checks import CHECK_COMPLETED
from airflow_provider_webdata.tasks.monitors.check_operator import WaitsForCheck
from airflow_provider_webdata.tasks.monitors.credit_guard import credit_limit, refuse_unlimited_crawls
from airflow_provider_webdata.tasks.monitors.declaration import (
    APPLIED_SCHEDULE,
    Declaration,
    DeclaredMonitorOperator,
    cron_of,
)
from airflow_provider_webdata.tasks.operator import RequestFields, WebDataOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import Monitor, MonitorCreateRequest

_IF_EXISTS = ("update", "reuse", "error", "create")


class WebDataCreateMonitorOperator(
    WaitsForCheck,
    DeclaredMonitorOperator,
    fields=RequestFields(
        "MonitorCreateRequest",
        own=(
            "if_exists",
            "monitor_id",
            "max_credits_per_month",
            "allow_unlimited_crawl",
            "attach_webhook",
            "webhook_events",
        ),
    ),
):
    """Declare a monitor: the task leaves exactly one behind, however often it runs.

    Identity is the monitor's name, which the service does not keep unique: two of the same name are an error that
    names both ids, unless `monitor_id` says which one is meant. Every argument up to `webhook` is a field of
    POST /v2/monitor, templated; what is left out is not sent, and not compared with what is stored.

    The existing monitor is compared with the declared one, and only differences are patched, with the ids of its
    targets, so that their history stays. Values that the service normalizes or fills in are no difference.
    `airflow_provider_webdata.api.monitor_diff.monitor_changes` documents how a text schedule is compared with the
    stored cron.

    A retry after a crash, or after an answer that got lost, finds what the first attempt made: by its id where
    Airflow's task state store (3.3) still got it, else by its name, looked up for a while since the service's list
    lags behind. With `if_exists="create"`, where a name alone says nothing, it is the monitor of that name that
    was not there before the first attempt (3.3), or that was created since the DAG run began with the declared
    content (3.2). Mapped tasks that create monitors at the same time should give them different names.

    Where the connection has a public webhook URL and a secret, the monitor reports to this Airflow's inbox by
    itself, unless a `webhook` is given; the key in its webhook's address stays the same for as long as the monitor
    lives.

    XCom: the monitor, with wire names; header values are replaced by `***`. The key `monitor_id` holds its id. With
    `wait_for_completion`, the return value is the check, and the key `monitor`, pushed before the wait, holds the
    monitor. For a text schedule, the key `applied_schedule` holds the cron that the service made of it.

    :param name: 1 to 256 characters.
    :param schedule: `cron` or `text`, and `timezone`.
    :param targets: 1 to 50 mappings with `type` `scrape`, `crawl` or `search`.
    :param goal: description of the changes that matter, at most 2000 characters; required for search targets.
    :param judge_enabled: whether changes are judged against the goal. Default: where there is a goal.
    :param notification: whom to tell: `email` with `enabled`, `includeDiffs`, `recipients`; `slack`.
    :param retention_days: 1 to 365. Default: 30.
    :param webhook: where page and check events go: `url`, `events`, `headers`, `metadata`.
    :param if_exists: `update` (default): patch what differs. `reuse`: return it unchanged. `error`: fail.
        `create`: make another one per DAG run.
    :param monitor_id: UUID of the monitor that is meant, for `update` and `reuse` (templated).
    :param max_credits_per_month: fail if the service estimates more (templated). A monitor that was created for
        it is deleted again, one that was changed gets its former values back.
    :param allow_unlimited_crawl: accept a crawl target without `crawlOptions.limit`, for which the service
        reserves 10,000 credits a check.
    :param attach_webhook: make the monitor report to this Airflow. None (default): if the connection can receive
        deliveries, `webhook` is not given and the monitor reports nowhere else yet. True: fail if the connection
        cannot, and replace another webhook of the monitor. False: never.
    :param webhook_events: what to report then: `monitor.check.completed` (default), `monitor.page`.
    :param kwargs: arguments of `WaitsForCheck`, `MonitorOperator`, `WebDataOperator` and `BaseOperator`.
    """

    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "monitor_id",
        "max_credits_per_month",
    )

    def __init__(
        self,
        *,
        # fields of MonitorCreateRequest, written by tools/operator_fields.py
        name: str,
        schedule: Mapping[str, Any],
        targets: Sequence[Mapping[str, Any]],
        goal: str | None = None,
        judge_enabled: bool | str | None = None,
        notification: Mapping[str, Any] | None = None,
        retention_days: int | str | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        # end of fields
        if_exists: Literal["update", "reuse", "error", "create"] = "update",
        monitor_id: str | None = None,
        max_credits_per_month: float | str | None = None,
        allow_unlimited_crawl: bool = False,
        attach_webhook: bool | None = None,
        webhook_events: Sequence[str] = (CHECK_COMPLETED,),
        **kwargs: Any,
    ) -> None:
        if if_exists not in _IF_EXISTS:
            raise ArgumentError(f"if_exists must be one of {', '.join(_IF_EXISTS)} (given: {if_exists!r})")
        if monitor_id is not None and if_exists in {"error", "create"}:
            raise ArgumentError(
                f"monitor_id names an existing monitor, which if_exists={if_exists!r} has no use for"
            )
        if attach_webhook and webhook is not None:
            raise ArgumentError(
                "attach_webhook=True attaches the managed webhook; leave out webhook, or attach_webhook"
            )
        super().__init__(**kwargs)
        # fields of MonitorCreateRequest, written by tools/operator_fields.py
        self.name = name
        self.schedule = schedule
        self.targets = targets
        self.goal = goal
        self.judge_enabled = judge_enabled
        self.notification = notification
        self.retention_days = retention_days
        self.webhook = webhook
        # end of fields
        self.if_exists = if_exists
        self.monitor_id = monitor_id
        self.max_credits_per_month = max_credits_per_month
        self.allow_unlimited_crawl = allow_unlimited_crawl
        self.attach_webhook = attach_webhook
        self.webhook_events = checked_events(webhook_events)

    def call_service(self, context: Context) -> Any:
        """Bring the monitor in step with the declaration; return it, or the check that was waited for."""
        from airflow_provider_webdata.api.models import MonitorCreateRequest

        request = self.checked_request(MonitorCreateRequest, "create monitor")
        limit = credit_limit(self.max_credits_per_month)
        if not self.allow_unlimited_crawl:
            refuse_unlimited_crawls(request)
        extra = self.checked_extra_body("create monitor") or {}
        declared = Declaration(request, extra, self._managed_webhook(request, extra, context))
        self.require_deliveries()

        intent = Intent(context, "webdata_monitor")
        outcome = self.existing_monitor(declared, intent, context) or self.created_monitor(declared, intent)
        if limit is not None:
            self.hold_credit_limit(outcome, limit, intent)
        self._remember_schedule(declared, outcome.monitor, context)
        return self._answer(outcome.monitor, context)

    def _managed_webhook(
        self, request: MonitorCreateRequest, extra: Mapping[str, Any], context: Context
    ) -> ManagedWebhook | None:
        if request.webhook is None and "webhook" not in extra:
            origin = origin_of(context, DECLARED_BY)
            managed = ManagedWebhook(self.hook, self.attach_webhook, self.webhook_events, origin)
            # What is missing in the connection is said before any request.
            return managed if managed.new() else None
        if self.attach_webhook:
            self.refuse("attach_webhook=True, but a webhook is given too; leave out one of them")
        return None

    def _answer(self, monitor: Monitor, context: Context) -> Any:
        from airflow_provider_webdata.page_urls import monitor_page
        from airflow_provider_webdata.runs.failures import MonitorConflictError

        self.webdata_page = monitor_page(self.webdata_conn_id, monitor.id)
        wire = monitor.to_wire(mask_headers=True)
        if monitor.status == "paused":
            self.log.warning("Monitor %s is paused and makes no checks", monitor.id)
        self.push(context, monitor_id=monitor.id)
        if not self.wait_for_completion:
            return wire
        if monitor.status == "paused":
            raise MonitorConflictError(
                f"Monitor {monitor.id} is paused: resume it before waiting for its next check"
            )
        self.push(context, monitor=wire)
        return self.wait_for_check(context, monitor.id, None)

    def _remember_schedule(self, declared: Declaration, monitor: Monitor, context: Context) -> None:
        text = declared.schedule_text
        if text is not None and self.if_exists != "reuse":
            self.push(context, **{APPLIED_SCHEDULE: {"text": text, "cron": cron_of(monitor)}})
