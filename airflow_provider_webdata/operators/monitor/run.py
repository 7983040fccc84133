# SPDX-License-Identifier: Apache-2.0
"""The operator that starts a check of a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import conf

from airflow_provider_webdata.base.arguments.waits import check_wait
from airflow_provider_webdata.base.monitor_operator import ExistingMonitorOperator
from airflow_provider_webdata.options import one_of
from airflow_provider_webdata.states.check_arguments import checked_events, checked_pages
from airflow_provider_webdata.states.checks import CHECK_COMPLETED, CheckCriteria

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_webdata.states.checks import Choice


class WebDataRunMonitorOperator(ExistingMonitorOperator):
    """Start a check of a monitor now. Bills credits.

    A retry after a crash or a lost response finds the check of the first attempt instead of starting another.

    XCom: the check, with wire names; with `wait_for_completion`, the finished check with the requested pages. The keys
    `check_id` and `monitor_id` contain the ids, even while the task waits.

    :param if_running: what to do if a check is already running: `return` it (default; with `wait_for_completion`, wait
        for it) or `error`.
    :param attach_webhook: patch the monitor before the check, if necessary and if the inbox answers, so that it reports
        to this Airflow. Default: leave the monitor unchanged.
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
    :param kwargs: arguments of `ExistingMonitorOperator`; `monitor_id` or `monitor_name` selects the monitor.
    """

    _run_path = "airflow_provider_webdata.runs.monitors.run_monitor:RunMonitorRun"

    def __init__(
        self,
        *,
        if_running: Literal["return", "error"] = "return",
        attach_webhook: bool = False,
        webhook_events: Sequence[str] = (CHECK_COMPLETED,),
        wait_for_completion: bool = False,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float | timedelta | None = None,
        wait_timeout: float | timedelta | None = None,
        on_failed: Choice = "fail",
        on_partial: Choice = "accept",
        on_skipped: Choice = "fail",
        include_pages: bool | str | Sequence[str] = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.wait_timeout = wait_timeout
        self.on_failed = on_failed
        self.on_partial = on_partial
        self.on_skipped = on_skipped
        self.include_pages = include_pages
        self.if_running = if_running
        self.attach_webhook = attach_webhook
        self.webhook_events = webhook_events
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        one_of("if_running", self.if_running, ("return", "error"))
        check_wait(self.poll_interval, self.wait_timeout)
        self._criteria()
        checked_pages(self.include_pages)
        checked_events(self.webhook_events)

    def _criteria(self) -> CheckCriteria:
        return CheckCriteria(on_failed=self.on_failed, on_partial=self.on_partial, on_skipped=self.on_skipped)
