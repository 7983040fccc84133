"""Deferral: a task waits in the triggerer and finishes in a worker."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.configuration import conf

from airflow_provider_webdata.tasks.links import LINKS
from airflow_provider_webdata.tasks.service_task import ServiceTask

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from airflow.sdk import BaseOperatorLink, Context

CHECK_TRIGGER = "airflow_provider_webdata.triggers.monitor.WebDataMonitorCheckTrigger"
JOB_TRIGGER = "airflow_provider_webdata.triggers.job.WebDataJobTrigger"
WEBHOOK_TRIGGER = "airflow_provider_webdata.triggers.webhook.WebDataWebhookTrigger"
"""Paths, for importing a trigger takes time that reading a DAG file should not."""

TIMEOUT_MARGIN_SECONDS = 60.0
"""How much later than the wait's own deadline Airflow ends a trigger, whose event says what was and was not seen."""

LEAST_WAIT_SECONDS = 30.0
"""A wait that is resumed past its deadline still has this long to find what happened meanwhile."""

_LIMITED_SINCE = "limited_since"


def is_deferrable(given: bool | None) -> bool:
    """Return whether a task waits in the triggerer.

    :param given: what the author says; None: as Airflow's `[operators] default_deferrable` does.
    """
    return conf.getboolean("operators", "default_deferrable", fallback=False) if given is None else given


class WaitingTask(ServiceTask):
    """Base of the tasks that wait: what a trigger's event leads to.

    An event is a mapping with `status`: `done`, `skip`, `failed`, `timeout` or `error`.
    """

    operator_extra_links: Collection[BaseOperatorLink] = LINKS

    def defer_until(
        self, deadline: float, trigger_class: str, trigger_kwargs: Mapping[str, Any], *, resumed: bool = False
    ) -> NoReturn:
        """Defer the task until the trigger yields its event, at the latest when the deadline has come.

        :param deadline: seconds since the epoch.
        :param trigger_class: import path of the trigger.
        :param trigger_kwargs: its arguments but for `deadline`.
        :param resumed: whether an earlier attempt waited already: then `LEAST_WAIT_SECONDS` are left at least.
        """
        now = time.time()
        if resumed:
            deadline = max(deadline, now + LEAST_WAIT_SECONDS)
        module, _, name = trigger_class.rpartition(".")
        self.defer(
            trigger=getattr(import_module(module), name)(**trigger_kwargs, deadline=deadline),
            method_name="execute_complete",
            timeout=timedelta(seconds=max(deadline - now, 0) + TIMEOUT_MARGIN_SECONDS),
        )

    def result_of(self, event: Mapping[str, Any], context: Context) -> Any:
        """Return what the task returns once its wait is done.

        :param event: the event whose `status` is `done`.
        :param context: the task's context.
        """
        raise NotImplementedError

    def time_out(self, message: str) -> NoReturn:
        """End a task that waited too long, for good.

        :param message: what was and was not seen.
        """
        from airflow_provider_webdata.runs.failures import WaitTimeoutError

        raise self.explained(WaitTimeoutError(message))

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Resume after the wait.

        :param context: the task's context.
        :param event: of the trigger.
        :raises AirflowSkipException: what was waited for happened, and is not of interest.
        :raises AirflowFailException: no retry can help.
        :raises WaitTimeoutError: the wait timed out.
        """
        from airflow.sdk.exceptions import AirflowRescheduleException

        happened = event or {}
        self.judge(happened)
        limited_since = happened.get(_LIMITED_SINCE)
        since = datetime.fromisoformat(limited_since) if limited_since else None
        try:
            with self.calling(context, limited_since=since):
                return self.result_of(happened, context)
        except AirflowRescheduleException as later:
            self._reschedule_with(happened, later.reschedule_date)

    def judge(self, event: Mapping[str, Any]) -> None:
        """Return if an event is `done`; else end the task as the event says.

        :param event: the event.
        """
        from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

        from airflow_provider_webdata.hooks.remedies import advised
        from airflow_provider_webdata.page_urls import event_page
        from airflow_provider_webdata.runs.failures import CheckFailedError

        self.webdata_page = event_page(self.webdata_conn_id, event) or self.webdata_page
        status = event.get("status")
        text = str(event.get("error") or event.get("message") or event.get("reason") or "")
        if status == "done":
            return
        if status == "skip":
            raise AirflowSkipException(f"Check {event.get('check_id')} is over and not of interest: {text}")
        if status == "timeout":
            self.time_out(text)
        if status == "failed" and "check_id" in event:
            raise self.explained(CheckFailedError(text))
        if status == "failed":
            self.fail_job(text)
        text = advised(text, self.webdata_conn_id)
        if event.get("verdict") == "never":
            raise AirflowFailException(text)
        raise AirflowException(text or f"The trigger's event has an unknown status: {dict(event)!r}")

    def fail_job(self, text: str) -> NoReturn:
        """End a task whose job failed or was cancelled; no retry helps.

        :param text: what became of the job.
        """
        from airflow_provider_webdata.runs.failures import JobFailedError

        self.refuse(JobFailedError(text))

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """Poll within this block: an error that may pass is logged, and does not end the wait.

        What names a time to come back is raised: the caller waits for that long.
        """
        from airflow_provider_webdata.api.errors import (
            InvalidResponseError,
            RequestTimeoutError,
            ServerError,
            TransportError,
        )

        try:
            yield
        except (InvalidResponseError, RequestTimeoutError, ServerError, TransportError) as error:
            if error.verdict != "unknown":
                raise
            self.log.warning("%s. Still waiting", error)

    def _reschedule_with(self, happened: Mapping[str, Any], when: datetime) -> NoReturn:
        # A task that Airflow reschedules starts from the beginning, without its XComs and without the event.
        from airflow_provider_webdata.triggers.resume import ResumeTrigger

        now = datetime.now(timezone.utc)
        self.defer(
            trigger=ResumeTrigger(when.timestamp(), {_LIMITED_SINCE: now.isoformat(), **happened}),
            method_name="execute_complete",
        )
