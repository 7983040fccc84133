"""Single start of a job across all attempts of a task: a later attempt finds the job of an earlier one."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk.exceptions import AirflowRescheduleException

from airflow_provider_webdata.api.endpoints import ENDPOINTS
from airflow_provider_webdata.api.errors import (
    IdempotencyKeyUsedError,
    NotFoundError,
    WebDataError,
    trimmed,
)
from airflow_provider_webdata.common.job_kinds import checked_kind
from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.common.worker_exit import seconds_until_resumable
from airflow_provider_webdata.runs.failures import UncertainStartError
from airflow_provider_webdata.runs.intent import may_have_acted
from airflow_provider_webdata.runs.jobs.identity import JobIdentity
from airflow_provider_webdata.runs.jobs.lookup import JobLookup, JobMatches
from airflow_provider_webdata.runs.jobs.state import NOT_STARTED, StartState, TaskJob
from airflow_provider_webdata.runs.replica import until_found, until_visible
from airflow_provider_webdata.runs.state import TaskState
from airflow_provider_webdata.states.jobs import LOST, RESULT_LIFE, JobView, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import JobStarted
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook

LISTED_AFTER = timedelta(minutes=2)
"""Maximum delay until the service lists a started job."""

_KEY = "webdata_job"
_MAX_GENERATIONS = 20


def poll_job(hook: WebDataHook, kind: JobKind, job_id: str) -> JobView:
    """Return a job's current state; raises the hook's errors."""
    # The response contains a part of the result; one page is the minimum.
    return JobView.of(kind, job_id, hook.job_status(kind, job_id, limit=1))


def was_started_before(context: Context) -> bool:
    """Return whether an earlier attempt started the task's job; False if Airflow has no task state store."""
    state = TaskState(context, _KEY, NOT_STARTED)
    return state.record.attempt is not None and state.record.attempt < state.attempt.number


def recorded_start(context: Context) -> StartState:
    """Return the record of the task's job; empty if Airflow has no task state store."""
    return TaskState(context, _KEY, NOT_STARTED).record


