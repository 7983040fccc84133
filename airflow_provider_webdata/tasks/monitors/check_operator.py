"""Base of the operators that can wait for a check of the monitor that they deal with."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_webdata.tasks.arguments import seconds
from airflow_provider_webdata.tasks.deferral import (
    LEAST_WAIT_SECONDS,
    TIMEOUT_MARGIN_SECONDS,
    WaitingTask,
    is_deferrable,
)
from airflow_provider_webdata.tasks.monitors.check_wait import CheckWait, checked_pages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.states.checks import Choice
    from airflow_provider_webdata.tasks.monitors.check_wait import WaitFor

WAIT_TIMEOUT = timedelta(days=7)


class WaitsForCheck(WaitingTask):
    """Base of the operators that can wait for a check.

    The waiting time is counted by the clock from the first try, over retries and resumes, where Airflow's task
    state store (3.3) keeps it; on 3.2 each try counts anew.

    :param wait_for_completion: whether the task goes on until a check is over, and returns the check.
    :param wait_for: `webhook`, `polling`, or `auto` (default): by webhook where the connection can receive
        deliveries and the monitor reports to them, else by polling.
    :param deferrable: whether to wait in the triggerer, without holding a worker; default: Airflow's own setting.
        Otherwise the worker polls, whatever `wait_for` says.
    :param poll_interval: seconds between two looks at the service when polling; a number or a timedelta.
    :param safety_poll: seconds between two looks at the service while waiting for a delivery, which may be lost.
    :param timeout: seconds to wait, or a timedelta; default 7 days.
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
        wait_for: WaitFor = "auto",
        deferrable: bool | None = None,
        poll_interval: float | timedelta = 60.0,
        safety_poll: float | timedelta = 1500.0,
        timeout: float | timedelta = WAIT_TIMEOUT,
        on_failed: Choice = "fail",
        on_partial: Choice = "accept",
        on_skipped: Choice = "wait",
        include_pages: bool | str | Sequence[str] = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = is_deferrable(deferrable)
        self.check_wait = CheckWait(
            wait_for=wait_for,
            poll_interval=poll_interval,  # type: ignore[arg-type]
            safety_poll=safety_poll,  # type: ignore[arg-type]
            on_failed=on_failed,
            on_partial=on_partial,
            on_skipped=on_skipped,
        )
        self.timeout = seconds("timeout", timeout)
        self.include_pages = checked_pages(include_pages)

    def refuse_to_wait_in_vain(self) -> None:
        """Fail the task if it would wait for deliveries that cannot come, before anything is paid for."""
        if not self.wait_for_completion or self.check_wait.wait_for != "webhook":
            return
        from airflow_provider_webdata.hooks.webhooks import can_receive, why_none_comes

        settings = self.hook.get_settings()
        if not can_receive(settings):
            self.refuse(why_none_comes(settings))

    def wait_for_check(self, context: Context, monitor_id: str, check_id: str | None) -> Any:
        """Wait for a check, in the triggerer or here, and return it.

        :param context: the task's context.
        :param monitor_id: the monitor's UUID.
        :param check_id: the check's UUID; None: the next one that finishes.
        """
        after, deadline, resumed = self._span(context)
        if self.deferrable:
            if resumed:
                deadline = max(deadline, time.time() + LEAST_WAIT_SECONDS)
            from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger

            self.defer(
                trigger=WebDataMonitorCheckTrigger(
                    webdata_conn_id=self.webdata_conn_id,
                    monitor_id=monitor_id,
                    check_id=check_id,
                    after=after.isoformat(),
                    deadline=deadline,
                    **self.check_wait.trigger_kwargs(),
                ),
                method_name="execute_complete",
                timeout=timedelta(seconds=max(deadline - time.time(), 0) + TIMEOUT_MARGIN_SECONDS),
            )
        event = self._watch(monitor_id, check_id, after, deadline)
        self.judge(event)
        return self.result_of(event, context)

    def result_of(self, event: Mapping[str, Any], context: Context) -> Any:  # noqa: ARG002
        """Return the check, with wire names, and the pages that were asked for."""
        from airflow_provider_webdata.tasks.monitors.check_wait import check_with_pages

        return check_with_pages(
            self.hook, event["monitor_id"], event["check_id"], self.include_pages, self.replica_wait
        )

    def time_out(self, message: str) -> NoReturn:
        """Fail for good: the time that was given is over on every further try too."""
        self.refuse(message)

    def _watch(
        self, monitor_id: str, check_id: str | None, after: datetime, deadline: float
    ) -> dict[str, Any]:
        from airflow_provider_webdata.tasks.monitors.check_wait import look_for_check

        wanted = self.check_wait.wanted(check_id, after)
        while True:
            with self.patiently():
                if event := look_for_check(self.hook, monitor_id, wanted, via="polling"):
                    return event
            left = deadline - time.time()
            if left <= 0:
                what = f"check {check_id}" if check_id else f"a check that finished after {after.isoformat()}"
                return {
                    "status": "timeout",
                    "message": f"No end of {what} of monitor {monitor_id} was seen within {self.timeout:g} s",
                }
            time.sleep(min(self.check_wait.poll_interval, left))

    def _span(self, context: Context) -> tuple[datetime, float, bool]:
        """Return when the wait began, when it ends (seconds since the epoch), and whether it is resumed."""
        from airflow_provider_webdata.tasks.intent import Intent

        now = datetime.now(timezone.utc)
        memory = Intent(context, "webdata_wait")
        if memory.remembers:
            began = datetime.fromisoformat(str(memory.recall("after")))
            return began, float(memory.recall("deadline")), True
        deadline = now.timestamp() + self.timeout
        if memory.began and memory.run_start is not None:
            # Nothing says when the first try began to wait; what ended meanwhile must not be lost.
            return memory.run_start, deadline, True
        memory.remember(after=now.isoformat(), deadline=deadline)
        return now, deadline, False
