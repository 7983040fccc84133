"""The sensor for the end of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.arguments import checked_text, number
from airflow_provider_webdata.tasks.jobs.job_wait import (
    JOB_TRIGGER,
    POLL_SECONDS,
    SAFETY_SECONDS,
    JobWait,
    WaitsForJob,
    checked_kind,
)
from airflow_provider_webdata.tasks.jobs.results import JobResults
from airflow_provider_webdata.tasks.literals import is_literal
from airflow_provider_webdata.tasks.replica import until_found
from airflow_provider_webdata.tasks.sensor import WebDataSensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from airflow.sdk import Context

    from airflow_provider_webdata.states.jobs import JobKind, ProgressLog
    from airflow_provider_webdata.tasks.jobs.job_wait import WaitBy


class WebDataJobSensor(WaitsForJob, JobResults, WebDataSensor):
    """Wait for a crawl, batch scrape, extract job or agent run, and return its result.

    The job may have been started anywhere: by an operator with `wait_for_completion=False`, by another DAG, or by hand.
    Nothing is billed. The service keeps a result for 24 hours.

    XCom: as of the operator that starts such a job; see `JobResults`. A job that failed or was cancelled fails the
    task. Killing the task leaves the job running.

    :param kind: `crawl`, `batch_scrape`, `extract` or `agent` (templated).
    :param job_id: id of the job (templated).
    :param wait_for: `webhook`: a delivery to the inbox tells, and a slow look at the service now and then; the job must
        report to this Airflow. `polling`: look at the service. `auto` (default): both where the connection can receive
        deliveries. A sensor that is not deferrable looks at the service.
    :param poll_interval: seconds between two looks of the triggerer at the service; a number or a timedelta. A sensor
        that is not deferrable looks every `poke_interval`.
    :param safety_poll: seconds between two looks with `wait_for="webhook"`.
    :param kwargs: arguments of `JobResults` (`max_error_ratio`), `ResultDelivery` (`output`, `save_media`),
        `WebDataSensor` and `BaseSensorOperator`, such as `deferrable`, `timeout`, `mode` and `soft_fail`.
    """

    template_fields: Sequence[str] = (
        *WebDataSensor.template_fields,
        "kind",
        "job_id",
        "output_url",
        "save_media",
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        kind: JobKind,
        job_id: str,
        wait_for: WaitBy = "auto",
        poll_interval: float | timedelta = POLL_SECONDS,
        safety_poll: float | timedelta = SAFETY_SECONDS,
        **kwargs: Any,
    ) -> None:
        if is_literal(kind):
            checked_kind(kind)
        if is_literal(job_id) and checked_text(job_id) is None:
            raise ValueError(f"job_id must name a job (given: {job_id!r})")
        super().__init__(**kwargs)
        self.kind = kind
        self.job_id = job_id
        self.job_wait = JobWait("wait_for", wait_for, poll_interval, safety_poll)  # type: ignore[arg-type]
        self._progress: ProgressLog | None = None
        self.start_in_triggerer(knows_when=True)

    def trigger_class(self) -> str:
        """Return the import path of the trigger that waits."""
        return JOB_TRIGGER

    def trigger_kwargs(self) -> dict[str, Any]:
        """Return the trigger's arguments, but for `deadline`."""
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "kind": self.kind,
            "job_id": checked_text(self.job_id),
            **self.job_wait.trigger_kwargs(),
        }

    def check_arguments(self) -> None:
        """Fail before the wait where rendered arguments cannot work."""
        self.check_result_arguments()
        try:
            checked_kind(self.kind)
            number("max_error_ratio", self.max_error_ratio, 1)
        except ValueError as error:
            self.refuse(str(error))
        if checked_text(self.job_id) is None:
            self.refuse("job_id is empty after rendering; it must name a job")

    def look(self, context: Context) -> dict[str, Any] | None:  # noqa: ARG002
        """Look once whether the job is over."""
        from airflow_provider_webdata.api.errors import NotFoundError
        from airflow_provider_webdata.states.jobs import ProgressLog

        if self._progress is None:
            self._progress = ProgressLog(self.log)
        progress, job_id = self._progress, str(checked_text(self.job_id))
        missing: list[NotFoundError] = []

        def look_once() -> tuple[dict[str, Any] | None] | None:
            try:
                return (self.look_at_job(self.kind, job_id, progress),)
            except NotFoundError as error:
                missing.append(error)
                return None

        # A job that was just started may not be there yet where it is read.
        found = until_found(look_once)
        if found is None:
            raise missing[-1]
        return found[0]

    def result_of(self, event: Mapping[str, Any], context: Context) -> Any:
        """Return the result of the job."""
        return self.collect(self.kind, event["job_id"], context)
