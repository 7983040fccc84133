"""Waiting for the end of a job: what the operators and the sensor share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.arguments import seconds
from airflow_provider_webdata.tasks.deferral import WaitingTask

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from airflow_provider_webdata.states.jobs import JobKind, ProgressLog

    WaitBy: TypeAlias = Literal["auto", "webhook", "polling"]

JOB_TRIGGER = "airflow_provider_webdata.triggers.job.WebDataJobTrigger"
POLL_SECONDS = 30.0
SAFETY_SECONDS = 300.0
"""No delivery tells of a crawl or batch scrape that failed as a whole, so that it is looked for more often than a
lost delivery would need. Supplement 16.4.
"""

_WAIT_BY = ("auto", "webhook", "polling")
_GONE_AFTER_SECONDS = 30.0


def checked_kind(given: Any) -> JobKind:
    """Return the kind of a job; see `hooks.job_states.checked_kind`.

    :param given: one of the kinds.
    :raises ValueError: it is none of them.
    """
    from airflow_provider_webdata.states.jobs import checked_kind

    return checked_kind(given)


@dataclass(frozen=True)
class JobWait:
    """How to wait for a job.

    :param name: of the argument that says by what.
    :param by: `webhook`: a delivery tells, and a slow look at the service now and then. `polling`: look at the service.
        `auto`: by webhook where the job reports to this Airflow, else by polling.
    :param poll_interval: seconds between two looks when polling, at least 1.
    :param safety_poll: seconds between two looks while waiting for a delivery, at least 1.
    :raises ValueError: a choice or a time span that there is not.
    """

    name: str
    by: WaitBy = "auto"
    poll_interval: float = POLL_SECONDS
    safety_poll: float = SAFETY_SECONDS

    def __post_init__(self) -> None:
        if self.by not in _WAIT_BY:
            raise ValueError(f"{self.name} must be one of {', '.join(_WAIT_BY)} (given: {self.by!r})")
        for name in ("poll_interval", "safety_poll"):
            object.__setattr__(self, name, seconds(name, getattr(self, name)))
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1 second (given: {getattr(self, name):g})")

    def trigger_kwargs(self) -> dict[str, Any]:
        """Return what the trigger is told of it."""
        return {"wait_for": self.by, "poll_interval": self.poll_interval, "safety_poll": self.safety_poll}


class WaitsForJob(WaitingTask):
    """Base of the tasks that wait for a job."""

    def look_at_job(self, kind: JobKind, job_id: str, progress: ProgressLog) -> dict[str, Any] | None:
        """Look at a job once; return what a trigger would tell if it is over, or None.

        :param kind: of the job.
        :param job_id: its id.
        :param progress: told how far it is.
        """
        from airflow_provider_webdata.tasks.jobs.poll import poll_job

        view = poll_job(self.hook, kind, job_id)
        progress.see(view)
        return view.event("polling") if view.is_over else None

    def watch_job(self, kind: JobKind, job_id: str, interval: float, deadline: float) -> dict[str, Any]:
        """Look at a job until it is over or time is; return what a trigger would tell.

        :param kind: of the job.
        :param job_id: its id.
        :param interval: seconds between two looks.
        :param deadline: seconds since the epoch.
        """
        from airflow_provider_webdata.api.errors import NotFoundError, RateLimitError
        from airflow_provider_webdata.states.jobs import ProgressLog, name_of
        from airflow_provider_webdata.tasks.retry_policy import reschedule_delay

        progress = ProgressLog(self.log)
        missing_since: float | None = None
        while True:
            pause = interval
            try:
                with self.patiently():
                    event = self.look_at_job(kind, job_id, progress)
                    missing_since = None
                    if event is not None:
                        return event
            except RateLimitError as error:
                pause = reschedule_delay(error).total_seconds()
                self.log.warning("%s. Looking again in %.0f s", error, pause)
            except NotFoundError:
                missing_since = missing_since or time.monotonic()
                if time.monotonic() - missing_since > _GONE_AFTER_SECONDS:
                    raise
                pause = 2.0
            left = deadline - time.time()
            if left <= 0:
                return {
                    "status": "timeout",
                    "message": f"the end of {name_of(kind)} {job_id} was waited for in vain",
                    "kind": kind,
                    "job_id": job_id,
                }
            time.sleep(min(pause, left))