def record_stop(context: Context) -> None:
    """Record that the task cancels its job: a later attempt publishes the pages so far."""
    TaskState(context, _KEY, NOT_STARTED).set(stopped=True)


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
        """URLs or texts that identify the job in the team's activity; empty: they are unknown."""

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

    An attempt that knows the job's id reuses the job. An attempt that knows only that a request was sent repeats a
    crawl's request with the same idempotency key, and searches the service's listings for any other job, or for one
    that the key has started. If the outcome of the request cannot be determined, the task fails with instructions. A
    job is replaced if it failed, expired, or was canceled by anyone but the task, and (3.3) if its request differs, or
    the connection can no longer access it.

    Where nothing is billed, an unknown outcome costs nothing: a job that the server lost is replaced, and a request
    whose response is lost is repeated in the same attempt, unless a listing names its job.

    Airflow's `ResumableJobMixin` records a job's id after the response. If a worker dies before that, the next attempt
    starts the job again. This class records the request before sending it. Airflow 3.2 has no store: an earlier
    attempt's job is looked up by keys that every attempt derives deterministically.
    """

    def __init__(self, call: JobCall, context: Context, log: Any) -> None:
        self.call = call
        self.hook, self.kind = call.hook, call.kind
        self.log = log
        self._state = TaskState(context, _KEY, NOT_STARTED)
        # Airflow 3.2: an earlier attempt may have sent a request without being able to record it.
        self._is_unrecorded = self._state.began and not self._state.is_lasting
        self._identity = JobIdentity.of(self._state.attempt)
        server = self.hook.get_settings().client.server
        # The service rejects a repeated idempotency key.
        self._has_key = ENDPOINTS[f"start_{self.kind}"].key_header is not None and server.stores_keys
        # Otherwise, a repeated request may be billed twice.
        self._bills = server.bills
        self._is_repeatable = self._has_key or not self._bills
        self._lists_calls = "activity" not in server.lacks
        self._server = server
        self._server_record = server.record

    @property
    def deadline(self) -> float | None:
        """Recorded end of the wait for the job, in seconds since the epoch, or None."""
        return self._state.record.deadline

    def set_deadline(self, deadline: float) -> None:
        """Record the end of the wait for the job, in seconds since the epoch."""
        self._state.set(deadline=deadline)

    def find(self) -> TaskJob | None:
        """Return the job of an earlier attempt that is running or has a result, or None.

        :raises UncertainStartError: an earlier attempt may have started a job that cannot be found.
        :raises AirflowRescheduleException: the service may not list the job yet.
        """
        if not self._state.record.is_for(self.kind, self._digest, self._account) and not self._is_reachable():
            self._give_up()
        return self._adopted(self._started_earlier())

    def start(self) -> TaskJob:
        """Start a job; call `find` first.

        :raises UncertainStartError: the request may have started a job that cannot be found.
        :raises AirflowRescheduleException: the service may not list the job yet.
        :raises WebDataError: the job could not be started.
        """
        while True:
            if job := self._request():
                return self._own(job)
            if job := self._adopted(self._started_with_this_key()):
                return job

    def _adopted(self, found: JobMatches) -> TaskJob | None:
        if job := self._alive(found):
            return self._own(job)
        if found.jobs:
            self._state.write(self._state.record.next_generation(found.jobs))
        return None

    def _own(self, job: TaskJob) -> TaskJob:
        if job.job_id != self._state.record.job_id:
            self._state.write(self._state.record.owning(job))
        return job

    def _is_reachable(self) -> bool:
        """Return whether only the API key or the address has changed, so that the job is still this account's."""
        record = self._state.record
        if record.job_id is None or (record.kind, record.request) != (self.kind, self._digest):
            return False
        view, _ = self._view_of(record.job_id)
        if view is None:
            return False
        self.log.info("The connection changed, but job %s is still accessible", record.job_id)
        self._state.set(account=self._account)
        return True

    def _give_up(self) -> None:
        """Abandon an earlier attempt's job: its request or its account differs."""
        record = self._state.record
        if not record.is_begun:
            self._state.write(record.next_generation(()))
            return
        moved = record.account != self._account
        name = f"job {record.job_id}" if record.job_id else "a job that it may have started"
        self.log.warning(
            "%s changed since an earlier attempt. The task abandons %s and sends a new request%s",
            "The account of the connection" if moved else "The arguments",
            name,
            "; both are billed" if self._bills else "",
        )
        if record.job_id is None:
            self.call.settle_unknown()
            self._state.write(record.next_generation(()))
            return
        if moved:
            self.call.settle_unknown()
            self.log.warning("Cancel %s manually: the connection can no longer access its account", name)
        else:
            self.call.discard(checked_kind(record.kind), record.job_id)
        self._state.write(record.next_generation([record.job_id]))

    def _started_earlier(self) -> JobMatches:
        """Return the jobs that earlier attempts started."""
        record = self._state.record
        if record.job_id is not None:
            return JobMatches([record.job_id], are_certain=True)
        if not (record.is_begun or self._is_unrecorded):
            # An attempt that died before it recorded a request sent none.
            self.call.settle(None)
            return JobMatches()
        if self._has_key:
            # A job of the same URL may be another task's; a key identifies ours.
            if (delivered := self._lookup.delivered()).jobs:
                return delivered
            self.log.info(
                "An earlier attempt may have started a job; sending the request again with the same idempotency key"
            )
            self.call.settle(None)
            return JobMatches()
        if self._can_search:
            self.log.info("An earlier attempt may have started a job; searching for it")
        found = self._lookup.find()
        if found.jobs:
            return found
        if found.doubts and not self._is_repeatable:
            raise self._uncertain(found)
        self._reschedule_until_listed()
        self.call.settle(None)
        if self._is_repeatable:
            self.log.warning(
                "%s; sending the request again. The server may run both jobs, but bills neither",
                "No job was found" if self._can_search else "An earlier attempt may have started a job",
            )
            return JobMatches()
        self.log.warning(
            "No job of an earlier attempt was found: neither a delivery nor the team's activity names one"
        )
        self._is_unrecorded = False
        self._state.set(requested_at=None)
        return JobMatches()

    def _reschedule_until_listed(self) -> None:
        requested, now = self._state.record.requested_at, datetime.now(timezone.utc)
        if not self._bills or requested is None or now >= (listed := requested + LISTED_AFTER):
            return
        listed = max(listed, now + timedelta(seconds=seconds_until_resumable()))
        self.log.info("The service may not list the job yet. Rescheduling the task to %s", listed)
        raise AirflowRescheduleException(listed)  # type: ignore[no-untyped-call]

    def _request(self) -> TaskJob | None:
        """Send the request; return None if its idempotency key has already started a job."""
        webhook = self.call.webhook.new(self._key())
        self.call.check()
        before = self._state.record
        self._record_request(reports=webhook is not None)
        key = self._identity.idempotency_key(before.generation) if self._has_key else None
        try:
            answer = self._send(webhook, key)
        except WebDataError as error:
            if not may_have_acted(error):
                self.call.settle(None)
                self._state.write(before)
                raise
            if not self._is_repeatable:
                return self._after_lost_answer(error)
            if not self._bills and (job := self._found_now(error)):
                return job
            how = "; the server may run both jobs, but bills neither"
            how = " with the same idempotency key" if self._has_key else how
            self.log.warning("%s. Sending the request again%s", error.brief(), how)
            try:
                answer = self._send(webhook, key)
            except WebDataError as again:
                if not may_have_acted(again) or not self._bills:
                    raise
                return self._after_lost_answer(again)
        if answer is None:
            return None
        # If an earlier attempt's request was lost, its repetition may have started the job.
        self._state.set(attempt=self._state.attempt.number)
        self.log.info("Started %s: job %s", self._subject, answer.id)
        return TaskJob(answer.id, webhook is not None, list(answer.invalid_urls or ()))

    def _send(self, webhook: Mapping[str, Any] | None, key: str | None) -> JobStarted | None:
        try:
            return self.call.send(webhook, key)
        except IdempotencyKeyUsedError as error:
            self.log.info("%s: an earlier request started this crawl; searching for it", error.brief())
            return None
        except WebDataError:
            raise
        # Airflow raises a BaseException on a task timeout.
        except BaseException:
            self.log.error(
                "The attempt ended before the response: a %s may have started%s. A retry finds it; otherwise, see %s",
                name_of(self.kind),
                ", and bill" if self._bills else "",
                self._server_record,
            )
            raise

    def _record_request(self, *, reports: bool) -> None:
        """Record that the request is about to be sent; a repeated request keeps its record.

        :param reports: whether the request has the managed webhook.
        """
        record = self._state.record
        # Do not list a job that an unrecorded request started as known.
        if record.requested_at is not None or self._is_unrecorded:
            self._state.set(reports=reports or record.reports)
            return
        self._state.set(
            reports=reports,
            known=(*record.past, *self._listed_ids()),
            requested_at=datetime.now(timezone.utc),
            attempt=self._state.attempt.number,
            kind=self.kind,
            request=self._digest,
            account=self._account,
        )

    def _listed_ids(self) -> list[str]:
        try:
            with self.hook.optional() as hook:
                items = hook.activity(endpoint=self.kind, limit=100).data
        except WebDataError as error:
            self.log.debug("The team's activity could not be read: %s", error.brief())
            return []
        return [item.id for item in items if item.id]

    def _after_lost_answer(self, error: WebDataError) -> TaskJob:
        self.log.warning("%s. Searching for a job that may have started anyway", error.brief())
        try:
            found = self._find_with_retries()
        except WebDataError as trouble:
            found = JobMatches(doubts=[trouble.brief()])
        if job := self._alive(found):
            return job
        if found.jobs or self._is_repeatable or self._state.is_lasting or self._lookup.keys:
            self.log.warning(
                "The request's outcome is still unknown. A retry searches for the job; clearing the task starts another"
            )
            raise error
        # Airflow 3.2 stores no record of the request, so the next attempt would know even less.
        raise self._uncertain(found, "the service does not list it", f"{error.brief()}; ")

    def _found_now(self, error: WebDataError) -> TaskJob | None:
        """Search once, if the server lists such jobs: it has no replica."""
        if not self._can_search:
            return None
        self.log.warning("%s. Searching for a job that may have started anyway", error.brief())
        try:
            found = self._lookup.find()
        except WebDataError as trouble:
            self.log.warning("The search failed: %s", trouble.brief())
            return None
        return self._alive(found)

    @property
    def _can_search(self) -> bool:
        """Whether the inbox, the running crawls, or the team's activity may name the job."""
        return bool(self.kind == "crawl" or self._lists_calls or self._lookup.keys)

    def _started_with_this_key(self) -> JobMatches:
        found = self._find_with_retries()
        if found.jobs and self._state.record.generation < _MAX_GENERATIONS:
            return found
        self._reschedule_until_listed()
        why = "; ".join(found.doubts) or "neither the inbox nor the team's activity names it"
        raise self._uncertain(JobMatches(), f"the idempotency key was used, but {why}")

    def _find_with_retries(self) -> JobMatches:
        found = JobMatches()

        def lookup() -> list[str]:
            nonlocal found
            found = self._lookup.find()
            return found.jobs

        until_found(lookup)
        return found

    @property
    def _may_report(self) -> bool:
        """Whether a job of an earlier request may report to the inbox."""
        return self._state.record.reports if self._state.is_lasting else self.call.webhook.is_possible

    @property
    def _lookup(self) -> JobLookup:
        record = self._state.record
        # Without a record, the job may have the key of any generation.
        generations = [record.generation] if self._state.is_lasting else range(_MAX_GENERATIONS)
        keys = [
            self._identity.key(secret, generation) for generation in generations for secret in self._secrets
        ]
        return JobLookup(
            self.hook,
            self.kind,
            keys if self._may_report else [],
            self.call.targets,
            self.call.request,
            record.requested_at or self._state.attempt.run_start,
            {*record.known, *record.past},
        )

    def _uncertain(self, found: JobMatches, otherwise: str = "", error: str = "") -> UncertainStartError:
        instead = "which would be billed, too" if self._bills else "to avoid running it twice"
        return UncertainStartError(
            f"{error}an earlier request may have started a {name_of(self.kind)}, and its outcome cannot be determined: "
            f"{'; '.join(found.doubts) or otherwise}. The task starts no other job, {instead}. If "
            f"{self._server_record} shows the job, get its result with "
            f"WebDataJobSensor(kind={self.kind!r}, job_id=...); otherwise, clear this task to start one"
        )

    def _alive(self, found: JobMatches) -> TaskJob | None:
        """Return the job that is running or has a result, or None."""
        alive: list[tuple[str, JobView]] = []
        lost = ""
        for job_id in found.jobs:
            view, missing = self._view_of(job_id)
            if view is not None and (
                view.is_alive or (self._state.record.stopped and view.state == "cancelled")
            ):
                alive.append((job_id, view))
            elif view is None and self._bills and not self._has_expired(missing):
                lost = f"the service does not find job {job_id}, which an earlier attempt started ({missing})"
            else:
                if view is not None:
                    state = f"ended without a result ({view.progress()})"
                else:
                    state = "has expired" if self._has_expired(missing) else f"is unknown: the server {LOST}"
                self.log.warning("Job %s of an earlier attempt %s", job_id, state)
                self.call.settle(job_id)
        possible = [job_id for job_id, _ in alive]
        if alive and not found.are_certain:
            # A job without a result may be ours, and the other one another task's. Without a record (Airflow 3.2),
            # those before the other one may be those of earlier attempts.
            possible = found.jobs if self._state.is_lasting else found.jobs[found.jobs.index(possible[0]) :]
        if len(possible) > 1:
            names = ", ".join(possible)
            raise self._uncertain(JobMatches(doubts=[f"several jobs match: {names}"]))
        if not alive and lost:
            raise UncertainStartError(
                f"{lost}, although its result cannot have expired yet. Clear the task to start another job"
            )
        if not alive:
            return None
        ((job_id, view),) = alive
        self.log.info("An earlier request started %s: job %s, %s", self._subject, job_id, view.progress())
        record = self._state.record
        return TaskJob(job_id, self._may_report, list(record.invalid_urls), view)

    def _view_of(self, job_id: str) -> tuple[JobView | None, str]:
        """Return a job's state, or None and the error of the service."""

        def poll() -> JobView:
            return poll_job(self.hook, self.kind, job_id)

        try:
            # A server that does not bill has no replica.
            return until_visible(poll) if self._bills else poll(), ""
        except NotFoundError as error:
            return None, error.brief()

    def _has_expired(self, missing: str) -> bool:
        requested = self._state.record.requested_at
        is_old = requested is not None and datetime.now(timezone.utc) - requested > RESULT_LIFE
        return is_old or "expired" in missing.lower()

    @property
    def _subject(self) -> str:
        """The job's kind, its targets, its limit, and its connection, for the log."""
        first = trimmed(without_secrets(next(iter(self.call.targets), "")), 200)
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

    @property
    def _secrets(self) -> tuple[str, ...]:
        webhook = self.hook.get_settings().webhook
        return (*webhook.secrets, *webhook.signing_secrets)

    def _key(self) -> str | None:
        secrets = self._secrets
        return self._identity.key(secrets[0], self._state.record.generation) if secrets else None
