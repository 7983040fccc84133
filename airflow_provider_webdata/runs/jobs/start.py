"""Starts a job once, however many attempts its task makes: a later one finds what an earlier one started."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_webdata.runs.intent import Intent, may_have_acted
from airflow_provider_webdata.runs.jobs.identity import JobIdentity
from airflow_provider_webdata.runs.jobs.start_table import (
    RULES,
    Event,
    Finding,
    FoundJob,
    StartRecord,
    State,
    TaskJob,
    after_search,
    next_generation,
)
from airflow_provider_webdata.runs.jobs.traces import JobSearch, Traces
from airflow_provider_webdata.runs.replica import until_found
from airflow_provider_webdata.states.jobs import checked_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook
    from airflow_provider_webdata.states.jobs import JobKind, JobView

LISTED_AFTER = timedelta(minutes=2)
"""After so long, the service lists what was started."""

_INTENT = "webdata_job"
_RESULT_LIFE = timedelta(hours=24)
_MOST_GENERATIONS = 20


def is_of_earlier_attempt(context: Context) -> bool:
    """Return whether an earlier attempt started the task's job. Without a store that is unknown: False."""
    attempt = StartRecord.of(Intent(context, _INTENT)).attempt
    return attempt is not None and attempt < _attempt_of(context)


def _attempt_of(context: Context) -> int:
    return int(getattr(context.get("ti"), "try_number", 1))


