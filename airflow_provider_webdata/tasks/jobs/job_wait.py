"""Polling a job in a worker: what the operators and the sensor share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.deferral import WaitingTask
from airflow_provider_webdata.waiting.policy import polls, waiting_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.states.jobs import JobKind, ProgressLog

_MISSING_LIMIT_SECONDS = 30.0


class WaitsForJob(WaitingTask):
    """Base of the tasks that wait for a job."""

    def judge(self, event: Mapping[str, Any]) -> None:
        """Return if a job completed; else say what an agent run did, and end the task as the event says."""
        if event.get("status") == "failed" and event.get("kind") == "agent":
            from airflow_provider_webdata.tasks.jobs.failed_run import log_last_steps

            log_last_steps(self.hook, event["job_id"], self.log)
        super().judge(event)

    def poll_job_once(self, kind: JobKind, job_id: str, progress: ProgressLog) -> dict[str, Any] | None:
        """Poll a job; return the event that the trigger would yield if it is over, or None.

        :param kind: of the job.
        :param job_id: its id.
        :param progress: logs how far it is.
        """
        from airflow_provider_webdata.runs.metrics import count
        from airflow_provider_webdata.tasks.jobs.poll import poll_job

        count("webdata.polls", 1, {}, conn_id=self.webdata_conn_id, kind=kind)
        view = poll_job(self.hook, kind, job_id)
        progress.update(view)
        return view.event("polling") if view.is_over else None

    def poll_job_until(self, deadline: float, kind: JobKind, job_id: str, interval: float) -> dict[str, Any]:
        """Poll a job until it is over or the deadline has come; return the event that the trigger would yield.

        :param deadline: seconds since the epoch.
        :param kind: of the job.
        :param job_id: its id.
        :param interval: seconds between polls.
        """
        from airflow_provider_webdata.api.errors import NotFoundError, RateLimitError, UnavailableError
        from airflow_provider_webdata.states.jobs import ProgressLog, name_of
        from airflow_provider_webdata.tasks.retry_policy import reschedule_delay

        self.log.info(waiting_for(f"{name_of(kind)} {job_id}", polls(interval), deadline))
        progress = ProgressLog(self.log)
        missing_since: float | None = None
        while True:
            pause = interval
            try:
                with self.patiently():
                    event = self.poll_job_once(kind, job_id, progress)
                    missing_since = None
                    if event is not None:
                        return event
            except (RateLimitError, UnavailableError) as error:
                pause = reschedule_delay(error).total_seconds()
                self.log.warning("%s. Polling again in %.0f s", error, pause)
            except NotFoundError:
                missing_since = missing_since or time.monotonic()
                if time.monotonic() - missing_since > _MISSING_LIMIT_SECONDS:
                    raise
                pause = 2.0
            left = deadline - time.time()
            if left <= 0:
                return {
                    "status": "timeout",
                    "message": f"Timed out waiting for {name_of(kind)} {job_id}",
                    "kind": kind,
                    "job_id": job_id,
                }
            time.sleep(min(pause, left))
