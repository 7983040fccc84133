# SPDX-License-Identifier: Apache-2.0
"""Single start of a job across all attempts of a task: takes the steps that `states.job_decision` decides."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from msgspec.structs import replace

from airflow_provider_webdata.api.endpoints import ENDPOINTS
from airflow_provider_webdata.api.errors import (
    IdempotencyKeyUsedError,
    NotFoundError,
    WebDataError,
)
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS, checked_kind
from airflow_provider_webdata.hooks.task_memory import memory_of
from airflow_provider_webdata.inbox.reader import InboxUnreachableError
from airflow_provider_webdata.runs.failures import UncertainStartError, UnnamedJobError, may_have_acted
from airflow_provider_webdata.runs.replica import until_found, until_visible
from airflow_provider_webdata.states.job_decision import Answer, Facts, Seen, decide
from airflow_provider_webdata.states.jobs import LOST, RESULT_LIFE, JobView, name_of
from airflow_provider_webdata.states.task_record import Started, new_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import JobStarted
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook
    from airflow_provider_webdata.states.job_decision import Action

_MAX_LISTED = 10


def poll_job(hook: WebDataHook, kind: JobKind, job_id: str) -> JobView:
    """Return a job's current state; raises the hook's errors."""
    # The response contains a part of the result; one page is the minimum.
    return JobView.of(kind, job_id, hook.job_status(kind, job_id, limit=1))


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


class JobCall(Protocol):
    """The call that starts a task's job.

    :ivar webhook: the managed webhook of the job.
    :ivar request: the fields that determine the result, in wire form, to detect a changed request.
    """

    hook: WebDataHook
    kind: JobKind
    webhook: ManagedWebhook
    request: Mapping[str, Any]

    @property
    def targets(self) -> Sequence[str]:
        """URLs or texts of the job, for the log."""

    def check(self) -> None:
        """Raise if the request must not be sent; called before each request."""

    def send(self, webhook: Mapping[str, Any] | None, idempotency_key: str | None) -> JobStarted:
        """Start the job.

        :param webhook: in wire form.
        """

    def discard(self, kind: JobKind, job_id: str) -> None:
        """Cancel an abandoned job, and count its cost."""

    def settle(self, job_id: str | None) -> None:
        """Count the cost of a job without a result, or, without an id, of one that was not started."""

    def settle_unknown(self) -> None:
        """Count an abandoned job whose cost cannot be read."""


class JobStart:
    """The start of the one job of a task.

    Airflow's `ResumableJobMixin` records a job's id after the response: if a worker dies before that, the next attempt
    starts the job again. This class records the request before it is sent.
    """

    def __init__(self, call: JobCall, context: Context, log: Any) -> None:
        self.call = call
        self.hook, self.kind = call.hook, call.kind
        self.log = log
        self._memory = memory_of(context)
        self._server = self.hook.get_settings().client.server
        self._has_header = ENDPOINTS[f"start_{self.kind}"].key_header is not None
        self._facts = Facts(has_key=self._has_header and self._server.trusts_keys, bills=self._server.bills)
        self._views: dict[str, JobView] = {}
        self._errors: list[WebDataError] = []
        self._facts = replace(self._facts, differs=self._difference())

    @property
    def deadline(self) -> float | None:
        """Recorded end of the wait for the job, in seconds since the epoch, or None."""
        return self._memory.record.wait_until

    def set_deadline(self, deadline: float) -> None:
        """Record the end of the wait for the job, in seconds since the epoch."""
        self._memory.note(wait_until=deadline)

    def find(self) -> TaskJob | None:
        """Return the job of an earlier attempt that is running or has a result, or None.

        :raises UncertainStartError: an earlier attempt may have started a job that nothing names.
        """
        while (started := self._started) is not None:
            action = decide(started, self._facts)
            if action.act == "send":
                break
            if job := self._take(action, started):
                return job
        return None

    def start(self) -> TaskJob:
        """Start a job; call `find` first.

        :raises UncertainStartError: the request may have started a job that nothing names.
        :raises WebDataError: the job could not be started.
        """
        while True:
            started = self._started
            action = decide(started, self._facts)
            job = self._send() if started is None or action.act == "send" else self._take(action, started)
            if job is not None:
                return job

    def _take(self, action: Action, started: Started) -> TaskJob | None:
        """Take a step; return the job once it is known."""
        match action.act:
            case "ask_inbox":
                self._facts = replace(self._facts, named=self._named_by_inbox(started.key))
            case "look":
                self._look(action.job, started)
            case "adopt":
                return self._adopted(action.job, started)
            case "replace":
                self.call.settle(action.job)
                self._plan_another()
            case "abandon":
                self._abandon(started)
            case "refuse" | "wait":
                self._refuse(action)
            case "fail":
                raise self._errors[-1]
        return None

    @property
    def _started(self) -> Started | None:
        return self._memory.record.started_as(*ALL_JOB_KINDS)

    def _difference(self) -> Any:
        started = self._started
        if started is None or (started.kind, started.request) == (self.kind, self._digest):
            return "" if started is None or started.account == self._account else "account"
        return "request"

    def _send(self) -> TaskJob | None:
        """Send the request; return None if its outcome is unknown."""
        before, earlier = self._memory.record, self._started
        started = earlier or Started(kind=self.kind, key=new_key(), request=self._digest)
        webhook = self.call.webhook.new(started.key)
        if earlier is not None:
            self._warn_of_repetition()
        started = replace(
            started,
            account=self._account,
            attempt=self._memory.attempt.number,
            sent_at=started.sent_at or datetime.now(timezone.utc),
            reports=started.reports or webhook is not None,
        )
        # The limit's reservation and the request are stored together.
        self._memory.stage(started=started, phase="requested")
        try:
            # Neither an unsent request nor one that is repeated under its key, or free of charge, costs anything.
            self.call.settle(None)
            self.call.check()
            self._memory.write()
        except BaseException:
            self._memory.stage(started=before.started, phase=before.phase, credits=before.credits)
            raise
        try:
            sends_key = self._has_header and self._server.accepts_keys
            answer = self.call.send(webhook, started.key if sends_key else None)
        except IdempotencyKeyUsedError as error:
            self._learn("used", error)
            return None
        except WebDataError as error:
            if may_have_acted(error):
                self._learn("lost", error)
                return None
            self.call.settle(None)
            # A refused repetition does not show what became of the first request.
            kept = {} if earlier is None else {"credits": before.credits}
            self._memory.note(started=before.started, phase=before.phase, **kept)
            raise
        # Airflow raises a BaseException on a task timeout.
        except BaseException:
            self.log.error(
                "The attempt ended before the response: a %s may have started%s; see %s",
                name_of(self.kind),
                ", and bill" if self._facts.bills else "",
                self._server.record,
            )
            raise
        self.log.info("Started %s: job %s", self._subject, answer.id)
        self._memory.note(started=started.named(answer.id, answer.invalid_urls), phase="known")
        return TaskJob(answer.id, webhook is not None, list(answer.invalid_urls or ()))

    def _warn_of_repetition(self) -> None:
        if self._facts.has_key:
            self.log.info(
                "An earlier request may have started a job; sending it again with the same idempotency key"
            )
            return
        self.log.warning(
            "An earlier request may have started a %s; sending it again. The server may run both, but bills neither",
            name_of(self.kind),
        )

    def _learn(self, answer: Answer, error: WebDataError) -> None:
        self._errors.append(error)
        if answer == "lost":
            self.log.warning("%s. The request may have started a job", error.brief())
        self._facts = replace(self._facts, answers=(*self._facts.answers, answer), named=None)

    def _named_by_inbox(self, key: str) -> tuple[str, ...]:
        """Return the ids of the jobs that report under the request's key.

        :raises InboxUnreachableError: nothing else names a billed job.
        """

        def delivered() -> tuple[str, ...]:
            with self.hook.inbox() as inbox:
                page = inbox.search(keys=[key])
            return tuple(dict.fromkeys(one.job_id for one in page.deliveries if one.job_id))

        try:
            # The first delivery of a request of this attempt may be on its way.
            return until_found(delivered) or () if self._facts.answers else delivered()
        except WebDataError as error:
            if isinstance(error, InboxUnreachableError) and self._facts.bills and not self._facts.has_key:
                raise
            self.log.warning("The inbox cannot be asked for the job: %s", error.brief())
            return ()

    def _look(self, job_id: str, started: Started) -> None:
        def poll() -> JobView:
            return poll_job(self.hook, self.kind, job_id)

        seen: Seen
        try:
            # A server that does not bill has no replica.
            self._views[job_id] = view = until_visible(poll) if self._facts.bills else poll()
        except NotFoundError as error:
            seen = "expired" if _has_expired(started, error) else "lost"
            state = "has expired" if seen == "expired" else f"is unknown: the server {LOST}"
        else:
            seen = "alive" if view.is_alive or (started.stopped and view.state == "cancelled") else "dead"
            state = f"ended without a result ({view.progress()})"
        if seen != "alive":
            self.log.warning("Job %s of an earlier attempt %s", job_id, state)
        elif self._facts.differs == "account":
            self.log.info("The connection changed, but job %s is still accessible", job_id)
        self._facts = replace(self._facts, seen={**self._facts.seen, job_id: seen})

    def _adopted(self, job_id: str, started: Started) -> TaskJob:
        view = self._views[job_id]
        self.log.info("An earlier request started %s: job %s, %s", self._subject, job_id, view.progress())
        started = replace(started, id=job_id, account=self._account)
        self._memory.note(started=started, phase="known")
        return TaskJob(job_id, started.reports, list(started.invalid_urls), view)

    def _plan_another(self) -> None:
        self._memory.write(started=None, phase="planned", wait_until=None)
        self._facts = replace(self._facts, differs="", answers=(), named=None)

    def _abandon(self, started: Started) -> None:
        moved = self._facts.differs == "account"
        name = f"job {started.id}" if started.id else "a job that it may have started"
        self.log.warning(
            "%s changed since an earlier attempt. The task abandons %s and sends a new request%s",
            "The account of the connection" if moved else "The arguments",
            name,
            "; both are billed" if self._facts.bills else "",
        )
        if started.id is None or moved:
            self.call.settle_unknown()
        else:
            self.call.discard(checked_kind(started.kind), started.id)
        if started.id is not None and moved:
            self.log.warning("Cancel %s manually: the connection can no longer access its account", name)
        self._plan_another()

    def _refuse(self, action: Action) -> NoReturn:
        if action.job:
            raise UncertainStartError(f"{action.why}. Clear the task to start another job")
        # That a key was used is the reason itself.
        is_lost = self._facts.answers[-1:] == ("lost",)
        error = f"{self._errors[-1].brief()}; " if is_lost else ""
        listed = f"The service lists {', '.join(ids)}. " if (ids := self._listed()) else ""
        is_repeated = action.act == "wait" and not self._memory.attempt.is_last
        again = "The next attempt asks the inbox again. " if is_repeated else ""
        raise (UnnamedJobError if again else UncertainStartError)(
            f"{error}an earlier request may have started a {name_of(self.kind)}, and its outcome cannot be determined: "
            f"{action.why}. The task starts no other job, which would be billed, too. "
            f"{again}{listed}If {self._server.record} shows the job, get its result with "
            f"WebDataJobSensor(kind={self.kind!r}, job_id=...); otherwise, clear this task to start one"
        )

    def _listed(self) -> list[str]:
        """Return the jobs that the service lists, newest first, for a person to look at."""
        try:
            with self.hook.optional() as hook:
                items = hook.activity(endpoint=self.kind, limit=_MAX_LISTED).data
        except WebDataError as error:
            self.log.debug("The team's activity could not be read: %s", error.brief())
            return []
        return [
            f"{item.id} ({trimmed(item.target, 200)})" if item.target else item.id
            for item in items
            if item.id
        ]

    @property
    def _subject(self) -> str:
        """The job's kind, its targets, its limit, and its connection, for the log."""
        first = trimmed(next(iter(self.call.targets), ""), 200)
        # The prompt is a target, too, but no URL.
        more = sum(target != self.call.request.get("prompt") for target in self.call.targets) - 1
        limits = {"limit": "limit", "maxCredits": "max_credits"}
        parts = [
            f"{name} {self.call.request[field]}"
            for field, name in limits.items()
            if self.call.request.get(field)
        ]
        named = f" of {first}" + (f" and {more} more" if more > 0 else "") if first else ""
        return f"{name_of(self.kind)}{named} ({', '.join((*parts, f'connection {self.hook.webdata_conn_id!r}'))})"

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(self.call.request, sort_keys=True).encode()).hexdigest()

    @cached_property
    def _account(self) -> str:
        return self.hook.get_settings().client.account


def _has_expired(started: Started, error: NotFoundError) -> bool:
    is_old = started.sent_at is not None and datetime.now(timezone.utc) - started.sent_at > RESULT_LIFE
    return is_old or "expired" in error.brief().lower()
