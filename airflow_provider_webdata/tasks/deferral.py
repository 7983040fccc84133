"""How a task waits in the triggerer and finishes in a worker, for operators and sensors alike."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.configuration import conf

from airflow_provider_webdata.tasks.service_task import ServiceTask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.sdk import Context

TIMEOUT_MARGIN_SECONDS = 60.0
"""How much later than the wait's own deadline Airflow ends a trigger: the trigger says what it saw until then."""

LEAST_WAIT_SECONDS = 30.0
"""A wait that comes back past its deadline still has this long to find what happened meanwhile."""

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

    def result_of(self, event: Mapping[str, Any], context: Context) -> Any:
        """Return what the task returns once its wait is done.

        :param event: the event whose `status` is `done`.
        :param context: the task's context.
        """
        raise NotImplementedError

    def time_out(self, message: str) -> NoReturn:
        """End a task that waited too long.

        :param message: what was and was not seen.
        """
        from airflow.sdk.exceptions import AirflowSensorTimeout

        raise AirflowSensorTimeout(message)

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Resume after the wait.

        :param context: the task's context.
        :param event: what the trigger told.
        :raises AirflowSkipException: what was waited for happened, and is not of interest.
        :raises AirflowFailException: no retry can help.
        :raises AirflowSensorTimeout: time is over.
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
            self._come_back_with(happened, later.reschedule_date)

    def judge(self, event: Mapping[str, Any]) -> None:
        """Return if an event is `done`; else end the task as the event says.

        :param event: the event.
        """
        from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

        status = event.get("status")
        text = str(event.get("error") or event.get("message") or event.get("reason") or "")
        if status == "done":
            return
        if status == "skip":
            raise AirflowSkipException(f"Check {event.get('check_id')} is over and not of interest: {text}")
        if status == "timeout":
            self.time_out(text)
        if status == "failed" or event.get("verdict") == "never":
            raise AirflowFailException(text)
        raise AirflowException(text or f"The trigger told something unknown: {dict(event)!r}")

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """Look within this block: trouble that passes is logged, and no reason to give up a long wait."""
        from airflow_provider_webdata.api.errors import (
            InvalidResponseError,
            RequestTimeoutError,
            ServerError,
            TransportError,
        )

        try:
            yield
        except (InvalidResponseError, RequestTimeoutError, ServerError, TransportError) as error:
            if error.verdict == "never":
                raise
            self.log.warning("%s. The wait goes on", error)

    def _come_back_with(self, happened: Mapping[str, Any], when: datetime) -> NoReturn:
        # Rescheduled, the task would begin anew, without its XComs and without what the trigger told.
        from airflow_provider_webdata.triggers.resume import ResumeTrigger

        now = datetime.now(timezone.utc)
        self.defer(
            trigger=ResumeTrigger(when.timestamp(), {_LIMITED_SINCE: now.isoformat(), **happened}),
            method_name="execute_complete",
        )
