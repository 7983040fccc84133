"""Polling a job until it is over, in a worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import NotFoundError, RateLimitError, UnavailableError
from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.runs.jobs.poll import poll_job
from airflow_provider_webdata.runs.metrics import count
from airflow_provider_webdata.runs.reschedule import reschedule_delay
from airflow_provider_webdata.states.jobs import ProgressLog, name_of
from airflow_provider_webdata.waiting.policy import polls, waiting_for

if TYPE_CHECKING:
    from airflow_provider_webdata.runs.wait import WaitRun
    from airflow_provider_webdata.states.jobs import JobKind

_MISSING_LIMIT_SECONDS = 30.0


def check_max_error_ratio(run: WaitRun) -> None:
    """Fail the task if its `max_error_ratio` has no meaning.

    :param run: of the task.
    """
    try:
        number("max_error_ratio", run.task.max_error_ratio, 1)
    except ArgumentError as error:
        run.refuse(error)


def poll_once(run: WaitRun, kind: JobKind, job_id: str, progress: ProgressLog) -> dict[str, Any] | None:
    """Poll a job; return the event that the trigger would yield if it is over, or None.

    :param run: of the task that waits.
    :param kind: of the job.
    :param job_id: its id.
    :param progress: logs how far it is.
    """
    count("webdata.polls", 1, {}, conn_id=run.task.webdata_conn_id, kind=kind)
    view = poll_job(run.hook, kind, job_id)
    progress.update(view)
    return view.event("polling") if view.is_over else None


def poll_until(run: WaitRun, deadline: float, kind: JobKind, job_id: str, interval: float) -> dict[str, Any]:
    """Poll a job until it is over or the deadline has come; return the event that the trigger would yield.

    :param run: of the task that waits.
    :param deadline: seconds since the epoch.
    :param kind: of the job.
    :param job_id: its id.
    :param interval: seconds between polls.
    """
    run.log.info(waiting_for(f"{name_of(kind)} {job_id}", polls(interval), deadline))
    progress = ProgressLog(run.log)
    missing_since: float | None = None
    while True:
        pause = interval
        try:
            with run.patiently():
                event = poll_once(run, kind, job_id, progress)
                missing_since = None
                if event is not None:
                    return event
        except (RateLimitError, UnavailableError) as error:
            pause = reschedule_delay(error).total_seconds()
            run.log.warning("%s. Polling again in %.0f s", error, pause)
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
