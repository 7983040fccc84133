# SPDX-License-Identifier: Apache-2.0
"""The operator that declares a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import conf

from airflow_provider_webdata.base.arguments.waits import check_wait
from airflow_provider_webdata.base.links import LINKS
from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.options import REPLICA_WAIT_SECONDS, one_of
from airflow_provider_webdata.states.check_arguments import checked_events, checked_pages
from airflow_provider_webdata.states.checks import CHECK_COMPLETED, CheckCriteria

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import timedelta

    from airflow.sdk import BaseOperatorLink

    from airflow_provider_webdata.states.checks import Choice


class WebDataCreateMonitorOperator(
    WebDataOperator,
    fields=RequestFields(
        "MonitorCreateRequest",
        own=(
            "if_exists",
            "monitor_id",
            "adopt",
            "max_credits_per_month",
            "allow_unlimited_crawl",
            "attach_webhook",
            "webhook_events",
            "wait_for_completion",
            "deferrable",
            "poll_interval",
            "wait_timeout",
            "on_failed",
            "on_partial",
            "on_skipped",
            "include_pages",
            "replica_wait",
        ),
    ),
):
    """Declare a monitor. Idempotent: runs one after another leave one monitor.

    The task finds its monitor in the service's list: by the mark that it leaves in the monitor's webhook (environment,
    DAG, task, and declared name), otherwise by the name. A monitor that was renamed in the service's dashboard is
    found by its mark, and named as declared again. A monitor of another task or another Airflow is refused without
    `adopt`. A monitor without a managed webhook has no mark: only its name identifies it. All arguments up to
    `webhook` are templated fields of POST /v2/monitor. Omitted fields are not sent and not compared with the stored
    monitor.

    The task compares the existing monitor with the declared one and patches only differences. Targets keep their ids
    and therefore their history. Values that the service normalizes or adds are not differences.
    `airflow_provider_webdata.api.monitor_diff.monitor_changes` documents how a text schedule is compared with the
    stored cron.

    A retry after a crash or a lost response finds the monitor of the first attempt. It repeats the lookup for up to
    `replica_wait`, because the service's list lags behind; with a longer lag, the monitor is created twice, and the
    next run fails and lists both ids. Mapped tasks must have different names.

    If the connection has a public webhook URL and a secret, the monitor reports to this Airflow's inbox, unless
    `webhook` is given. The key in its webhook URL stays the same for the lifetime of the monitor.

    XCom: the monitor, with wire names; header values are replaced by `***`. The key `monitor_id` contains its id. With
    `wait_for_completion`, the return value is the check, and the key `monitor`, pushed before the wait, contains the
    monitor. For a text schedule, the key `applied_schedule` contains the `text` and the `cron` that the service derived
    from it.

    :param name: name of the monitor, 1 to 256 characters.
    :param schedule: a cron expression, a phrase such as `daily at 9:00`, or a mapping with `cron` or `text`, and
        `timezone`.
    :param targets: 1 to 50 mappings with `type` `scrape`, `crawl`, or `search`, or URLs, which become one `scrape`
        target.
    :param goal: description of the changes that matter, at most 2000 characters; required for search targets.
    :param judge_enabled: judge changes against the goal. Default: true if a goal is set.
    :param notification: recipients of notifications: `email` with `enabled`, `includeDiffs`, `recipients`; `slack`.
    :param retention_days: retention in days, 1 to 365. Default: 30.
    :param webhook: endpoint that receives page and check events: `url`, `events`, `headers`, `metadata`.
    :param if_exists: `update` (default) patches what differs in an existing monitor; `reuse` returns it unchanged.
    :param monitor_id: UUID of the existing monitor (templated).
    :param adopt: take over a monitor that another task or another Airflow declares, so that it reports to this Airflow.
        The other task is then refused: remove its declaration, and set `adopt` once.
    :param max_credits_per_month: fail if the service estimates more (templated). The task then deletes a monitor that
        it created, restores the previous values of a monitor that it updated, and after an attempt that died or lost
        a response, pauses it.
    :param allow_unlimited_crawl: accept a crawl target without `crawlOptions.limit`, for which the service reserves
        10,000 credits per check.
    :param attach_webhook: make the monitor report to this Airflow. None (default): if the connection has a webhook URL,
        the inbox answers, `webhook` is not given, and the monitor has no other webhook. True: fail if the connection
        has no webhook URL, and replace a webhook that reports to no Airflow. False: never.
    :param webhook_events: events to report to this Airflow: `monitor.check.completed` (default), `monitor.page`.
    :param wait_for_completion: whether to wait until a check has ended and return it.
    :param deferrable: whether to wait in the triggerer, without occupying a worker slot. Default: Airflow's
        `[operators] default_deferrable`. Otherwise, the worker polls.
    :param poll_interval: seconds between polls, or a timedelta, at least 1. While a delivery to the inbox is expected,
        the triggerer polls every 1500 s (60 s with a self-hosted server) in case it is lost. Default: 60.
    :param wait_timeout: seconds to wait, or a timedelta, more than 0. It is wall-clock time from the first attempt, and
        includes retries and resumes. Default: 7 days.
    :param on_failed: what to do with a failed check: `fail`, `accept`, or `wait` for the next one.
    :param on_partial: the same for a check with some page errors.
    :param on_skipped: the same for a skipped check.
    :param include_pages: return pages of the check under `pages`, with diffs and judgments: True for all, `changed`
        for the changed, new, and removed ones, or a list of statuses.
    :param replica_wait: maximum seconds to wait for a monitor or check that should exist. The service reads from a
        replica, where new objects may be missing for a moment. 0: read once.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.monitors.declare:DeclareMonitorRun"
    operator_extra_links: Collection[BaseOperatorLink] = LINKS

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
        schedule: Mapping[str, Any] | str,
        targets: Sequence[Mapping[str, Any] | str],
        goal: str | None = None,
        judge_enabled: bool | str | None = None,
        notification: Mapping[str, Any] | None = None,
        retention_days: int | str | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        # end of fields
        if_exists: Literal["update", "reuse"] = "update",
        monitor_id: str | None = None,
        adopt: bool = False,
        max_credits_per_month: float | str | None = None,
        allow_unlimited_crawl: bool = False,
        attach_webhook: bool | None = None,
        webhook_events: Sequence[str] = (CHECK_COMPLETED,),
        wait_for_completion: bool = False,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float | timedelta | None = None,
        wait_timeout: float | timedelta | None = None,
        on_failed: Choice = "fail",
        on_partial: Choice = "accept",
        on_skipped: Choice = "wait",
        include_pages: bool | str | Sequence[str] = False,
        replica_wait: float | timedelta = REPLICA_WAIT_SECONDS,
        **kwargs: Any,
    ) -> None:
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
        self.adopt = adopt
        self.max_credits_per_month = max_credits_per_month
        self.allow_unlimited_crawl = allow_unlimited_crawl
        self.attach_webhook = attach_webhook
        self.webhook_events = webhook_events
        self.wait_for_completion = wait_for_completion
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.wait_timeout = wait_timeout
        self.on_failed = on_failed
        self.on_partial = on_partial
        self.on_skipped = on_skipped
        self.include_pages = include_pages
        self.replica_wait = replica_wait
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        one_of("if_exists", self.if_exists, ("update", "reuse"))
        if self.attach_webhook and self.webhook is not None:
            raise ArgumentError(
                "attach_webhook=True attaches the managed webhook; omit webhook or attach_webhook"
            )
        seconds("replica_wait", self.replica_wait, least=0)
        check_wait(self.poll_interval, self.wait_timeout)
        self._criteria()
        checked_pages(self.include_pages)
        checked_events(self.webhook_events)

    def _criteria(self) -> CheckCriteria:
        return CheckCriteria(on_failed=self.on_failed, on_partial=self.on_partial, on_skipped=self.on_skipped)
