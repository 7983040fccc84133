"""The operator that starts a check of a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.arguments.monitor_arguments import checked_events, checked_pages
from airflow_provider_webdata.base.monitor_operator import ExistingMonitorOperator
from airflow_provider_webdata.base.service_task import is_deferrable
from airflow_provider_webdata.options import Wait, one_of
from airflow_provider_webdata.states.checks import CHECK_COMPLETED, CheckCriteria
from airflow_provider_webdata.waiting.policy import CHECK_POLL_INTERVAL, CHECK_SAFETY_POLL

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    :param wait: how to wait, see `Wait`. Default: poll every 60 s, or every 1500 s while a delivery is expected, for at
        most 7 days of wall-clock time. With Airflow's task state store (3.3), the time starts with the first attempt
        and includes retries and resumes; on 3.2, it starts again with each attempt.
    :param deferrable: whether to wait in the triggerer, without occupying a worker slot. Default: Airflow's own
        setting. Otherwise, the worker polls.
    :param on_failed: what to do with a failed check: `fail`, `accept`, or `wait` for the next one.
    :param on_partial: the same for a check with some page errors.
    :param on_skipped: the same for a skipped check.
    :param include_pages: return pages of the check under `pages`, with diffs and judgments: True for all, `changed`
        for the changed, new, and removed ones, or a list of statuses.
    :param kwargs: arguments of `ExistingMonitorOperator`; `monitor_id` or `monitor_name` selects the monitor.
    """

    run = "airflow_provider_webdata.runs.monitors.run_monitor:RunMonitorRun"

    def __init__(
        self,
        *,
        if_running: Literal["return", "error"] = "return",
        attach_webhook: bool = False,
        webhook_events: Sequence[str] = (CHECK_COMPLETED,),
        wait_for_completion: bool = False,
        wait: Wait | None = None,
        deferrable: bool | None = None,
        on_failed: Choice = "fail",
        on_partial: Choice = "accept",
        on_skipped: Choice = "fail",
        include_pages: bool | str | Sequence[str] = False,
        **kwargs: Any,
    ) -> None:
        one_of("if_running", if_running, ("return", "error"))
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = is_deferrable(deferrable)
        self.wait = Wait.of_check(wait)
        self.polling_policy = self.wait.policy(CHECK_POLL_INTERVAL, CHECK_SAFETY_POLL)
        self.criteria = CheckCriteria(on_failed=on_failed, on_partial=on_partial, on_skipped=on_skipped)
        self.include_pages = checked_pages(include_pages)
        self.if_running = if_running
        self.attach_webhook = attach_webhook
        self.webhook_events = checked_events(webhook_events)
