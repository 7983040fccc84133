"""Waits for the end of a job, and what is known of a job that is waited for."""

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

HURRY = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between the looks at a job that a delivery calls over, while the service does not say so yet."""


@dataclass(frozen=True)
class JobLook:
    """A job as the service shows it now.

    :param view: the same for all waits.
    """

    view: JobView


class JobWait(Wait):
    """One wait for the end of a job.

    :param mailbox: where looks go.
    :param kind: of the job.
    :param job_id: its id.
    :param interval: seconds between two looks.
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

    __slots__ = ("_hurry", "job_id", "kind", "view")

    def __init__(self, kind: JobKind, job_id: str) -> None:
        super().__init__((kind, job_id))
        self.kind: JobKind = kind
        self.job_id = job_id
        self.view: JobView | None = None
        self._hurry: list[float] = []

    @property
    def what(self) -> str:
        """What messages call it."""
        return f"{name_of(self.kind)} {self.job_id}"

    @property
    def interval(self) -> float:
        """Seconds between two looks: what the most impatient wait asks for."""
        return float(min(wait.interval for wait in self.waits))

    @property
    def pause(self) -> float:
        """Seconds until the next look: less for a job that is said to be over."""
        return min(self._hurry.pop(0), self.interval) if self._hurry else self.interval

    def hurry(self) -> None:
        """Note that the job is said to be over."""
        self._hurry = list(HURRY)

    def stir(self) -> None:
        """Every look is told."""

    async def look(self, lookups: Lookups) -> list[tuple[Wait, JobLook]]:
        """Read how the job stands, and tell all who wait for it."""
        # A look brings a part of the result along, so that one page is the least.
        status = await lookups.with_renewal(lambda hook: hook.job_status(self.kind, self.job_id, limit=1))
        self.view = JobView.of(self.kind, self.job_id, status)
        self.looked_at = time.time()
        return [(wait, JobLook(self.view)) for wait in self.waits]

    def gone(self, reason: str) -> str:
        """Return what to say when the service does not know it for good."""
        return (
            f"{self.what} is not there ({reason}); its result has expired (24 hours after its end), or the id or "
            "the kind is wrong"
        )

    def state(self) -> str:
        """Say, for the message of a timeout, what the service said last."""
        if self.looked_at is None or self.view is None:
            return "the service could not be asked about it"
        looked = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.looked_at))
        return f"at {looked} it was: {self.view.progress()}"