class JobStart:
    """The start of the one job of a task.

    Before the request, the intent is recorded where Airflow has a store for it (3.3); after it, the job's id. The
    correlation key of the job's webhook and the idempotency key of a crawl are computed alike by every attempt. An
    attempt that finds an earlier one's job running waits for it, one that finds it completed takes its result, and
    only one that finds it failed, cancelled or expired starts another. `start_table` has every case. A job of another
    request, or of another account, is not the task's any more: it is discarded, and a new one starts (3.3).

    :param webhook: the managed webhook of the job.
    :param targets: URLs or texts by which the team's activity would name the job.
    :param check: fails where the request must not be sent; called before each one is.
    :param send: starts the job: takes the webhook, in wire form, or None, and the idempotency key.
    :param request: what decides on the result, in wire form, to recognize a request that was changed.
    :param discard: cancels a job that the task does not want any more, and counts what it cost.
    :param settle: counts what a job without a result cost; None in place of its id: none was started.
    """

    def __init__(
        self,
        hook: WebDataHook,
        kind: JobKind,
        context: Context,
        webhook: ManagedWebhook,
        targets: Sequence[str],
        check: Callable[[], None],
        send: Callable[[Mapping[str, Any] | None, str], Any],
        log: Any,
        *,
        request: Mapping[str, Any],
        discard: Callable[[JobKind, str], None],
        settle: Callable[[str | None], None],
    ) -> None:
        self._hook = hook
        self._kind: JobKind = kind
        self._webhook = webhook
        self._targets = targets
        self._check = check
        self._send = send
        self._log = log
        self._digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        self._discard = discard
        self._settle = settle
        self._intent = Intent(context, _INTENT)
        self._attempt = _attempt_of(context)
        self._identity = JobIdentity.of(context, self._intent)
        self._record = StartRecord.of(self._intent)
        # Airflow 3.2: an earlier attempt may have sent a request, and had no place to record it.
        self._unrecorded = self._intent.began and not self._intent.remembers
        self._jobs: Sequence[FoundJob] = ()
        if self._record.job_id is not None:
            self._jobs = [FoundJob(self._record.generation, self._record.job_id)]
        self._error: Exception | None = None

    @property
    def deadline(self) -> float | None:
        """When the wait for the job ends, in seconds since the epoch, where it was recorded."""
        return self._record.deadline

    def set_deadline(self, deadline: float) -> None:
        """Record when the wait for the job ends, in seconds since the epoch."""
        self._store(replace(self._record, deadline=deadline))

    def find_or_start(self) -> TaskJob:
        """Return the task's job: the one of an earlier attempt, or a new one.

        :raises UncertainStartError: it is unknown whether an earlier attempt started one.
        :raises AirflowRescheduleException: it is too early to tell.
        :raises WebDataError: it could not be started.
        """
        actions = {
            State.NEW: self._send_request,
            State.SENT: self._search_earlier,
            State.STARTED: self._poll,
            State.UNANSWERED: self._search_unanswered,
            State.LISTED: self._poll,
            State.KEY_USED: self._search_used_key,
        }
        if not self._record.is_for(self._kind, self._digest, self._account()):
            self._discard_earlier()
        state = self._record.first_state(unrecorded=self._unrecorded)
        while True:
            finding = actions[state]()
            change, state = RULES[state, finding.event]
            self._store(change(self._record, finding))
            self._jobs = finding.jobs
            if finding.job is not None:
                return finding.job
            if state not in actions:
                self._end(state, finding)

    def _discard_earlier(self) -> None:
        """Give up what an earlier attempt started: its request differs, or its account does."""
        from airflow_provider_webdata.api.errors import WebDataError

        record = self._record
        moved = record.account != self._account()
        jobs = list(self._jobs)
        if not jobs and record.requested_at is not None and not moved:
            try:
                jobs = self._search().delivered()
            except WebDataError as error:
                self._log.debug("The inbox could not be searched: %s", error)
        what = "connection leads to another account" if moved else "arguments have changed"
        names = ", ".join(f"job {job.job_id}" for job in jobs) or "a job that it may have started"
        self._log.warning(
            "The task's %s since an earlier attempt. Its result would be that of the former request: %s is given up, "
            "and the request is sent anew; both are billed",
            what,
            names,
        )
        if moved and jobs:
            self._log.warning(
                "Cancel %s yourself: the connection cannot reach its account any more. If you rotated the key of the "
                "same team, the job is yours still: take its result with WebDataJobSensor(kind=%r, job_id=...)",
                names,
                record.kind,
            )
        for job in () if moved else jobs:
            self._discard(checked_kind(record.kind), job.job_id)
        self._store(next_generation(record, Finding(Event.OVER, jobs)))
        self._jobs = ()

    def _account(self) -> str:
        return self._hook.get_settings().client.account

    def _store(self, record: StartRecord) -> None:
        if record != self._record:
            self._record = record
            self._intent.remember(**record.to_json())

    def _end(self, state: State, finding: Finding) -> NoReturn:
        from airflow.sdk.exceptions import AirflowRescheduleException

        from airflow_provider_webdata.runs.failures import UncertainStartError

        if state is State.LATER:
            raise AirflowRescheduleException(finding.until)  # type: ignore[no-untyped-call]
        if state is State.RETRY and self._error is not None:
            raise self._error
        raise UncertainStartError(finding.reason)

    # Sending the request.

    def _send_request(self) -> Finding:
        from airflow_provider_webdata.api.errors import IdempotencyKeyUsedError, WebDataError

        self._check()
        self._record_request()
        webhook = self._webhook.new(self._key())
        try:
            answer = self._send(webhook, self._identity.idempotency_key(self._record.generation))
        except IdempotencyKeyUsedError as error:
            self._log.info("%s: an earlier request started this crawl; searching for it", error)
            return Finding(Event.KEY_REFUSED)
        except WebDataError as error:
            self._error = error
            if not may_have_acted(error):
                self._settle(None)
                return Finding(Event.REJECTED)
            self._log.warning("%s. Searching for a job that was started all the same", error)
            return Finding(Event.ANSWER_LOST)
        # An earlier attempt's request, which is sent again with its key, may not have come through.
        self._store(replace(self._record, attempt=self._attempt))
        job = TaskJob(answer.id, webhook is not None, list(answer.invalid_urls or ()))
        self._log.info("Started job %s", job.job_id)
        return Finding(Event.ANSWERED, job=job)

    def _record_request(self) -> None:
        """Record that the request is about to be sent; one that is sent again keeps its record."""
        record = self._record
        if record.requested_at is not None:
            return
        if self._unrecorded:
            # Else a job that the unrecorded request started would pass for one from before the task.
            known, since = record.past, self._intent.run_start
            self._unrecorded = False
        else:
            known, since = (*record.past, *self._listed_ids()), datetime.now(timezone.utc)
        self._store(
            replace(
                record,
                known=known,
                requested_at=since.isoformat() if since else None,
                attempt=self._attempt,
                kind=self._kind,
                request=self._digest,
                account=self._account(),
            )
        )

    def _listed_ids(self) -> list[str]:
        from airflow_provider_webdata.api.errors import WebDataError

        try:
            items = self._hook.activity(endpoint=self._kind, limit=100).data
        except WebDataError as error:
            self._log.debug("The team's activity could not be read: %s", error)
            return []
        return [item.id for item in items if item.id]

    # Searching for a job that was started.

    def _search_earlier(self) -> Finding:
        self._log.info("An earlier attempt may have started a job; searching for it")
        traces = self._search().traces()
        # The service refuses a crawl whose idempotency key has started one.
        repeatable = self._kind == "crawl"
        requested = self._requested_at()
        until = None if requested is None else requested + LISTED_AFTER
        event = after_search(
            found=bool(traces.jobs),
            certain=not traces.gaps,
            listed_by_now=until is None or datetime.now(timezone.utc) >= until,
            repeatable=repeatable,
        )
        if event is Event.TOO_EARLY:
            self._log.info("The service may not list the job yet; the task is rescheduled to %s", until)
        elif event is Event.REPEATABLE:
            # The service bills one of the two requests.
            self._settle(None)
            self._log.info("No job was found; sending the request again with the same idempotency key")
        elif event is Event.ABSENT:
            self._settle(None)
            self._log.warning(
                "No job of an earlier attempt was found: neither a delivery nor the team's activity names one"
            )
        return Finding(event, traces.jobs, reason=self._uncertain(traces.why()), until=until)

    def _search_unanswered(self) -> Finding:
        from airflow_provider_webdata.api.errors import WebDataError

        search = self._search()
        traces = Traces()

        def lookup() -> list[FoundJob]:
            nonlocal traces
            try:
                traces = search.traces()
            except WebDataError as error:
                traces = Traces(gaps=[str(error)])
            return traces.jobs

        if until_found(lookup):
            return Finding(Event.FOUND, traces.jobs)
        if self._kind == "crawl" or self._intent.is_lasting or search.keys:
            self._log.warning(
                "Whether a job was started is not known yet: a retry searches for it; clearing the task starts another"
            )
            return Finding(Event.TOO_EARLY)
        # Airflow 3.2 keeps no record of the request: the next attempt would know even less.
        why = self._uncertain(traces.why("the service does not list it"))
        return Finding(Event.UNCERTAIN, reason=f"{self._error}; {why}")

    def _search_used_key(self) -> Finding:
        traces = Traces()

        def lookup() -> list[FoundJob]:
            nonlocal traces
            traces = self._search().traces()
            return traces.jobs

        generation = self._record.generation
        if until_found(lookup) and generation < _MOST_GENERATIONS:
            return Finding(Event.FOUND, [FoundJob(generation, job_id) for _, job_id in traces.jobs])
        why = traces.why("neither the inbox nor the team's activity names it")
        return Finding(Event.UNCERTAIN, reason=self._uncertain(f"the idempotency key was used, but {why}"))

    def _search(self) -> JobSearch:
        generations = [self._record.generation] if self._intent.remembers else range(_MOST_GENERATIONS)
        keys = {
            self._identity.key(secret, generation): generation
            for generation in generations
            for secret in self._secrets()
        }
        return JobSearch(
            self._hook,
            self._kind,
            keys if self._webhook.wanted else {},
            self._targets,
            self._requested_at() or self._intent.run_start,
            frozenset([*self._record.known, *self._record.past]),
        )

    def _uncertain(self, why: str) -> str:
        from airflow_provider_webdata.states.jobs import name_of

        return (
            f"an earlier request to start a {name_of(self._kind)} may or may not have reached the service, and it "
            f"cannot be found out: {why}. Nothing is started, so that nothing is paid for twice. If the service's "
            "dashboard shows the job, take its result with WebDataJobSensor(kind="
            f"{self._kind!r}, job_id=...); if it shows none, clear this task to start one"
        )

    # Polling jobs that were found.

    def _poll(self) -> Finding:
        for found in reversed(self._jobs):
            job_id = found.job_id
            view, missing = self._view_of(job_id)
            if view is not None and view.is_alive:
                self._log.info("An earlier request started job %s: %s", job_id, view.progress())
                reports = self._record.reports or self._webhook.wanted
                job = TaskJob(job_id, reports, list(self._record.invalid_urls), view)
                return Finding(Event.ALIVE, [found], job)
            if view is None and not self._has_expired(missing):
                reason = (
                    f"job {job_id}, which an earlier attempt started, is not known to the service ({missing}), though "
                    "its result cannot have expired yet. Clear the task to start another one"
                )
                return Finding(Event.MISSING, reason=reason)
            state = f"is over without a result ({view.progress()})" if view else "has expired"
            self._log.warning("Job %s of an earlier attempt %s; another one is needed", job_id, state)
            self._settle(job_id)
        return Finding(Event.OVER, self._jobs)

    def _view_of(self, job_id: str) -> tuple[JobView | None, str]:
        """Return a job's state, or None and why the service does not show it."""
        from airflow_provider_webdata.api.errors import NotFoundError
        from airflow_provider_webdata.runs.jobs.poll import poll_job

        missing = ""

        def lookup() -> JobView | None:
            nonlocal missing
            try:
                return poll_job(self._hook, self._kind, job_id)
            except NotFoundError as error:
                missing = str(error)
                return None

        return until_found(lookup), missing

    def _has_expired(self, missing: str) -> bool:
        requested = self._requested_at()
        old = requested is not None and datetime.now(timezone.utc) - requested > _RESULT_LIFE
        return old or "expired" in missing.lower()

    # What is recorded, and the connection's secrets.

    def _requested_at(self) -> datetime | None:
        from airflow_provider_webdata.states.checks import moment

        return moment(self._record.requested_at)

    def _secrets(self) -> tuple[str, ...]:
        webhook = self._hook.get_settings().webhook
        return (*webhook.secrets, *webhook.signing_secrets)

    def _key(self) -> str | None:
        secrets = self._secrets()
        return self._identity.key(secrets[0], self._record.generation) if secrets else None
