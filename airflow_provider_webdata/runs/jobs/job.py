# SPDX-License-Identifier: Apache-2.0
"""A job: started once for all attempts of the task, awaited, and its result published."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferralTimeout
from msgspec.structs import replace

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.endpoints import JOBS, label_of
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.api.prices import page_extras
from airflow_provider_webdata.common.arguments import checked_text, seconds
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS, checked_kind
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.hooks.call_guard import cost_of_failure
from airflow_provider_webdata.hooks.calls import body_for
from airflow_provider_webdata.results.pages.requested import RequestedPages
from airflow_provider_webdata.runs.failures import AgentLimitError, JobFailedError
from airflow_provider_webdata.runs.jobs.results import JobResult, texts
from airflow_provider_webdata.runs.jobs.start import JobStart, poll_job
from airflow_provider_webdata.runs.managed_webhook import ManagedWebhook, origin_of
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.outside_handler import run_outside_handler
from airflow_provider_webdata.runs.publishing.page_errors import PageErrors
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.runs.request import checked_extra_body, checked_request, valid_request
from airflow_provider_webdata.runs.wait_run import WaitRun
from airflow_provider_webdata.states.jobs import TERMINAL_JOB_STATES, events_to_ask_for, first_few, name_of
from airflow_provider_webdata.states.outcomes import JobOutcome
from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from airflow_provider_webdata.waiting.job_target import JobTarget
from airflow_provider_webdata.waiting.policy import JOB_POLL_INTERVAL, poll_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow.sdk import Context
    from airflow.sdk.exceptions import AirflowException

    from airflow_provider_webdata.api.models import JobStarted
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.base.job_operator import WebDataJobOperator
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
    from airflow_provider_webdata.runs.jobs.start import TaskJob
    from airflow_provider_webdata.states.task_record import Started

JOB_WAIT_SECONDS = 86400.0
_INVALID_URLS = "invalid_urls"
_NEVER_SENT = "https://example.com/"


class JobRun(WaitRun[JobOutcome]):
    """One attempt of a task that starts a job and waits for it; `runs.jobs.start` guarantees a single start."""

    task: WebDataJobOperator
    outcome_class = JobOutcome

    def __init__(self, task: WebDataJobOperator, context: Context) -> None:
        super().__init__(task, context)
        self.kind: JobKind = task._job_kind
        self.operation = self.kind
        self._running: str | None = None
        self._stop_reason: str | None = None
        self._killed = False

    # Hooks for subclasses.

    def check(self) -> None:
        """Fail the task before any call is billed."""

    def request(self) -> tuple[type[RequestModel], Mapping[str, Any]]:
        """Return the model of the request, and its fields without a managed webhook."""
        return getattr(models, self.task._request_model), self.task._field_values()

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The request without a managed webhook, in wire form."""
        model, fields = self.request()
        return body_for(model, fields, self.start_name).to_wire()

    def comparable(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a later attempt compares with its own, of the request in wire form."""
        # A webhook has no effect on a job's result.
        return {name: value for name, value in body.items() if name != "webhook"}

    def has_work(self) -> bool:
        """Return whether a job must be started; called once no job of an earlier attempt was found."""
        return True

    def completed(self, request: RequestModel) -> RequestModel:
        """Return the checked request with what only `has_work` has decided."""
        return request

    def inputs(self) -> list[str]:
        """Return the URLs or texts of the job, for OpenLineage and the log."""
        _, fields = self.request()
        return [text for name in ("urls", "prompt") for text in texts(fields.get(name))]

    def requested(self) -> RequestedPages:
        """Return the pages that a batch requested; none if they are unknown, as those of a crawl."""
        urls = self.inputs() if self.kind == "batch_scrape" else []
        return RequestedPages(urls, self.dropped_urls())

    @property
    def site(self) -> str | None:
        """The site whose pages a complete job covers."""
        return None

    def covers_all(self, count: int) -> bool:  # noqa: ARG002
        """Return whether a job with this number of pages, read or not, saw the whole site."""
        return True

    def known_pages(self) -> int:
        """Return the number of existing pages that were not requested."""
        return 0

    # The task.

    def call(self) -> Any:
        """Start the job, or find an earlier attempt's, and return its result or its id.

        :raises AirflowRescheduleException: the service asks to wait.
        :raises UncertainStartError: an earlier request may have started a job that nothing names.
        :raises JobFailedError: the job failed or was canceled; a retry starts another job.
        """
        self.ledger.push_earlier()
        self.check()
        self._count_former()
        return self.start_and_wait()

    def _count_former(self) -> None:
        """Count the job that the task left before it was cleared: Airflow does not report an end by hand in time."""
        # docs/contributing/upstream/killed_before_its_trigger.md
        former = self.memory.former
        if former is None or former.is_final or former.phase not in ("requested", "known"):
            return
        started = former.started
        if started is None or started.id is None:
            self.log.warning("Before the task was cleared, it may have started a job, whose cost is unknown")
            return
        kind = checked_kind(started.kind)
        if self.result(started.id, kind).settle_lost().get("status") in TERMINAL_JOB_STATES:
            return
        self.log.warning(
            "Job %s, which the task started before it was cleared, may still run. To cancel it, call "
            "WebDataHook(%r).cancel_job(%r, %r)",
            started.id,
            self.task.webdata_conn_id,
            kind,
            started.id,
        )

    def publish_nothing(self) -> Any:
        """Publish the empty result of a task that has no page to fetch, without a job."""
        counts = {"total": 0, "completed": 0, "creditsUsed": 0, "errors": PageErrors().to_wire()}
        return self.publish(
            Results(
                *([], "document", {"id": None, "status": "completed", **counts}),
                *(self.inputs(), self.known_pages()),
                site=self.site,
                covers_all=self.covers_all,
            )
        )

    def start_and_wait(self) -> Any:
        """Start the job, or find an earlier attempt's, and wait for it."""
        start = JobStart(_StartCall(self), self.context, self.log)
        job = start.find()
        if job is None:
            if not self.has_work():
                return self.publish_nothing()
            job = start.start()
        self._running = job.job_id
        if self._killed:
            self._cancel_killed()
        self._show(job)
        if not self.task.wait_for_completion:
            return job.job_id
        return self._wait(start, job)

    def resume_with(self, outcome: JobOutcome) -> Any:
        """Finish a deferred task with the outcome of its wait."""
        if outcome.status in {"timeout", "error"}:
            with self.calling():
                outcome = self._at_end(outcome)
        remark, used = outcome.message, outcome.over_limit
        if outcome.status == "done":
            sensor = self._sensor(outcome.job_id, may_be_cancelled=used is not None)
            state = "cancelled" if used is not None else "billed" if self._bills() else "completed"
            remark = f"Job {outcome.job_id} was {state}. To get its result, use {sensor}"
        try:
            self.read_urls(f". {remark}")
        except AirflowFailException:
            if used is not None:
                with self.calling():
                    self._stop(outcome.job_id, used)
            raise
        self.settle_lost(outcome)
        return self.finished(super().resume_with(outcome))

    def resume_failed(self, error: AirflowException) -> Any:
        """Finish the task without an event of its trigger, like after a timeout of the wait.

        :param error: Airflow's; raised unless the attempt is the last one, or Airflow's timeout has passed.
        """
        started = self._started
        ends = isinstance(error, TaskDeferralTimeout) or self.attempt.is_last
        if started is None or started.id is None or not ends:
            raise error
        kind, job_id = checked_kind(started.kind), started.id
        message = f"The triggerer did not report the end of {name_of(kind)} {job_id}: {error}"
        return self.resume_with(JobOutcome(status="timeout", message=message, kind=kind, job_id=job_id))

    def judge(self, outcome: JobOutcome) -> None:
        """Return if an outcome is `done`; otherwise end the attempt with its status."""
        if self.remedy_of(outcome):
            outcome = replace(outcome, verdict="unknown")
        super().judge(outcome)

    def remedy_of(self, outcome: JobOutcome) -> str | None:
        """Return the next step after an error of the wait if it is not that of the error's code."""
        # The id is the server's own, so that it lost the job, or its result has expired.
        return "a retry starts another job" if outcome.is_missing and not self._bills() else None

    def fail_job(self, text: str) -> NoReturn:
        """Fail the attempt; a retry may start another job."""
        at_limit = self._stop_reason == "credit_limit_reached"
        raise self.explained(AgentLimitError(text) if at_limit else JobFailedError(text))

    def result_of(self, outcome: JobOutcome) -> Any:
        """Return the result of the job."""
        self._running = None
        if outcome.over_limit is not None:
            self._stop(outcome.job_id, outcome.over_limit)
        self.memory.stage(phase="ended")
        return self.publish_job(
            outcome.job_id, most_completed=outcome.most_completed, most_total=outcome.most_total
        )

    def _stop(self, job_id: str, used: float) -> None:
        """Cancel a job that exceeds the task's credit limit; its pages so far are the result."""
        if (started := self._started) is not None:
            self.memory.note(started=replace(started, stopped=True))
        try:
            stopped = self.hook.cancel_job(self.kind, job_id)
        except WebDataError:
            self.log.error(
                "Job %s continues and bills: it could not be canceled. It has used %s credits; credit_limit=%s",
                job_id,
                credits_text(used),
                self.task.credit_limit,
            )
            self.log.error(
                "A retry cancels it; without a retry, call WebDataHook(%r).cancel_job(%r, %r)",
                self.task.webdata_conn_id,
                self.kind,
                job_id,
            )
            raise
        self.log.warning(
            "Job %s has used %s credits, more than credit_limit=%s: it %s. The task returns the pages so far",
            job_id,
            credits_text(used),
            self.task.credit_limit,
            "was canceled" if stopped else "ended before it could be canceled",
        )
        self._push_over_limit()

    def publish_job(self, job_id: str, *, most_completed: int = 0, most_total: int = 0) -> Any:
        """Publish the result of the job, and return the task's XCom; see `JobOutcome` for the counts."""
        return self.result(job_id).publish(
            *(self.inputs(), self.known_pages(), self.covers_all, self.site, self.requested()),
            most_completed=most_completed,
            most_total=most_total,
        )

    def dropped_urls(self) -> list[str]:
        """Return the URLs that the service did not accept."""
        started = self._started
        return [] if started is None else [url for url in started.invalid_urls if isinstance(url, str)]

    def result(self, job_id: str, kind: JobKind | None = None) -> JobResult:
        """Return the result of this task's job, to settle or publish it.

        :param kind: kind of the job. Default: the task's.
        """
        return JobResult(
            self,
            self.task,
            kind or self.kind,
            job_id,
            extras=self._page_extras,
            is_saved=self._is_of_earlier_attempt,
        )

    @property
    def _started(self) -> Started | None:
        return self.memory.record.started_as(*ALL_JOB_KINDS)

    @property
    def _is_of_earlier_attempt(self) -> bool:
        started = self._started
        return started is not None and started.attempt < self.attempt.number

    @property
    def start_name(self) -> str:
        """Name of the start in errors."""
        return label_of(f"start_{self.kind}")

    def _page_extras(self) -> Mapping[str, int]:
        body = self.body
        options = body.get("scrapeOptions", body)
        return page_extras(options, zero_data_retention=bool(body.get("zeroDataRetention")))

    def managed_webhook(self, origin: Mapping[str, str] | None = None) -> ManagedWebhook:
        """Return the managed webhook of the job.

        :param origin: the DAG and the task, for its metadata.
        """
        attach, has_own = self.task.attach_webhook, self.task._field_values().get("webhook") is not None
        if attach and has_own:
            self.refuse("attach_webhook=True and webhook are mutually exclusive; remove one of them")
        if attach is None and has_own:
            attach = False
        return ManagedWebhook(self.hook.get_settings(), attach, events_to_ask_for(self.kind), origin)

    def _show(self, job: TaskJob) -> None:
        self.task._webdata_job_id = job.job_id
        values: dict[str, Any] = {"job_id": job.job_id}
        if job.invalid_urls:
            values[_INVALID_URLS] = job.invalid_urls
            self.log.warning(
                "The service dropped %d invalid URLs: %s",
                len(job.invalid_urls),
                trimmed(first_few([str(url) for url in job.invalid_urls]), 2000),
            )
            self.lacks("urls_invalid", len(job.invalid_urls))
        self.push(**values)

    def _wait(self, start: JobStart, job: TaskJob) -> Any:
        task = self.task
        if job.view is not None and job.view.is_over:
            if job.view.state == "cancelled":
                # An earlier attempt canceled it at the credit limit.
                self._push_over_limit()
                return self.publish_job(job.job_id)
            return self._finish(job.view.outcome("polling"))
        resumed = start.deadline is not None
        limit = JOB_WAIT_SECONDS if task.wait_timeout is None else seconds("wait_timeout", task.wait_timeout)
        deadline = start.deadline or time.time() + limit
        if not resumed:
            start.set_deadline(deadline)
        poll_interval = poll_seconds(task.poll_interval, JOB_POLL_INTERVAL)
        if task.deferrable:
            trigger_kwargs = {
                "webdata_conn_id": task.webdata_conn_id,
                "kind": self.kind,
                "job_id": job.job_id,
                "poll_interval": poll_interval,
                "reports": job.reports,
                "cancel_on_kill": task.cancel_on_kill,
                "credit_limit": self._watched_limit,
            }
            self.defer_until(deadline, WebDataJobTrigger, trigger_kwargs, resumed=resumed)
        target = JobTarget(self.kind, job.job_id, poll_interval, self.log, credit_limit=self._watched_limit)
        return self._finish(self._at_end(self.wait_here(target, deadline, resumed=resumed)))

    def _push_over_limit(self) -> None:
        self.push(over_credit_limit=True)
        self.lacks("over_credit_limit", 1)

    @property
    def _watched_limit(self) -> float | None:
        """Credits at which the job is canceled; None for a job without readable partial results."""
        return None if JOBS[self.kind].documents is None else self.ledger.credits.limit

    def _finish(self, outcome: JobOutcome) -> Any:
        self.settle_lost(outcome)
        self.judge(outcome)
        return self.result_of(outcome)

    def settle_lost(self, outcome: JobOutcome) -> None:
        """Record the cost of a job that failed, was canceled, or timed out."""
        if outcome.status in {"failed", "timeout"}:
            status = self.result(outcome.job_id).settle_lost()
            self._stop_reason = status.get("stopReason")
            if status.get("status") in TERMINAL_JOB_STATES:
                self.memory.stage(phase="ended")

    # Cancellation.

    def _at_end(self, outcome: JobOutcome) -> JobOutcome:
        """Return the outcome after a last look at a job whose wait timed out, or failed and is not repeated."""
        if outcome.verdict == "later" and self.attempt.is_last:
            remark = f"No attempt is left, and job {outcome.job_id} may continue{' and bill' if self._bills() else ''}"
            sensor = self._sensor(outcome.job_id, may_be_cancelled=False)
            self.log.error("%s. To get its result, correct the connection, and use %s", remark, sensor)
        is_final = outcome.verdict != "later" and (outcome.verdict == "never" or self.attempt.is_last)
        if outcome.status != "error" or not is_final or outcome.is_missing:
            return self._at_timeout(outcome)
        if not outcome.job_id:
            # The trigger failed before it knew the job.
            if (started := self._started) is None or started.id is None:
                return outcome
            outcome = replace(outcome, kind=checked_kind(started.kind), job_id=started.id)
        last = self._at_timeout(replace(outcome, status="timeout"))
        if last.status != "timeout":
            return last
        self.log.error("%s", last.message)
        self.result(outcome.job_id).settle_lost()
        return outcome

    def _at_timeout(self, outcome: JobOutcome) -> JobOutcome:
        """Return the job's outcome after a wait timeout: it may have ended at the last moment."""
        if outcome.status != "timeout":
            return outcome
        job_id, message = outcome.job_id, outcome.message
        has_pages = JOBS[self.kind].documents is not None
        try:
            if self.hook.cancel_job(self.kind, job_id):
                if not has_pages:
                    billed = "; its work until then is billed" if self._bills() else ""
                    text = f"{message}. The job was canceled and has no result{billed}"
                    return replace(outcome, message=text)
                billed = "billed, and " if self._bills() else ""
                remark = f"The job was canceled; its pages so far are {billed}readable for 24 hours"
            else:
                view = poll_job(self.hook, self.kind, job_id)
                if view.is_over:
                    counts = {name: getattr(outcome, name) for name in ("most_completed", "most_total")}
                    return replace(view.outcome("polling"), **counts)
                remark, has_pages = f"The job {self._continues}", False
        except WebDataError as error:
            remark = f"The job may continue{' and bill' if self._bills() else ''}: {error.brief()}"
        sensor = self._sensor(job_id, may_be_cancelled=has_pages)
        return replace(outcome, message=f"{message}. {remark}. To get its result, use {sensor}")

    @property
    def _continues(self) -> str:
        return "continues and bills" if self._bills() else "continues"

    def _sensor(self, job_id: str, *, may_be_cancelled: bool) -> str:
        """Return the call that creates a sensor for the result of the job."""
        more = ", accept_canceled=True" if may_be_cancelled else ""
        return (
            f"WebDataJobSensor(task_id='result', webdata_conn_id={self.task.webdata_conn_id!r}, kind={self.kind!r}, "
            f"job_id={job_id!r}{more})"
        )

    def discard(self, kind: JobKind, job_id: str) -> None:
        """Cancel a job that this task abandons, like `on_kill`, and record its cost."""
        status: Mapping[str, Any] = {}
        try:
            if self.task.cancel_on_kill and self.hook.cancel_job(kind, job_id):
                self.log.info("Job %s was canceled", job_id)
            status = self.hook.job_status(kind, job_id, limit=1).to_wire()
        except WebDataError as error:
            self.log.warning("Job %s could not be canceled or read: %s", job_id, error.brief())
        self.result(job_id, kind).settle(status)

    def on_kill(self) -> None:
        """Cancel the job: the task was terminated."""
        self._killed = True
        if self._running is not None:
            run_outside_handler(self._cancel_killed)

    def _cancel_killed(self) -> None:
        job_id, self._running = self._running, None
        if job_id is None or not self.task.cancel_on_kill:
            return
        try:
            # The signal may interrupt a call of the task's own hook.
            with self.hook.sibling() as hook:
                done = hook.cancel_job(self.kind, job_id)
        except WebDataError as error:
            self.log.warning(
                "Job %s %s: it could not be canceled (%s)", job_id, self._continues, error.brief()
            )
            return
        self.log.info("Job %s %s", job_id, "was canceled" if done else "ended before it could be canceled")
        with suppress(WebDataError), self.hook.sibling() as hook:
            used = hook.job_status(self.kind, job_id, limit=1).to_wire().get("creditsUsed")
            # Airflow deletes no record with the attempt, and takes no XCom from a task that it ends.
            self.memory.stage(phase="ended")
            self.ledger.credits.settle(self.kind, used, self.kind, call=job_id)


class _StartCall:
    """The call that starts a run's job; see `JobCall`. The request is checked once, and limited before each try."""

    def __init__(self, run: JobRun) -> None:
        model, given = run.request()
        self._run = run
        self._request = self._limited = checked_request(
            run.task, model, run.start_name, given, map_index=run.attempt.map_index
        )
        self._extra_body = checked_extra_body(run.task, run.start_name)
        run.body = body = self._request.to_wire()
        self.hook, self.kind = run.hook, run.kind
        self.webhook = run.managed_webhook(origin_of(run.context))
        self.request: Mapping[str, Any] = {**run.comparable(body), "extra_body": self._extra_body}

    @property
    def targets(self) -> Sequence[str]:
        return self._run.inputs()

    def check(self) -> None:
        ledger = self._run.ledger
        self._limited = ledger.held(self.kind, self._run.completed(self._request), ledger.credits.left)
        ledger.reserve(self.kind, self._limited.to_wire(), self._extra_body)

    def send(self, webhook: Mapping[str, Any] | None, idempotency_key: str | None) -> JobStarted:
        request = self._limited
        if webhook is not None:
            request = body_for(
                type(self._request), {**request.to_wire(), "webhook": webhook}, self._run.start_name
            )
        start: Callable[..., JobStarted] = getattr(self.hook, f"start_{self.kind}")
        own_key = {} if idempotency_key is None else {"idempotency_key": idempotency_key}
        try:
            return start(request, extra_body=self._extra_body, **own_key)
        # Airflow raises a BaseException on a task timeout.
        except BaseException as error:
            if cost_of_failure(error) is None:
                # Until the job is found.
                self._run.ledger.lose(self.kind)
            raise

    def discard(self, kind: JobKind, job_id: str) -> None:
        self._run.discard(kind, job_id)

    def settle(self, job_id: str | None) -> None:
        if job_id is None:
            self._run.ledger.credits.forget(self.kind)
        else:
            self._run.settle_lost(JobOutcome(status="failed", job_id=job_id))

    def settle_unknown(self) -> None:
        self._run.ledger.settle(Cost(None), self.kind)


class BatchScrapeRun(JobRun):
    """One attempt of a task that scrapes a list of pages."""

    def start_and_wait(self) -> Any:
        """Scrape the pages; without pages, start no job.

        :raises AirflowSkipException: there are no pages, and the task returns the id of its job.
        """
        if not self.task._has_no_work():
            return super().start_and_wait()
        model, fields = self.request()
        valid_request(self.task, model, self.start_name, fields)
        self.log.info("urls is empty: no job is started")
        if not self.task.wait_for_completion:
            raise AirflowSkipException("urls is empty: no job was started, so the task has no id to return")
        return self.publish_nothing()

    def request(self) -> tuple[type[RequestModel], Mapping[str, Any]]:
        """Return the model of the request, and its fields; without pages, one that is never sent checks the others."""
        model, fields = super().request()
        return model, {**fields, "urls": [_NEVER_SENT]} if self.task._has_no_work() else fields

    def inputs(self) -> list[str]:
        """Return the URLs."""
        return [] if self.task._has_no_work() else super().inputs()


class CrawlRun(JobRun):
    """One attempt of a task that crawls a site."""

    task: WebDataCrawlOperator

    def check(self) -> None:
        """Fail the task before any call is billed, also if it has no page limit."""
        super().check()
        if checked_text(self.task.limit) is None:
            self.refuse(
                "limit is empty after rendering. Without it, the service crawls up to 10,000 pages; set a number"
            )

    def inputs(self) -> list[str]:
        """Return the start of the crawl."""
        return [self.task.url]

    @property
    def site(self) -> str:
        """The site whose pages a complete job covers."""
        return self.task.url

    def covers_all(self, count: int) -> bool:
        """Return whether a crawl with this number of pages saw the whole site."""
        return count < int(self.task.limit)

    def publish_job(self, job_id: str, *, most_completed: int = 0, most_total: int = 0) -> Any:
        """Publish the result; a crawl may discover more pages than it fetches."""
        most = min(most_total, int(self.task.limit))
        return super().publish_job(job_id, most_completed=most_completed, most_total=most)
