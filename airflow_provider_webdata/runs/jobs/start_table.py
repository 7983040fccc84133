"""The start of a task's job as a table: its states, the events that each one's action may lead to, and what follows.

Nothing here calls the service: `JobStart` carries out the actions. What later attempts must know is one
`StartRecord` in Airflow's task state store.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from airflow_provider_webdata.runs.intent import Intent
    from airflow_provider_webdata.states.jobs import JobView

_MOST_INVALID_URLS = 1000


class State(Enum):
    """How far the start is."""

    NEW = "no request is out"
    SENT = "an earlier attempt sent the request, or may have sent one; its job is not known"
    STARTED = "jobs that were started earlier are known"
    UNANSWERED = "this attempt sent the request, and the answer was lost"
    LISTED = "the service lists jobs of the request whose answer was lost"
    KEY_USED = "the service has seen the request's idempotency key before"

    # The attempt's start ends here.
    OWNED = "the task has its job"
    RETRY = "the attempt fails with the request's error"
    LATER = "the task is rescheduled"
    FAILED = "the task fails for good and says how to go on"


class Event(Enum):
    """The outcome of a state's action."""

    # The request was sent.
    ANSWERED = "the answer names the job"
    REJECTED = "the service did not act on the request"
    ANSWER_LOST = "the service may have acted on it"
    KEY_REFUSED = "the service refuses an idempotency key that was used"

    # The inbox, the running crawls and the team's activity were searched.
    FOUND = "there are jobs of this task"
    ABSENT = "there are none"
    REPEATABLE = "none is listed; the idempotency key makes it safe to send the request again"
    TOO_EARLY = "none is listed yet"
    UNCERTAIN = "none is listed, and a job that was started need not be"

    # The jobs were polled, the newest first.
    ALIVE = "one runs or has a result"
    OVER = "none has a result"
    MISSING = "the service does not know one whose result cannot have expired"


class FoundJob(NamedTuple):
    """A job of the task.

    :param generation: which of the task's jobs, from 0; None: not known.
    """

    generation: int | None
    job_id: str


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
class Finding:
    """The event of an action, and what it found.

    :param jobs: with `FOUND` and `OVER` all jobs, with `ALIVE` the one that is.
    :param job: with `ANSWERED` and `ALIVE`.
    :param reason: why the task fails.
    :param until: until when the task is rescheduled.
    """

    event: Event
    jobs: Sequence[FoundJob] = ()
    job: TaskJob | None = None
    reason: str = ""
    until: datetime | None = None


