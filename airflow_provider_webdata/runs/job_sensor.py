"""The wait for a job that was started anywhere."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.job_kinds import checked_kind
from airflow_provider_webdata.runs.jobs.results import JobResult
from airflow_provider_webdata.runs.sensor import SensorRun
from airflow_provider_webdata.waiting.job_target import JobTarget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.waiting.target import Target


class JobSensorRun(SensorRun):
    """One attempt of a sensor that waits for a job."""

    def check(self) -> None:
        """Fail before the wait where rendered arguments cannot work."""
        self.prepare_delivery()
        try:
            checked_kind(self.task.kind)
        except ArgumentError as error:
            self.refuse(error)
        self.check_max_error_ratio()
        if checked_text(self.task.job_id) is None:
            self.refuse("job_id is empty after rendering; it must name a job")

    @cached_property
    def target(self) -> Target:
        """The end of the job."""
        return JobTarget(self.task.kind, str(checked_text(self.task.job_id)), self.polling_policy(), self.log)

    def result_of(self, event: Mapping[str, Any]) -> Any:
        """Return the result of the job."""
        return self.finished(JobResult(self, self.task.kind, event["job_id"]).deliver())
