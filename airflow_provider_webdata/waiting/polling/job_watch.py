"""Waits for the end of a job, and what is known of a job that is polled."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_webdata.states.jobs import JobView, name_of
from airflow_provider_webdata.waiting.polling.watch import Wait, Watch

if TYPE_CHECKING:
    from airflow_provider_webdata.states.jobs import JobKind
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.polling.lookups import Lookups

PAUSES_AFTER_DELIVERY = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between polls of a job that is over by a delivery, while the service does not show it yet."""


@dataclass(frozen=True)
class JobSnapshot:
    """A job as the service shows it now.

    :param view: the same for all waits.
    """

    view: JobView


class JobWait(Wait):
    """One wait for the end of a job.

    :param mailbox: gets the snapshots.
    :param kind: of the job.
    :param job_id: its id.
    :param interval: seconds between polls.
    """

    __slots__ = ("interval", "job_id", "kind")

    def __init__(self, mailbox: Mailbox, kind: JobKind, job_id: str, interval: float) -> None:
        super().__init__(mailbox, (kind, job_id))
        self.kind: JobKind = kind
        self.job_id = job_id
        self.interval = interval

    def new_watch(self) -> JobWatch:
        """Return a watch for the job."""
        return JobWatch(self.kind, self.job_id)


class JobWatch(Watch):
    """One job, however many wait for it.

    :param kind: of the job.
    :param job_id: its id.
    """

    __slots__ = ("_short_pauses", "job_id", "kind", "view")

    def __init__(self, kind: JobKind, job_id: str) -> None:
        super().__init__((kind, job_id))
        self.kind: JobKind = kind
        self.job_id = job_id
        self.view: JobView | None = None
        self._short_pauses: list[float] = []

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"{name_of(self.kind)} {self.job_id}"

    @property
    def interval(self) -> float:
        """Seconds between polls: the shortest that a wait asks for."""
        return float(min(wait.interval for wait in self.waits))

    @property
    def pause(self) -> float:
        """Seconds until the next poll: less after a delivery."""
        return min(self._short_pauses.pop(0), self.interval) if self._short_pauses else self.interval

    def delivered(self) -> None:
        """Note that a delivery says that the job is over."""
        self._short_pauses = list(PAUSES_AFTER_DELIVERY)

    def invalidate(self) -> None:
        """Do nothing: every snapshot is posted."""

    async def poll(self, lookups: Lookups) -> list[tuple[Wait, JobSnapshot]]:
        """Read how the job stands, for all who wait for it."""
        # The answer brings a part of the result along: one page is the least.
        status = await lookups.call(lambda hook: hook.job_status(self.kind, self.job_id, limit=1))
        self.view = JobView.of(self.kind, self.job_id, status)
        self.polled_at = time.time()
        return [(wait, JobSnapshot(self.view)) for wait in self.waits]

    def not_found(self, reason: str) -> str:
        """Return the message for a job that the service does not know for good."""
        return (
            f"{self.label} does not exist ({reason}): its result has expired (24 hours after its end), or the id or "
            "the kind is wrong"
        )

    def state(self) -> str:
        """Return what the service said last, for the message of a timeout."""
        if self.polled_at is None or self.view is None:
            return "the service could not be asked about it"
        polled = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.polled_at))
        return f"at {polled} it was: {self.view.progress()}"
