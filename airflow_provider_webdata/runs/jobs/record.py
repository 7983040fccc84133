"""A task's job, and its record for later attempts."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_webdata.runs.intent import Intent
    from airflow_provider_webdata.states.jobs import JobView

_MOST_INVALID_URLS = 1000


@dataclass
class TaskJob:
    """The job that the task waits for.

    :param reports: True if it reports to this Airflow's inbox.
    :param invalid_urls: URLs that the service dropped.
    :param view: its state, if it was polled.
    """

    job_id: str
    reports: bool = False
    invalid_urls: list[Any] = field(default_factory=list)
    view: JobView | None = None


@dataclass(frozen=True)
class StartRecord:
    """The record of a job's start in Airflow's task state store.

    :param generation: index of the job, from 0. A job that replaces a failed one has the next index.
    :param past: ids of the jobs of earlier generations.
    :param known: ids that the service listed before the request.
    :param requested_at: time of the first request, ISO 8601; None: no request was sent.
    :param attempt: number of the attempt that sent the request.
    :param job_id: id of the job, once known.
    :param reports: True if the job reports to this Airflow's inbox.
    :param invalid_urls: URLs that the service dropped.
    :param deadline: end of the wait for the job, in seconds since the epoch.
    :param kind: kind of the job. None, like the next two, in an empty record.
    :param request: digest of the request.
    :param account: name of the billed account.
    :param stopped: True if the task cancels the job because it exceeds the credit limit.
    """

    generation: int = 0
    past: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    requested_at: str | None = None
    attempt: int | None = None
    job_id: str | None = None
    reports: bool = False
    invalid_urls: tuple[Any, ...] = ()
    deadline: float | None = None
    kind: str | None = None
    request: str | None = None
    account: str | None = None
    stopped: bool = False

    @classmethod
    def of(cls, intent: Intent) -> StartRecord:
        """Return the stored record, or a new one."""
        recorded: dict[str, Any] = {
            item.name: tuple(value) if isinstance(value, list) else value
            for item in fields(cls)
            if (value := intent.recall(item.name)) is not None
        }
        return cls(**recorded)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        values = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values}

    @property
    def is_begun(self) -> bool:
        """True if an attempt has sent, or is about to send, the request."""
        return self.job_id is not None or self.requested_at is not None

    def is_for(self, kind: str, request: str, account: str) -> bool:
        """Return whether the record is empty or matches this request."""
        return self.request is None or (self.kind, self.request, self.account) == (kind, request, account)

    def owning(self, job: TaskJob) -> StartRecord:
        """Return the record with the started job."""
        return replace(
            self,
            job_id=job.job_id,
            reports=job.reports,
            invalid_urls=tuple(job.invalid_urls[:_MOST_INVALID_URLS]),
        )

    def next_generation(self, over: Iterable[str]) -> StartRecord:
        """Return the record for a job that replaces earlier ones.

        :param over: ids of the replaced jobs.
        """
        past = tuple(dict.fromkeys([*self.past, *over]))
        return replace(
            self,
            # Airflow 3.2 records no generation: count the jobs that were found.
            generation=max(self.generation + 1, len(past)),
            past=past,
            requested_at=None,
            job_id=None,
            deadline=None,
            stopped=False,
        )
