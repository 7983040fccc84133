"""A task's job, and the record of its start for later attempts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.common.job_kinds import JobKind  # noqa: TC001 - msgspec reads the annotations
from airflow_provider_webdata.common.stored_record import (  # noqa: TC001 - msgspec reads the annotations
    Count,
    Epoch,
    Moment,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_webdata.states.jobs import JobView

_MAX_INVALID_URLS = 1000


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


class StartState(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a job's start in Airflow's task state store.

    :param generation: index of the job, from 0. A job that replaces a failed one has the next index.
    :param past: ids of the jobs of earlier generations.
    :param known: ids that the service listed before the request.
    :param requested_at: time of the first request; None: no request was sent.
    :param job_id: id of the job, once known.
    :param kind: kind of the job. None, like the next two, before the first request.
    :param request: digest of the request.
    :param account: name of the billed account.
    :param attempt: number of the attempt that sent the request.
    :param reports: True if a request had the managed webhook, so that the job may report to this Airflow's inbox.
    :param invalid_urls: URLs that the service dropped.
    :param deadline: end of the wait for the job, in seconds since the epoch.
    :param stopped: True if the task cancels the job because it exceeds the credit limit.
    """

    generation: Count
    past: tuple[Text, ...]
    known: tuple[str, ...]
    requested_at: Moment | None
    job_id: Text | None
    kind: JobKind | None
    request: Text | None
    account: Text | None
    attempt: Count | None = None
    reports: bool = False
    invalid_urls: tuple[Any, ...] = ()
    deadline: Epoch | None = None
    stopped: bool = False

    @property
    def is_begun(self) -> bool:
        """True if an attempt has sent, or is about to send, the request."""
        return self.job_id is not None or self.requested_at is not None

    def is_for(self, kind: str, request: str, account: str) -> bool:
        """Return whether the record is empty or matches this request."""
        return self.request is None or (self.kind, self.request, self.account) == (kind, request, account)

    def owning(self, job: TaskJob) -> StartState:
        """Return the record with the started job."""
        invalid = tuple(job.invalid_urls[:_MAX_INVALID_URLS])
        return msgspec.structs.replace(self, job_id=job.job_id, reports=job.reports, invalid_urls=invalid)

    def next_generation(self, over: Iterable[str]) -> StartState:
        """Return the record for a job that replaces earlier ones.

        :param over: ids of the replaced jobs.
        """
        past = tuple(dict.fromkeys([*self.past, *over]))
        return msgspec.structs.replace(
            self,
            # Airflow 3.2 records no generation: count the jobs that were found.
            generation=max(self.generation + 1, len(past)),
            past=past,
            requested_at=None,
            job_id=None,
            deadline=None,
            stopped=False,
        )


NOT_STARTED = StartState(
    generation=0, past=(), known=(), requested_at=None, job_id=None, kind=None, request=None, account=None
)