@dataclass(frozen=True)
class StartRecord:
    """What is stored of the start.

    :param generation: which of the task's jobs this is, from 0: one that starts in place of a failed one is the next.
    :param past: ids of the jobs of former generations.
    :param known: ids that the service listed before the request.
    :param requested_at: when the request was first sent, ISO 8601; None: no request is out.
    :param attempt: number of the attempt that sent the request.
    :param job_id: id of the job, once it is known.
    :param reports: whether the job reports to this Airflow's inbox.
    :param invalid_urls: URLs that the service dropped.
    :param deadline: when the wait for the job ends, in seconds since the epoch.
    :param kind: of the job; None in records of older versions, as the next two.
    :param request: digest of the request.
    :param account: name of the account that the request is billed to.
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

    def is_for(self, kind: str, request: str, account: str) -> bool:
        """Return whether the record is of an equal request; one of an older version counts as equal."""
        return self.request is None or (self.kind, self.request, self.account) == (kind, request, account)

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

    def first_state(self, *, unrecorded: bool) -> State:
        """Return where an attempt begins.

        :param unrecorded: whether an earlier attempt ran and could record nothing (Airflow 3.2).
        """
        if self.job_id is not None:
            return State.STARTED
        return State.SENT if self.requested_at or unrecorded else State.NEW


def _keep(record: StartRecord, _: Finding) -> StartRecord:
    return record


def _withdraw(record: StartRecord, _: Finding) -> StartRecord:
    """No request is out after all."""
    return replace(record, requested_at=None)


def _own(record: StartRecord, finding: Finding) -> StartRecord:
    """The task has its job; what is recorded of it already stays."""
    job = finding.job
    if job is None or job.job_id == record.job_id:
        return record
    generation = finding.jobs[0].generation if finding.jobs else None
    return replace(
        record,
        generation=record.generation if generation is None else generation,
        job_id=job.job_id,
        reports=job.reports,
        invalid_urls=tuple(job.invalid_urls[:_MOST_INVALID_URLS]),
    )


def next_generation(record: StartRecord, finding: Finding) -> StartRecord:
    """Another job takes the place of those that are over."""
    generations = [found.generation for found in finding.jobs if found.generation is not None]
    past = tuple(dict.fromkeys([*record.past, *(found.job_id for found in finding.jobs)]))
    return replace(
        record,
        # Jobs that only the activity names do not say which they are: there were at least as many.
        generation=max(generations) + 1 if generations else max(record.generation + 1, len(past)),
        past=past,
        requested_at=None,
        job_id=None,
        deadline=None,
    )


class Rule(NamedTuple):
    """What follows an event: what is stored, then the next state."""

    change: Callable[[StartRecord, Finding], StartRecord]
    then: State


RULES: dict[tuple[State, Event], Rule] = {
    # Send the request.
    (State.NEW, Event.ANSWERED): Rule(_own, State.OWNED),
    (State.NEW, Event.REJECTED): Rule(_withdraw, State.RETRY),
    (State.NEW, Event.ANSWER_LOST): Rule(_keep, State.UNANSWERED),
    (State.NEW, Event.KEY_REFUSED): Rule(_keep, State.KEY_USED),
    # Search for what an earlier attempt may have started.
    (State.SENT, Event.FOUND): Rule(_keep, State.STARTED),
    (State.SENT, Event.ABSENT): Rule(_withdraw, State.NEW),
    (State.SENT, Event.REPEATABLE): Rule(_keep, State.NEW),
    (State.SENT, Event.TOO_EARLY): Rule(_keep, State.LATER),
    (State.SENT, Event.UNCERTAIN): Rule(_keep, State.FAILED),
    # Search for what this attempt may have started.
    (State.UNANSWERED, Event.FOUND): Rule(_keep, State.LISTED),
    (State.UNANSWERED, Event.TOO_EARLY): Rule(_keep, State.RETRY),
    (State.UNANSWERED, Event.UNCERTAIN): Rule(_keep, State.FAILED),
    # Search for what was started with the same idempotency key.
    (State.KEY_USED, Event.FOUND): Rule(_keep, State.STARTED),
    (State.KEY_USED, Event.UNCERTAIN): Rule(_keep, State.FAILED),
    # Poll the jobs.
    (State.STARTED, Event.ALIVE): Rule(_own, State.OWNED),
    (State.STARTED, Event.OVER): Rule(next_generation, State.NEW),
    (State.STARTED, Event.MISSING): Rule(_keep, State.FAILED),
    (State.LISTED, Event.ALIVE): Rule(_own, State.OWNED),
    (State.LISTED, Event.OVER): Rule(next_generation, State.RETRY),
    (State.LISTED, Event.MISSING): Rule(_keep, State.FAILED),
}
"""All that can happen; each row is one."""


def after_search(*, found: bool, certain: bool, listed_by_now: bool, repeatable: bool) -> Event:
    """Return what a search for an earlier attempt's job says.

    :param certain: whether all places where the job would show could be read.
    :param listed_by_now: whether the request is so old that a job would be listed.
    :param repeatable: whether sending the request again cannot start another one.
    """
    if found:
        return Event.FOUND
    if not certain and not repeatable:
        return Event.UNCERTAIN
    if not listed_by_now:
        return Event.TOO_EARLY
    return Event.REPEATABLE if repeatable else Event.ABSENT
