"""The wait for a check of a monitor."""

from __future__ import annotations

import time
from datetime import timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.runs.check_result import check_with_pages, log_end
from airflow_provider_webdata.runs.sensor import SensorRun
from airflow_provider_webdata.states.check_queue import CheckQueue
from airflow_provider_webdata.states.checks import CHECK_COMPLETED
from airflow_provider_webdata.waiting.check_target import CheckTarget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context


class CheckSensorRun(SensorRun):
    """One attempt of a sensor that waits for a check."""

    def __init__(self, task: Any, context: Context) -> None:
        super().__init__(task, context)
        self._began: float | None = None
        self._polled: float | None = None

    @cached_property
    def target(self) -> CheckTarget:
        """The check."""
        task = self.task
        queue = CheckQueue(task.criteria, task.after_moment(self.context), checked_text(task.check_id))
        return CheckTarget(task.named_monitor(), queue, self.polling_policy(), self.log)

    def look(self) -> dict[str, Any] | None:
        """Look once: at the service, or with `Wait(by="webhook")` at the inbox first."""
        if self.task.polling_policy.wait_by != "webhook":
            return super().look()
        was_delivered = self._was_delivered()
        if not was_delivered and not self._safety_poll_is_due():
            return None
        event = super().look()
        return {**event, "via": "webhook"} if event is not None and was_delivered else event

    def result_of(self, event: Mapping[str, Any]) -> Any:
        """Return the check with the requested pages."""
        log_end(self.log, event)
        return check_with_pages(self.hook, event["monitor_id"], event["check_id"], self.task.include_pages)

    def _was_delivered(self) -> bool:
        task = self.task
        check_id, after = checked_text(task.check_id), task.after_moment(self.context)
        about: dict[str, Any] = (
            {"job_ids": [check_id]} if check_id else {"monitor_ids": [task.named_monitor()]}
        )
        with self.hook.inbox() as inbox:
            page = inbox.search(
                **about,
                events=[CHECK_COMPLETED],
                received_after=None if check_id else after.isoformat(),
                limit=1,
            )
        return bool(page.deliveries)

    def _safety_poll_is_due(self) -> bool:
        """Return whether it is time to poll the service though no delivery came.

        In reschedule mode, each poke is another process that knows nothing but when the first one was.
        """
        task, now = self.task, time.time()
        first = self.attempt.first_reschedule if task.reschedule else None
        began = first.astimezone(timezone.utc).timestamp() if first else self._began
        safety = task.polling_policy.safety_poll
        if began is None:
            due = True
        elif first:
            due = (now - began) % safety < 2 * task.poke_interval
        else:
            due = self._polled is None or now - self._polled >= safety
        due = due or (began is not None and now - began + 2 * task.poke_interval > task.timeout)
        self._began = self._began or now
        if due:
            self._polled = now
        return due
