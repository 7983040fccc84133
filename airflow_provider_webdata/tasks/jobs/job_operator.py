"""Base of the operators whose operation is a long job: it is started once, waited for, and its result taken."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.options import Wait
from airflow_provider_webdata.tasks.deferral import JOB_TRIGGER, is_deferrable
from airflow_provider_webdata.tasks.jobs.job_wait import WaitsForJob
from airflow_provider_webdata.tasks.jobs.results import JobResults
from airflow_provider_webdata.tasks.operator import WebDataOperator
from airflow_provider_webdata.waiting.policy import JOB_POLL_INTERVAL, JOB_SAFETY_POLL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import JobStarted
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.states.jobs import JobKind
    from airflow_provider_webdata.tasks.jobs.start import JobStart
    from airflow_provider_webdata.tasks.jobs.start_table import TaskJob
    from airflow_provider_webdata.tasks.managed_webhook import ManagedWebhook

_NO_RESULT = ("integration", "origin", "webhook")
"""Fields that have no effect on a job's result."""

JOB_WAIT_SECONDS = 86400.0


class WebDataJobOperator(WaitsForJob, JobResults, WebDataOperator):
    """Base of the operators that start a job and wait for it.

    The job is started once for all attempts of the task. A retry finds the job of an earlier attempt: it waits for a
    job that runs, uses the result of one that completed, and starts another only after one that failed, was cancelled
    or has expired. `airflow_provider_webdata.tasks.jobs.start` documents how it is found. If it is unknown whether a
    request arrived, the task fails and names the next step, rather than pay twice. Clearing the task starts another
    job. So does a retry with other arguments or another account (3.3): it cancels the former job if
    `Wait.cancel_on_kill`, and the log says so.

    The waiting time is counted by the clock from the start of the job, over retries and resumes, where Airflow's
    task state store (3.3) keeps it; on 3.2 each attempt counts anew.

    The XCom key `job_id` holds the job's id, also while the task waits.

    :param wait_for_completion: whether to wait until the job is over and return its result (default). False: return
        the job's id, for `WebDataJobSensor`.
    :param wait: how to wait, see `Wait`. Default: a poll every 30 s, every 300 s while a delivery is expected; one day.
    :param deferrable: whether to wait in the triggerer, without holding a worker; default: Airflow's own setting.
        Otherwise the worker polls.
    :param attach_webhook: make the job report to this Airflow. None (default): if the connection can receive
        deliveries and `webhook` is not given. True: fail if it cannot. False: never.
    :param kwargs: arguments of the other base classes.
    """

    job_kind: JobKind
    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        wait_for_completion: bool = True,
        wait: Wait | None = None,
        deferrable: bool | None = None,
        attach_webhook: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.wait = Wait.of(wait) or Wait()
        self.polling_policy = self.wait.policy(JOB_POLL_INTERVAL, JOB_SAFETY_POLL)
        self.deferrable = is_deferrable(deferrable)
        self.attach_webhook = attach_webhook
        self._running_job: str | None = None
        self._killed = False

    def check_literals(self) -> None:
        """Fail while the DAG file is read where a literal argument cannot work."""
        super().check_literals()
        if self.rows_path() and self.job_kind in ("crawl", "batch_scrape"):
            raise ArgumentError(
                f"Schema(rows=) has no effect: a {self.job_kind.replace('_', ' ')} has pages, and each is a result"
            )

    # What a subclass states.

    def targets(self) -> list[str]:
        """Return the URLs or texts by which the service would name the job."""
        raise NotImplementedError

    def send(self, request: RequestModel, idempotency_key: str) -> JobStarted:
        """Send the request, its webhook in place; the idempotency key is for operations that honour one."""
        raise NotImplementedError

    def job_request(self) -> tuple[type[RequestModel], Mapping[str, Any]]:
        """Return the model of the request, and its fields but for a managed webhook."""
        from airflow_provider_webdata.api import models

        return getattr(models, self.request_model), self.given()

    # The task.

    def execute(self, context: Context) -> Any:
        """Start the job, or find the one of an earlier attempt, and return its result or its id."""
        return self.finished(super().execute(context), context)

    def call_service(self, context: Context) -> Any:
        """Start the job, or find the one of an earlier attempt, and return its result or its id."""
        self.billing(context, self.job_kind.replace("_", " ")).push_earlier()
        self.check_arguments(context)
        start = self._job_start(context)
        job = start.find_or_start()
        self._running_job = job.job_id
        if self._killed:
            self._cancel_killed()
        self._push_job(job, context)
        if not self.wait_for_completion:
            return job.job_id
        return self._wait(start, job, context)

    def check_arguments(self, context: Context) -> None:
        """Fail before anything is billed."""
        self.prepare_delivery(context)
        try:
            number("max_error_ratio", self.max_error_ratio, 1)
        except ArgumentError as error:
            self.refuse(error)
        if not self.wait_for_completion or self.polling_policy.wait_by != "webhook":
            return
        if not self._managed_webhook().wanted:
            self.refuse(
                f"Wait(by='webhook'), but the job does not report to this Airflow: connection {self.webdata_conn_id!r} "
                "has no webhook_url with a webhook_secret or signing_secret, or another webhook is given. Set them, "
                "leave out the webhook, or use Wait(by='polling')"
            )

    def _managed_webhook(self, origin: Mapping[str, str] | None = None) -> ManagedWebhook:
        from airflow_provider_webdata.states.jobs import events_to_ask_for
        from airflow_provider_webdata.tasks.managed_webhook import ManagedWebhook

        attach = self.attach_webhook
        if attach and self.given().get("webhook") is not None:
            self.refuse("attach_webhook=True, but a webhook is given too; leave out one of them")
        if attach is None and self.given().get("webhook") is not None:
            attach = False
        return ManagedWebhook(self.hook, attach, events_to_ask_for(self.job_kind), origin)

    def _job_start(self, context: Context) -> JobStart:
        from airflow_provider_webdata.hooks.calls import body_for
        from airflow_provider_webdata.tasks.jobs.start import JobStart
        from airflow_provider_webdata.tasks.managed_webhook import origin_of

        model, given = self.job_request()
        operation = f"start {self.job_kind.replace('_', ' ')}"
        request = self.checked_request(model, operation, given)
        extra_body = self.checked_extra_body(operation)

        def send(webhook: Mapping[str, Any] | None, idempotency_key: str) -> JobStarted:
            fields = given if webhook is None else {**given, "webhook": webhook}
            return self.send(body_for(model, fields, operation), idempotency_key)

        def check() -> None:
            self.billing(context).reserve(self.job_kind, request.to_wire(), extra_body)

        return JobStart(
            self.hook,
            self.job_kind,
            context,
            self._managed_webhook(origin_of(context)),
            self.targets(),
            check,
            send,
            self.log,
            request={
                **{name: value for name, value in request.to_wire().items() if name not in _NO_RESULT},
                "extra_body": extra_body,
            },
            discard=lambda kind, job_id: self._discard(kind, job_id, context),
            settle=lambda job_id: self._settle(job_id, context),
        )

    def _settle(self, job_id: str | None, context: Context) -> None:
        """Settle what an attempt reserved for a job that has no result, or, without an id, was not started."""
        if job_id is None:
            self.billing(context).budget.settle(self.job_kind, 0)
        elif self.billing(context).budget.is_unsettled(self.job_kind):
            self._count_lost({"job_id": job_id, "status": "failed"}, context)

    def _push_job(self, job: TaskJob, context: Context) -> None:
        from airflow_provider_webdata.page_urls import job_page
        from airflow_provider_webdata.states.jobs import first_few

        self.webdata_page = job_page(self.webdata_conn_id, self.job_kind, job.job_id)
        values: dict[str, Any] = {"job_id": job.job_id}
        if job.invalid_urls:
            values["invalidURLs"] = job.invalid_urls
            self.log.warning(
                "The service dropped %d invalid URLs: %s",
                len(job.invalid_urls),
                first_few([str(url) for url in job.invalid_urls]),
            )
        self.push(context, **values)

    def _wait(self, start: JobStart, job: TaskJob, context: Context) -> Any:
        if job.view is not None and job.view.is_over:
            return self._finish(job.view.event("polling"), context)
        resumed = start.deadline is not None
        deadline = start.deadline or time.time() + self.wait.seconds(JOB_WAIT_SECONDS)
        if not resumed:
            start.set_deadline(deadline)
        if self.deferrable:
            trigger_kwargs = {
                "webdata_conn_id": self.webdata_conn_id,
                "kind": self.job_kind,
                "job_id": job.job_id,
                "policy": self.polling_policy.serialize(),
                "reports": job.reports,
                "cancel_on_kill": self.wait.cancel_on_kill,
            }
            self.defer_until(deadline, JOB_TRIGGER, trigger_kwargs, resumed=resumed)
        event = self.poll_job_until(deadline, self.job_kind, job.job_id, self.polling_policy.poll_interval)
        return self._finish(self._at_timeout(event), context)

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Resume after the wait; see `WaitingTask.execute_complete`."""
        happened: Mapping[str, Any] = event or {}
        if happened.get("status") == "timeout":
            with self.calling(context):
                happened = self._at_timeout(happened)
        self._count_lost(happened, context)
        return self.finished(super().execute_complete(context, happened), context)

    def fail_job(self, text: str) -> NoReturn:
        """End the attempt; a retry may start another job."""
        from airflow_provider_webdata.runs.failures import JobFailedError

        raise self.explained(JobFailedError(text))

    def result_of(self, event: Mapping[str, Any], context: Context) -> Any:
        """Return the result of the job."""
        self._running_job = None
        return self.collect(self.job_kind, event["job_id"], context, inputs=self.targets())

    def is_found_again(self, context: Context) -> bool:
        """Return whether an earlier attempt started the job."""
        from airflow_provider_webdata.tasks.jobs.start import is_of_earlier_attempt

        return is_of_earlier_attempt(context)

    def _finish(self, event: Mapping[str, Any], context: Context) -> Any:
        self._count_lost(event, context)
        self.judge(event)
        return self.result_of(event, context)

    def _count_lost(self, event: Mapping[str, Any], context: Context) -> None:
        """Count what a job cost whose result is not taken: it failed, was cancelled or timed out."""
        from airflow_provider_webdata.api.errors import WebDataError

        job_id = event.get("job_id")
        if job_id is None or event.get("status") not in {"failed", "timeout"}:
            return
        try:
            with self.hook:
                status = self.hook.job_status(self.job_kind, job_id, limit=1).to_wire()
        except WebDataError as error:
            self.log.warning("What job %s cost is not known: %s", job_id, error)
            status = {}
        if (partial := status.get("partial")) is not None:
            self.push(context, partial=partial)
            self.log.warning("What the run had found when it stopped is in XCom 'partial'")
        self.count_job(self.job_kind, {**status, "id": job_id}, context)

    def page_extras(self) -> Mapping[str, int]:
        """Return what formats and options add to the price of each of the job's pages."""
        from airflow_provider_webdata.api.prices import page_extras

        body = self.request_body()
        options = body.get("scrapeOptions", body)
        return page_extras(options, zero_data_retention=bool(body.get("zeroDataRetention")))

    # The job's early end.

    def _at_timeout(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what became of a job when the time to wait is over: it may have ended just then."""
        from airflow_provider_webdata.api.errors import WebDataError
        from airflow_provider_webdata.tasks.jobs.poll import poll_job

        if event.get("status") != "timeout":
            return event
        job_id = str(event["job_id"])
        message = str(event["message"])
        try:
            if self._cancel(self.hook, job_id, self.wait.cancel_on_timeout):
                message = f"{message}. The job was cancelled; its pages so far are billed, and readable for 24 hours"
            else:
                view = poll_job(self.hook, self.job_kind, job_id)
                if view.is_over:
                    return view.event("polling")
                message = f"{message}. The job goes on, and goes on billing"
        except WebDataError as error:
            message = f"{message}. Whether the job goes on is not known: {error}"
        return {**event, "message": f"{message}. To take its result, give its id to WebDataJobSensor"}

    def _cancel(self, hook: WebDataHook, job_id: str, wanted: bool) -> bool:
        """Cancel a job if wanted; return whether that ended it."""
        if not wanted:
            return False
        if self.job_kind == "extract":
            self.log.warning("Extract job %s goes on: the service cannot cancel extract jobs", job_id)
            return False
        return hook.cancel_job(self.job_kind, job_id)

    def _discard(self, kind: JobKind, job_id: str, context: Context) -> None:
        """Cancel a job that this task gives up, as `on_kill` would, and count what it cost."""
        from airflow_provider_webdata.api.errors import WebDataError

        status: Mapping[str, Any] = {}
        try:
            if self.wait.cancel_on_kill and kind != "extract" and self.hook.cancel_job(kind, job_id):
                self.log.info("Job %s was cancelled", job_id)
            status = self.hook.job_status(kind, job_id, limit=1).to_wire()
        except WebDataError as error:
            self.log.warning("Job %s could not be cancelled or read: %s", job_id, error)
        self.count_job(kind, {**status, "id": job_id}, context)

    def on_kill(self) -> None:
        """Cancel the job: a user has ended the task."""
        from airflow_provider_webdata.tasks.kill import run_outside_handler

        self._killed = True
        if self._running_job is not None:
            run_outside_handler(self._cancel_killed)

    def _cancel_killed(self) -> None:
        from airflow_provider_webdata.api.errors import WebDataError

        job_id, self._running_job = self._running_job, None
        if job_id is None or not self.wait.cancel_on_kill:
            return
        try:
            # The signal may have come in the middle of a call of the task's own hook.
            with self.hook.sibling() as hook:
                done = self._cancel(hook, job_id, True)
        except WebDataError as error:
            self.log.warning("Job %s goes on, because it could not be cancelled: %s", job_id, error)
        else:
            self.log.info(
                "Job %s %s", job_id, "was cancelled" if done else "was over before it could be cancelled"
            )
