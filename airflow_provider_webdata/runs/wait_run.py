# SPDX-License-Identifier: Apache-2.0
"""Base of the runs that wait: deferred, or in the worker."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)
from msgspec.structs import replace

from airflow_provider_webdata.common.clean_text import cleaned
from airflow_provider_webdata.common.page_urls import delivery_page, monitor_page
from airflow_provider_webdata.common.remedies import advised
from airflow_provider_webdata.hooks.task_metrics import count
from airflow_provider_webdata.runs.event_loop import run_aside
from airflow_provider_webdata.runs.failures import CheckFailedError, JobFailedError, WaitTimeoutError
from airflow_provider_webdata.runs.run import Run
from airflow_provider_webdata.states.answers import is_survived
from airflow_provider_webdata.states.outcomes import CheckOutcome, DeliveryOutcome, JobOutcome, OutcomeT
from airflow_provider_webdata.states.shortfalls import xcom_of
from airflow_provider_webdata.triggers.resume import ResumeTrigger
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.policy import TIMEOUT_MARGIN_SECONDS
from airflow_provider_webdata.waiting.wait import wait

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from airflow_provider_webdata.api.errors import WebDataError
    from airflow_provider_webdata.base.service_task import ServiceTask
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.states.outcomes import WaitOutcome
    from airflow_provider_webdata.triggers.base.wait_trigger import WaitTrigger
    from airflow_provider_webdata.waiting.target import Target

LEAST_WAIT_SECONDS = 30.0
"""Minimum time of a wait that is resumed past its deadline, to find events that happened meanwhile."""


class WaitRun(Run, Generic[OutcomeT]):
    """A task that waits for a job, check, or delivery."""

    outcome_class: type[OutcomeT]
    """The class of the wait's outcome."""

    is_billed = False
    """Whether the wait is for something that was billed, so that a refusal of the connection is not final."""

    def result_of(self, outcome: OutcomeT) -> Any:
        """Return the task's result.

        :param outcome: the outcome of the wait; its `status` is `done`.
        """
        raise NotImplementedError

    def defer_until(
        self,
        deadline: float,
        trigger_class: type[WaitTrigger],
        trigger_kwargs: Mapping[str, Any],
        *,
        resumed: bool = False,
    ) -> NoReturn:
        """Defer the task until the trigger yields its event or the deadline passes.

        :param deadline: seconds since the epoch.
        :param trigger_kwargs: the trigger's arguments except `deadline`.
        :param resumed: True if an earlier attempt already waited; at least `LEAST_WAIT_SECONDS` then remain.
        """
        if resumed:
            deadline = max(deadline, time.time() + LEAST_WAIT_SECONDS)
        self._defer(trigger_class(**trigger_kwargs, deadline=deadline), deadline)

    def resume(self, event: Mapping[str, Any]) -> Any:
        """Finish a deferred task after its wait.

        :param event: the stored outcome.
        :raises AirflowSkipException: the check does not meet the sensor's conditions, and `otherwise` is `skip`.
        :raises AirflowFailException: a retry cannot succeed.
        :raises WaitTimeoutError: the wait timed out.
        """
        return self.resume_with(self.outcome_class.deserialize(event))

    def resume_with(self, outcome: OutcomeT) -> Any:
        """Finish the task with the outcome of its wait."""
        self.judge(outcome)
        limited = outcome.limited_since
        # A reschedule before the wait is not a part of this limit.
        since = datetime.fromisoformat(limited) if limited else datetime.now(timezone.utc)
        try:
            with self.calling(limited_since=since):
                return self.result_of(outcome)
        except AirflowRescheduleException as later:
            # A task that Airflow reschedules starts from the beginning, without its XComs and without the event.
            limited_since = outcome.limited_since or datetime.now(timezone.utc).isoformat()
            when = later.reschedule_date.timestamp()
            self._defer(ResumeTrigger(when, replace(outcome, limited_since=limited_since).serialize()), when)

    def judge(self, outcome: OutcomeT) -> None:
        """Return if an outcome is `done`; otherwise end the task with its status."""
        task = self.task
        _show(task, outcome)
        status, text = outcome.status, outcome.message
        if status == "done":
            self.is_billed = not isinstance(outcome, DeliveryOutcome)
            return
        if status == "skip":
            check_id = outcome.check_id if isinstance(outcome, CheckOutcome) else ""
            reason = f"Check {check_id} does not meet the conditions: {text}"
            raise AirflowSkipException(cleaned(f"{reason}. The task is skipped (otherwise='skip')"))
        if status == "timeout":
            raise self.explained(WaitTimeoutError(text))
        if status == "failed":
            self.log.error("%s", text)
            if isinstance(outcome, JobOutcome):
                self.fail_job(text)
            raise self.explained(CheckFailedError(text))
        text, remedy = text or f"The wait ended with the unknown status {status}", self.remedy_of(outcome)
        if outcome.verdict == "never":
            raise AirflowFailException(advised(text, task.webdata_conn_id, remedy))
        raise AirflowException(advised(text, task.webdata_conn_id, remedy))

    def remedy_of(self, outcome: OutcomeT) -> str | None:  # noqa: ARG002
        """Return the next step after an error of the wait if it is not that of the error's code."""
        return None

    def fail_job(self, text: str) -> NoReturn:
        """Fail a task whose job failed or was canceled, without a retry.

        :param text: the outcome of the job.
        """
        self.refuse(JobFailedError(text))

    def wait_here(self, target: Target[OutcomeT], deadline: float, *, resumed: bool = False) -> OutcomeT:
        """Wait in this worker by polling, and return the outcome; the parameters are those of `defer_until`."""
        if resumed:
            deadline = max(deadline, time.time() + LEAST_WAIT_SECONDS)
        return self.with_hub(lambda hub: wait(hub, target, deadline))  # type: ignore[no-any-return]

    def with_hub(self, work: Callable[[Hub], Coroutine[Any, Any, Any]]) -> Any:
        """Run a coroutine with a hub of the connection, in a thread; signals interrupt it."""
        settings = self.hook.get_settings()

        async def run() -> tuple[Any, ConnectionSettings]:
            hub = Hub(settings.conn_id, settings, lambda name, **tags: count(name, 1, {}, **tags))
            try:
                return await work(hub), await hub.connection.settings()
            finally:
                await hub.close()

        found, current = run_aside(run())
        if current != settings:
            # The connection changed during the wait: another hook reads it again.
            self.hook.close()
            self.hook = self.task.hook = type(self.hook)(settings.conn_id)
        return found

    def fail(self, error: WebDataError) -> NoReturn:
        """Fail the attempt with an error of the service. A retry attaches to what was billed, even after a refusal."""
        record = self.memory.record
        is_billed = self.is_billed or record.started is not None or record.wait_since is not None
        if is_billed and is_survived(error):
            raise AirflowException(str(self.explained(error))) from None
        super().fail(error)

    def _defer(self, trigger: Any, until: float) -> NoReturn:
        # The trigger ends first, with an event that reports the last observed state.
        left = max(until - time.time(), 0.0)
        timeout = timedelta(seconds=left + TIMEOUT_MARGIN_SECONDS)
        # The resumed task is a new run, whose XCom `incomplete` replaces this one's.
        lacks = xcom_of(self.shortfalls.values())
        kwargs: dict[str, Any] = {"lacks": lacks} if lacks else {}
        if self.memory.is_lasting:
            self.memory.note()
        else:
            kwargs["record"] = self.memory.carried()
        self.task.defer(trigger=trigger, method_name="execute_complete", kwargs=kwargs, timeout=timeout)
        raise AssertionError("unreachable: defer() raises")


def _show(task: ServiceTask, outcome: WaitOutcome) -> None:
    """Link the task to the page of an outcome's object."""
    if isinstance(outcome, JobOutcome) and outcome.job_id:
        task._webdata_job_id = outcome.job_id
    if isinstance(outcome, CheckOutcome) and outcome.check_id:
        task._webdata_page = monitor_page(task.webdata_conn_id, outcome.monitor_id, outcome.check_id)
    if isinstance(outcome, DeliveryOutcome) and outcome.delivery_id:
        task._webdata_page = delivery_page(outcome.delivery_id)
