"""Starts a job once, however often the task is tried: a later try finds what an earlier one started."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_webdata.tasks.intent import Intent, may_have_acted
from airflow_provider_webdata.tasks.jobs.identity import JobIdentity
from airflow_provider_webdata.tasks.jobs.traces import Search, Traces
from airflow_provider_webdata.tasks.replica import until_found

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.states.jobs import JobKind, JobView
    from airflow_provider_webdata.tasks.managed_webhook import ManagedWebhook

SETTLED = timedelta(minutes=2)
"""After so long, what the service does not list was not started."""

_GENERATIONS = 20
_MOST_INVALID_URLS = 1000


@dataclass
class TaskJob:
    """The job of a task.

    :param job_id: its id.
    :param reports: whether it reports to our inbox.
    :param invalid_urls: URLs that the service dropped.
    :param view: how it stood, where it was looked at.
    """

    job_id: str
    reports: bool = False
    invalid_urls: list[Any] = field(default_factory=list)
    view: JobView | None = None


class JobStart:
    """The start of the one job of a task.

    Before the request, the intent is written down where Airflow has a place for it (3.3); after it, the job's id.
    The correlation key of the job's webhook, and the idempotency key of a crawl, are such that a later try works
    out the same without any memory. A try that finds a job of an earlier one running waits for it, one that finds
    it completed takes its result, and only one that finds it failed, cancelled or expired starts another.

    :param hook: of the connection.
    :param kind: of the job.
    :param context: the task's context.
    :param webhook: ours, for the job.
    :param targets: URLs or texts by which the team's activity would name the job.
    :param send: starts the job: takes the webhook, in wire form, or None, and the idempotency key.
    :param refuse: fails the task for good.
    :param log: of the task.
    """

    def __init__(
        self,
        hook: WebDataHook,
        kind: JobKind,
        context: Context,
        webhook: ManagedWebhook,
        targets: Sequence[str],
        send: Callable[[Mapping[str, Any] | None, str], Any],
        refuse: Callable[[str], NoReturn],
        log: Any,
    ) -> None:
        self._hook = hook
        self._kind: JobKind = kind
        self._webhook = webhook
        self._targets = targets
        self._send = send
        self._refuse = refuse
        self._log = log
        self._intent = Intent(context, "webdata_job")
        self._identity = JobIdentity.of(context, self._intent)
        self._generation = int(self._intent.recall("generation") or 0)
        self._past: list[str] = list(self._intent.recall("past") or ())
        # Airflow 3.2: an earlier try may have asked, and left no note of when.
        self._asks_again = self._intent.began and not self._intent.remembers

    @property
    def deadline(self) -> float | None:
        """When the wait for the job ends, in seconds since the epoch, where an earlier try said so."""
        found = self._intent.recall("deadline")
        return float(found) if found is not None else None

    def set_deadline(self, deadline: float) -> None:
        """Note when the wait for the job ends.

        :param deadline: seconds since the epoch.
        """
        self._intent.remember(deadline=deadline)

    def own(self) -> TaskJob:
        """Return the task's job: the one of an earlier try, or a new one.

        :raises AirflowFailException: nobody can tell whether an earlier try started one.
        :raises WebDataError: it could not be started.
        """
        return (self._started_before() if self._intent.began else None) or self._start()

    # What an earlier try started.

    def _started_before(self) -> TaskJob | None:
        job_id = self._intent.started_id
        if job_id is not None:
            return self._if_alive([(self._generation, job_id)])
        if self._intent.remembers and not self._intent.recall("asked_at"):
            return None
        self._log.info("An earlier try may have started a job; looking for it")
        traces = self._search().traces()
        if traces.jobs:
            return self._if_alive(traces.jobs)
        self._be_sure_that_there_is_none(traces)
        return None

    def _if_alive(self, jobs: list[tuple[int | None, str]]) -> TaskJob | None:
        """Return the newest of the jobs that runs or has a result; else go on to the next generation."""
        for generation, job_id in reversed(jobs):
            view = self._look(job_id)
            if view is not None and view.is_alive:
                self._log.info("An earlier try started job %s: %s", job_id, view.progress())
                if generation is not None:
                    self._generation = generation
                job = TaskJob(
                    job_id,
                    bool(self._intent.recall("reports")) or self._webhook.wanted,
                    list(self._intent.recall("invalid_urls") or ()),
                    view,
                )
                if self._intent.started_id != job_id:
                    self._intent.remember(generation=self._generation, id=job_id, reports=job.reports)
                return job
            state = f"is over without a result ({view.progress()})" if view else "is not there any more"
            self._log.warning("Job %s of an earlier try %s; starting another", job_id, state)
        numbers = [generation for generation, _ in jobs if generation is not None]
        self._next_generation(max(numbers) + 1 if numbers else len(jobs), [job_id for _, job_id in jobs])
        return None

    def _next_generation(self, generation: int, dead: Sequence[str]) -> None:
        self._generation = generation
        self._past.extend(job_id for job_id in dead if job_id not in self._past)
        self._intent.remember(generation=generation, past=self._past, id=None, asked_at=None, deadline=None)

    def _look(self, job_id: str) -> JobView | None:
        """Return how a job stands, or None if its result has expired.

        :raises AirflowFailException: the service does not know it, and that is not because it is old.
        """
        from airflow_provider_webdata.api.errors import NotFoundError
        from airflow_provider_webdata.tasks.jobs.poll import poll_job

        missing: list[NotFoundError] = []

        def look() -> JobView | None:
            try:
                return poll_job(self._hook, self._kind, job_id)
            except NotFoundError as error:
                missing.append(error)
                return None

        view = until_found(look)
        if view is None and not self._has_expired(str(missing[-1])):
            self._refuse(
                f"job {job_id}, which an earlier try started, is not known to the service ({missing[-1]}), though "
                "its result cannot have expired yet. Clear the task to start another one"
            )
        return view

    def _has_expired(self, reason: str) -> bool:
        from airflow_provider_webdata.states.checks import moment

        asked = moment(self._intent.recall("asked_at"))
        old = asked is not None and datetime.now(timezone.utc) - asked > timedelta(hours=24)
        return old or "expired" in reason.lower()

    def _be_sure_that_there_is_none(self, traces: Traces) -> None:
        """Return if a job can be started without a risk to pay twice.

        :raises AirflowRescheduleException: it is too early to tell.
        :raises AirflowFailException: nobody can tell.
        """
        if self._kind == "crawl":
            self._wait_until_settled()
            # The same idempotency key makes the service refuse what it has started already.
            self._log.info("It is not to be found; asking for it again with the same idempotency key")
            return
        if traces.blind:
            self._refuse(self._cannot_tell(traces.why("")))
        self._wait_until_settled()
        self._intent.remember(asked_at=None)
        self._log.warning(
            "The service shows no job of an earlier try: neither a delivery nor the team's activity names one"
        )

    def _wait_until_settled(self) -> None:
        from airflow.sdk.exceptions import AirflowRescheduleException

        from airflow_provider_webdata.states.checks import moment

        asked = moment(self._intent.recall("asked_at"))
        if asked is not None and datetime.now(timezone.utc) < asked + SETTLED:
            self._log.info("The service may not list it yet; coming back at %s", asked + SETTLED)
            raise AirflowRescheduleException(asked + SETTLED)  # type: ignore[no-untyped-call]

    def _cannot_tell(self, why: str) -> str:
        from airflow_provider_webdata.states.jobs import name_of

        return (
            f"an earlier request to start a {name_of(self._kind)} may or may not have reached the service, and it "
            f"cannot be found out: {why}. Nothing is started, so that nothing is paid for twice. If the service's "
            "dashboard shows the job, take its result with WebDataJobSensor(kind="
            f"{self._kind!r}, job_id=...); if it shows none, clear this task to start one"
        )

    # A new one.

    def _start(self) -> TaskJob:
        from airflow_provider_webdata.api.errors import IdempotencyKeyUsedError, WebDataError

        while True:
            self._remember_asking()
            webhook = self._webhook.new(self._key())
            try:
                answer = self._send(webhook, self._identity.idempotency_key(self._generation))
            except IdempotencyKeyUsedError as error:
                if (job := self._used_already(error)) is not None:
                    return job
                continue
            except WebDataError as error:
                if not may_have_acted(error):
                    self._intent.remember(asked_at=None)
                    raise
                return self._after_a_lost_answer(error)
            job = TaskJob(answer.id, webhook is not None, list(answer.invalid_urls or ()))
            self._intent.remember(
                id=job.job_id, reports=job.reports, invalid_urls=job.invalid_urls[:_MOST_INVALID_URLS]
            )
            self._log.info("Started job %s", job.job_id)
            return job

    def _remember_asking(self) -> None:
        if self._intent.recall("asked_at"):
            return  # it is asked for again, with the same keys
        if self._asks_again:
            # What the request before may have started must not pass for older than it.
            known, since = list(self._past), self._intent.run_start
            self._asks_again = False
        else:
            known, since = [*self._past, *self._ids_before()], datetime.now(timezone.utc)
        self._intent.remember(
            generation=self._generation,
            past=self._past,
            known=known,
            asked_at=since.isoformat() if since else None,
        )

    def _ids_before(self) -> list[str]:
        from airflow_provider_webdata.api.errors import WebDataError

        try:
            items = self._hook.activity(endpoint=self._kind, limit=100).data
        except WebDataError as error:
            self._log.debug("The team's activity could not be read: %s", error)
            return []
        return [item.id for item in items if item.id]

    def _after_a_lost_answer(self, error: Exception) -> TaskJob:
        from airflow_provider_webdata.api.errors import WebDataError

        self._log.warning("%s. Looking for a job that was started all the same", error)
        search = self._search()
        traces = Traces()

        def look() -> list[tuple[int | None, str]]:
            nonlocal traces
            try:
                traces = search.traces()
            except WebDataError as trouble:
                traces = Traces(blind=[str(trouble)])
            return traces.jobs

        until_found(look)
        if traces.jobs:
            job = self._if_alive(traces.jobs)
            if job is None:
                raise error
            return job
        if self._kind != "crawl" and not self._intent.is_lasting and not search.keys:
            # Airflow 3.2 forgets that there was a request: the next try would be none the wiser.
            self._refuse(f"{error}; {self._cannot_tell(traces.why('the service does not list it'))}")
        self._log.warning(
            "Whether a job was started is not known yet: a retry looks for it, clearing starts another"
        )
        raise error

    def _used_already(self, error: Exception) -> TaskJob | None:
        """Return the crawl that was started with this idempotency key, or None if it is over without a result."""
        self._log.info("%s: an earlier request started this crawl; looking for it", error)
        traces = Traces()

        def look() -> list[tuple[int | None, str]]:
            nonlocal traces
            traces = self._search().traces()
            return traces.jobs

        jobs = until_found(look)
        if not jobs or self._generation >= _GENERATIONS:
            why = traces.why("neither the inbox nor the team's activity names it")
            self._refuse(self._cannot_tell(f"the idempotency key was used, but {why}"))
        return self._if_alive([(self._generation, job_id) for _, job_id in jobs])

    # Names and places.

    def _secrets(self) -> tuple[str, ...]:
        webhook = self._hook.get_settings().webhook
        return (*webhook.secrets, *webhook.signing_secrets)

    def _key(self) -> str | None:
        known = self._secrets()
        return self._identity.key(known[0], self._generation) if known else None

    def _search(self) -> Search:
        from airflow_provider_webdata.states.checks import moment

        generations = [self._generation] if self._intent.remembers else range(_GENERATIONS)
        keys = {
            self._identity.key(secret, generation): generation
            for generation in generations
            for secret in self._secrets()
        }
        return Search(
            self._hook,
            self._kind,
            keys if self._webhook.wanted else {},
            self._targets,
            moment(self._intent.recall("asked_at")) or self._intent.run_start,
            frozenset([*(self._intent.recall("known") or ()), *self._past]),
        )
