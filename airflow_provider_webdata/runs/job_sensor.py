"""The wait for a job that was started anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.runs.jobs.results import JobResult
from airflow_provider_webdata.runs.jobs.wait import check_max_error_ratio, poll_once
from airflow_provider_webdata.runs.replica import until_found
from airflow_provider_webdata.runs.sensor import SensorRun
from airflow_provider_webdata.states.jobs import ProgressLog, checked_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context


class JobSensorRun(SensorRun):
    """One attempt of a sensor that waits for a job."""

    def __init__(self, task: Any, context: Context) -> None:
        super().__init__(task, context)
        self._progress = ProgressLog(task.log)

    def check(self) -> None:
        """Fail before the wait where rendered arguments cannot work."""
        self.prepare_delivery()
        try:
            checked_kind(self.task.kind)
        except ArgumentError as error:
            self.refuse(error)
        check_max_error_ratio(self)
        if checked_text(self.task.job_id) is None:
            self.refuse("job_id is empty after rendering; it must name a job")

    def poll(self) -> dict[str, Any] | None:
        """Poll the job once."""
        kind, job_id = self.task.kind, str(checked_text(self.task.job_id))
        missing: list[NotFoundError] = []

        def polled() -> tuple[dict[str, Any] | None] | None:
            try:
                return (poll_once(self, kind, job_id, self._progress),)
            except NotFoundError as error:
                missing.append(error)
                return None

        # A job that was just started may not be there yet where it is read.
        found = until_found(polled)
        if found is None:
            raise missing[-1]
        return found[0]

    def result_of(self, event: Mapping[str, Any]) -> Any:
        """Return the result of the job."""
        return self.finished(JobResult(self, self.task.kind, event["job_id"]).deliver())
