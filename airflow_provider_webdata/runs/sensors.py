# SPDX-License-Identifier: Apache-2.0
"""Runs of the sensors."""

from __future__ import annotations

import time
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import PokeReturnValue

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.api.retry import reschedule_delay
from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.runs.failures import WaitTimeoutError
from airflow_provider_webdata.runs.jobs.results import JobResult
from airflow_provider_webdata.runs.monitors.check import CheckWaitRun, check_with_pages
from airflow_provider_webdata.runs.wait_run import WaitRun
from airflow_provider_webdata.states.answers import is_refusal
from airflow_provider_webdata.states.check_queue import CheckQueue
from airflow_provider_webdata.states.outcomes import CheckOutcome, DeliveryOutcome, JobOutcome, OutcomeT
from airflow_provider_webdata.waiting.check_target import CheckTarget
from airflow_provider_webdata.waiting.delivery_target import DeliveryTarget, fields_of
from airflow_provider_webdata.waiting.job_target import JobTarget
from airflow_provider_webdata.waiting.policy import CHECK_POLL_INTERVAL, JOB_POLL_INTERVAL
from airflow_provider_webdata.waiting.wait import look, seen, timed_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.base.sensor import WebDataSensor
    from airflow_provider_webdata.sensors.job import WebDataJobSensor
    from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
    from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.target import Target


class SensorRun(WaitRun[OutcomeT]):
    """One attempt of a sensor."""

    task: WebDataSensor
    outcome: OutcomeT | None = None
    """The outcome of the wait, once known."""
    observed: Sequence[str] = ()
    """What the last poke observed, for the message of a timeout."""
    pause = 0.0
    """Minimum seconds until the next poke, if the service asks to wait."""

    def check(self) -> None:
        """Fail before the wait if rendered arguments cannot work."""
        self.check_arguments()
        try:
            self.task._trigger_kwargs()
            self.task._since(self.context)
        except ArgumentError as error:
            self.refuse(error)

    def look(self) -> OutcomeT | None:
        """Check once, without a trigger; return the outcome that the trigger would report, or None."""

        async def looked(hub: Hub) -> OutcomeT | None:
            outcome = await look(hub, self.target)
            self.observed = [*seen(hub, self.target)]
            return outcome

        return self.with_hub(looked)  # type: ignore[no-any-return]

    def late(self) -> WaitTimeoutError:
        """Return the error of a wait that timed out in this worker."""
        return self.explained(WaitTimeoutError(timed_out(self.target, self.observed)))

    @cached_property
    def target(self) -> Target[OutcomeT]:
        """The target of the wait."""
        raise NotImplementedError

    def poke(self) -> bool | PokeReturnValue:
        """Check once; return the task's XCom once the wait is over.

        An error is logged, and ends the wait only as `states.answers` says.
        """
        self.pause = 0.0
        with self.calling():
            try:
                self.outcome = outcome = self.look()
                if outcome is None:
                    self.target.ruling(None)
                    return False
                self.judge(outcome)
                return PokeReturnValue(is_done=True, xcom_value=self.result_of(outcome))
            except WebDataError as error:
                ruling = self.target.ruling(error)
                if ruling == "end":
                    raise
                if error.verdict == "later":
                    self.pause = reschedule_delay(error).total_seconds()
                self.observed = [f"the last poll failed: {error.brief()}"]
                if ruling == "warn" or not is_refusal(error):
                    self.log.warning("%s. Still waiting", error.brief())
        return False

    def wait_in_triggerer(self) -> NoReturn:
        """Defer the task."""
        task = self.task
        trigger_kwargs = {**task._trigger_kwargs(), **task._since(self.context)}
        self.defer_until(time.time() + task.timeout, resolve_name(task._trigger_class), trigger_kwargs)


class JobSensorRun(SensorRun[JobOutcome]):
    """One attempt of a sensor that waits for a job."""

    task: WebDataJobSensor
    outcome_class = JobOutcome
    is_billed = True

    def check(self) -> None:
        """Fail before the wait if rendered arguments are invalid."""
        self.prepare_publication()
        if checked_text(self.task.job_id) is None:
            self.refuse("job_id is empty after rendering; set it to a job's id")

    @cached_property
    def target(self) -> JobTarget:
        """The end of the job."""
        return JobTarget(self.task.kind, str(checked_text(self.task.job_id)), JOB_POLL_INTERVAL, self.log)

    def judge(self, outcome: JobOutcome) -> None:
        """Return if the job completed, or was canceled and is accepted; otherwise end the task."""
        if self.task.accept_canceled and outcome.job_status == "cancelled":
            self.log.warning("%s. The task returns the pages so far (accept_canceled=True)", outcome.message)
            return
        if outcome.status == "failed":
            JobResult(self, self.task, self.task.kind, outcome.job_id).settle_lost()
        super().judge(outcome)

    def result_of(self, outcome: JobOutcome) -> Any:
        """Return the result of the job."""
        result = JobResult(self, self.task, self.task.kind, outcome.job_id)
        # A crawl may discover more pages than its limit, which a sensor does not know.
        most_total = 0 if self.task.kind == "crawl" else outcome.most_total
        value = result.publish(most_completed=outcome.most_completed, most_total=most_total)
        return self.finished(value)


class CheckSensorRun(CheckWaitRun, SensorRun[CheckOutcome]):
    """One attempt of a sensor that waits for a check."""

    task: WebDataMonitorCheckSensor
    is_billed = True

    @cached_property
    def target(self) -> CheckTarget:
        """The check."""
        task = self.task
        queue = CheckQueue(task._criteria(), task._after_moment(self.context), checked_text(task.check_id))
        return CheckTarget(task._named_monitor(), queue, CHECK_POLL_INTERVAL, self.log)

    def result_of(self, outcome: CheckOutcome) -> Any:
        """Return the check with the requested pages."""
        return check_with_pages(self, outcome, self.task.include_pages)


class WebhookSensorRun(SensorRun[DeliveryOutcome]):
    """One attempt of a sensor that waits for a delivery."""

    task: WebDataWebhookSensor
    outcome_class = DeliveryOutcome

    @cached_property
    def target(self) -> DeliveryTarget:
        """The delivery."""
        task = self.task
        return DeliveryTarget(
            task.webdata_conn_id,
            self.log,
            key=checked_text(task.key),
            job_id=checked_text(task.job_id),
            monitor_id=checked_text(task.monitor_id),
            events=task._event_names(),
            since=task._after_moment(self.context),
        )

    def result_of(self, outcome: DeliveryOutcome) -> Any:
        """Return the delivery with its payload."""
        with self.hook.inbox() as inbox:
            delivery = inbox.fetch(outcome.delivery_id)
        self.log.info("Delivery %s: %s, received at %s", delivery.id, delivery.event, delivery.received_at)
        fields = fields_of(delivery)
        del fields["size"]
        return {**fields, "payload": delivery.payload()}
