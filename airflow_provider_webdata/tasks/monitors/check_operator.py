"""Base of the operators that can wait for a check of the monitor that they deal with."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.options import Wait
from airflow_provider_webdata.runs.check_result import checked_pages
from airflow_provider_webdata.states.checks import CheckCriteria
from airflow_provider_webdata.tasks.deferral import CHECK_TRIGGER, WaitingTask, is_deferrable
from airflow_provider_webdata.waiting.policy import (
    CHECK_POLL_INTERVAL,
    CHECK_SAFETY_POLL,
    polls,
    waiting_for,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.runs.wait import WaitRun
    from airflow_provider_webdata.states.checks import Choice

CHECK_WAIT_SECONDS = 7 * 86400.0


class WaitsForCheck(WaitingTask):
    """Base of the operators that can wait for a check.

    The waiting time is counted by the clock from the first attempt, over retries and resumes, where Airflow's task
    state store (3.3) keeps it; on 3.2 each attempt counts from its own start.

    :param wait_for_completion: whether the task waits until a check is over, and returns the check.
    :param wait: how to wait, see `Wait`. Default: a poll every 60 s, every 1500 s while a delivery is expected; 7 days.
    :param deferrable: whether to wait in the triggerer, without holding a worker; default: Airflow's own setting.
        Otherwise the worker polls.
    :param on_failed: what a failed check means: `fail`, `accept`, or `wait` for the next one.
    :param on_partial: the same for a check with some page errors.
    :param on_skipped: the same for a check that was skipped.
    :param include_pages: return pages of the check under `pages`, with diffs and judgments: True for all, `changed`
        for the changed, new and removed ones, or a list of statuses.
    :param kwargs: arguments of the other base classes.
    """

    # Of the operators of monitors.
    replica_wait: float

    def __init__(
        self,
        *,
        wait_for_completion: bool = False,
        wait: Wait | None = None,
        deferrable: bool | None = None,
        on_failed: Choice = "fail",
        on_partial: Choice = "accept",
        on_skipped: Choice = "wait",
        include_pages: bool | str | Sequence[str] = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = is_deferrable(deferrable)
        self.wait = Wait.of_check(wait)
        self.polling_policy = self.wait.policy(CHECK_POLL_INTERVAL, CHECK_SAFETY_POLL)
        self.criteria = CheckCriteria(on_failed=on_failed, on_partial=on_partial, on_skipped=on_skipped)
        self.include_pages = checked_pages(include_pages)

    def require_deliveries(self) -> None:
        """Fail the task, before anything is billed, if it would wait for deliveries that cannot come."""
        if not self.wait_for_completion or self.polling_policy.wait_by != "webhook":
            return
        from airflow_provider_webdata.hooks.webhooks import can_receive, no_deliveries_reason

        settings = self.hook.get_settings()
        if not can_receive(settings):
            self.refuse(no_deliveries_reason(settings))

    def wait_for_check(self, context: Context, monitor_id: str, check_id: str | None) -> Any:
        """Wait for a check, in the triggerer or here, and return it.

        :param context: the task's context.
        :param monitor_id: the monitor's UUID.
        :param check_id: the check's UUID; None: the next one that finishes.
        """
        after, deadline, resumed = self._span(context)
        if self.deferrable:
            trigger_kwargs = {
                "webdata_conn_id": self.webdata_conn_id,
                "monitor_id": monitor_id,
                "check_id": check_id,
                "after": after.isoformat(),
                "policy": self.polling_policy.serialize(),
                "criteria": self.criteria.serialize(),
            }
            self.wait_run(context).defer_until(deadline, CHECK_TRIGGER, trigger_kwargs, resumed=resumed)
        run = self.wait_run(context)
        event = self._poll_until(run, deadline, monitor_id, check_id, after)
        run.judge(event)
        return self.result_of(event, context)

    def result_of(self, event: Mapping[str, Any], context: Context) -> Any:  # noqa: ARG002
        """Return the check, with wire names, and the requested pages."""
        from airflow_provider_webdata.runs.check_result import check_with_pages, log_end

        log_end(self.log, event)
        return check_with_pages(
            self.hook, event["monitor_id"], event["check_id"], self.include_pages, self.replica_wait
        )

    def _poll_until(
        self, run: WaitRun, deadline: float, monitor_id: str, check_id: str | None, after: datetime
    ) -> dict[str, Any]:
        from airflow_provider_webdata.runs.check_poll import poll_check
        from airflow_provider_webdata.states.check_queue import CheckQueue

        queue = CheckQueue(self.criteria, after, check_id)
        what = f"check {check_id}" if check_id else f"a check that finished after {after.isoformat()}"
        what = f"{what} of monitor {monitor_id}"
        self.log.info(waiting_for(what, polls(self.polling_policy.poll_interval), deadline))
        while True:
            with run.patiently():
                if event := poll_check(self.hook, monitor_id, queue, via="polling"):
                    return event
            left = deadline - time.time()
            if left <= 0:
                message = f"Timed out waiting for {what} ({self.wait.seconds(CHECK_WAIT_SECONDS):g} s)"
                return {"status": "timeout", "message": message}
            time.sleep(min(self.polling_policy.poll_interval, left))

    def _span(self, context: Context) -> tuple[datetime, float, bool]:
        """Return when the wait began, when it ends (seconds since the epoch), and whether it is resumed."""
        from airflow_provider_webdata.runs.intent import Intent

        now = datetime.now(timezone.utc)
        memory = Intent(context, "webdata_wait")
        began, until = memory.recall("after"), memory.recall("deadline")
        if began is not None and until is not None:
            return datetime.fromisoformat(began), float(until), True
        deadline = now.timestamp() + self.wait.seconds(CHECK_WAIT_SECONDS)
        if memory.began and memory.run_start is not None:
            # Nothing says when the first attempt began to wait; what ended meanwhile must not be lost.
            return memory.run_start, deadline, True
        memory.remember(after=now.isoformat(), deadline=deadline)
        return now, deadline, False
