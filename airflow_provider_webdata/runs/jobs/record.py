"""A task's job, and the record of it that each attempt leaves for the next one."""

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

    :param reports: whether it reports to this Airflow's inbox.
    :param invalid_urls: URLs that the service dropped.
    :param view: its state, where it was polled.
    """

    job_id: str
    reports: bool = False
    invalid_urls: list[Any] = field(default_factory=list)
    view: JobView | None = None


@dataclass(frozen=True)
class StartRecord:
    """What is stored of the start, in Airflow's task state store.

    :param generation: which of the task's jobs this is, from 0: one that starts in place of a failed one is the next.
    :param past: ids of the jobs of former generations.
    :param known: ids that the service listed before the request.
    :param requested_at: when the request was first sent, ISO 8601; None: no request is out.
    :param attempt: number of the attempt that sent the request.
    :param job_id: id of the job, once it is known.
    :param reports: whether the job reports to this Airflow's inbox.
    :param invalid_urls: URLs that the service dropped.
    :param deadline: when the wait for the job ends, in seconds since the epoch.
    :param kind: of the job; None, as the next two, where nothing is recorded.
    :param request: digest of the request.
    :param account: name of the account that the request is billed to.
    :param stopped: whether the task cancels the job, because it exceeds the task's credit limit.
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
        """Return what is recorded; a new record where there is nothing."""
        recorded: dict[str, Any] = {
            item.name: tuple(value) if isinstance(value, list) else value
            for item in fields(cls)
            if (value := intent.recall(item.name)) is not None
        }
        return cls(**recorded)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        values = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values}

    @property
    def is_begun(self) -> bool:
        """Whether an attempt sent the request, or is about to."""
        return self.job_id is not None or self.requested_at is not None

    def is_for(self, kind: str, request: str, account: str) -> bool:
        """Return whether the record is of an equal request, or nothing is recorded."""
        return self.request is None or (self.kind, self.request, self.account) == (kind, request, account)

    def owning(self, job: TaskJob) -> StartRecord:
        """Return the record of a task that has its job."""
        return replace(
            self,
            job_id=job.job_id,
            reports=job.reports,
            invalid_urls=tuple(job.invalid_urls[:_MOST_INVALID_URLS]),
        )

    def next_generation(self, over: Iterable[str]) -> StartRecord:
        """Return the record of a task whose next job takes the place of former ones.

        :param over: ids of these.
        """
        past = tuple(dict.fromkeys([*self.past, *over]))
        return replace(
            self,
            # Airflow 3.2 records no generation: then there were as many as jobs were found.
            generation=max(self.generation + 1, len(past)),
            past=past,
            requested_at=None,
            job_id=None,
            deadline=None,
            stopped=False,
        )
