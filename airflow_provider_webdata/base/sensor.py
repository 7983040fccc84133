# SPDX-License-Identifier: Apache-2.0
"""Base classes of the sensors: start in the triggerer, deferral, and results."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseSensorOperator, conf
from airflow.sdk.exceptions import (
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
)

from airflow_provider_webdata.base.failures import reporting_failures
from airflow_provider_webdata.base.links import LINKS
from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES, ServiceTask
from airflow_provider_webdata.common.coded_errors import ArgumentError, CodedError, brief
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.common.logs import task_logger
from airflow_provider_webdata.common.worker_exit import seconds_until_resumable
from airflow_provider_webdata.waiting.policy import TIMEOUT_MARGIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from airflow.sdk import BaseOperatorLink, Context, PokeReturnValue

TRIGGERS_KNOW_THEIR_RUN = HAS_RETRY_POLICIES
"""Whether a trigger that the scheduler starts knows the start of its DAG run (Airflow 3.3 and later)."""

_RULE_FOR_AFTER = "must be a time in ISO 8601, such as 2026-01-31T10:00:00Z"


class WebDataSensor(ServiceTask, BaseSensorOperator):
    """Base class of the service's sensors.

    :param deferrable: whether to wait in the triggerer, without occupying a worker slot. Default: Airflow's
        `[operators] default_deferrable`. A deferrable sensor without templates in its arguments starts directly in the
        triggerer and uses no worker slot until it has a result.
    :param kwargs: arguments of `ServiceTask` and Airflow's `BaseSensorOperator`. `timeout` is wall-clock time in
        seconds from the start of each attempt. `soft_fail=True` skips the task if the wait times out; every other error
        fails it.
    """

    operator_extra_links: Collection[BaseOperatorLink] = LINKS
    ui_color = "#d9ecf2"

    _trigger_class: ClassVar[str]
    """Import path of the trigger that waits. A DAG file is parsed faster without importing it."""

    def __init__(
        self,
        *,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable

    def _trigger_kwargs(self) -> dict[str, Any]:
        """Return the trigger's arguments except `deadline` and those from `since`."""
        raise NotImplementedError

    def _since(self, context: Context | None) -> dict[str, Any]:  # noqa: ARG002
        """Return the trigger's arguments that define the earliest time of a match.

        :param context: the task's context; None: the task starts in the triggerer.
        """
        return {}

    def _show_page(self) -> None:
        """Record the object in the rendered arguments, if any: its page in `_webdata_page`, or a job's id."""

    def _start_in_triggerer(self, *, knows_when: bool, unless: bool = False) -> None:
        """Let the scheduler start this task in the triggerer if possible. Called after `_check_arguments`.

        :param knows_when: whether the arguments define the earliest time of a match, without the DAG run's start.
        :param unless: whether the sensor must start in a worker for another reason.
        """
        if not self.deferrable:
            return
        # A subclass may set its own template field later.
        given = [getattr(self, name, ...) for name in self.template_fields]
        runs_code_first = (
            self.on_execute_callback
            or self._pre_execute_hook
            or type(self).execute is not WebDataSensor.execute
            or type(self).pre_execute is not BaseSensorOperator.pre_execute
        )
        # Templates: docs/contributing/upstream/templated_start_from_trigger.md
        if (
            unless
            or runs_code_first
            or not all(map(is_literal, given))
            or not (knows_when or TRIGGERS_KNOW_THEIR_RUN)
        ):
            return
        from airflow.triggers.base import StartTriggerArgs

        self.start_from_trigger = True
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=self._trigger_class,
            trigger_kwargs={**self._trigger_kwargs(), **self._since(None)},
            # A trigger that ends the task would be shorter: docs/contributing/upstream/success_event_encodes_twice.md
            next_method="execute_complete",
            next_kwargs=None,
            timeout=timedelta(seconds=self.timeout + TIMEOUT_MARGIN_SECONDS),
        )

    def execute(self, context: Context) -> Any:
        """Defer the wait, or wait in this worker."""
        with reporting_failures(self, context):
            run = self._new_run(context)
            if problems := self._missing(context):
                run.refuse("; ".join(problems))
            run.check()
            self._show_page()
            if self.deferrable:
                run.wait_in_triggerer()
            return self._finished(partial(self._skipping_timeouts, self._poked, context))

    def _poked(self, context: Context) -> Any:
        """Wait in this worker. Airflow's own error of a timeout has no state of the wait."""
        try:
            return super().execute(context)
        except AirflowSensorTimeout as late:
            raise (late if isinstance(late, CodedError) else self._run.late()) from None
        except AirflowSkipException as skip:
            if skip.__cause__ is None and self._run.outcome is None:
                # The wait timed out, with `soft_fail`.
                timeout = self._run.late()
                raise AirflowSkipException(brief(timeout)) from timeout
            raise

    def _get_next_poke_interval(
        self, started_at: Any, run_duration: Callable[[], float], poke_count: int
    ) -> float:
        interval: float = super()._get_next_poke_interval(started_at, run_duration, poke_count)
        # A pause that the service requests does not extend the sensor's timeout.
        interval = max(interval, min(self._run.pause, self.timeout - run_duration()))
        return max(interval, seconds_until_resumable()) if self.reschedule else interval

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Poll once."""
        run = self._run or self._new_run(context)
        if run.outcome is not None:
            # Its result could not be read completely, and a run counts results once.
            refused_since, run = run.target.refused_since, self._new_run(context)
            run.target.refused_since = refused_since
        done: bool | PokeReturnValue = run.poke()
        return done

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Resume after the trigger; see `ServiceTask.execute_complete`."""
        self._was_deferred = True
        self._show_page()
        with reporting_failures(self, context):
            return self._skipping_timeouts(super().resume_execution, next_method, next_kwargs, context)

    def _skipping_timeouts(self, act: Any, *args: Any) -> Any:
        """Call a function, and undo Airflow's conversion of its error into a skip, unless the wait timed out."""
        # docs/contributing/upstream/soft_fail_hides_errors.md
        try:
            return act(*args)
        except AirflowTaskTimeout as late:
            if not self.soft_fail:
                raise
            task_logger(self).warning("%s. The task is skipped (soft_fail=True)", late)
            raise AirflowSkipException(brief(late)) from None
        except AirflowSkipException as skip:
            cause = skip.__cause__
            if cause is None:
                raise
            is_timeout = isinstance(cause, (AirflowSensorTimeout, AirflowTaskTimeout))
            if isinstance(cause, (AirflowRescheduleException, AirflowSkipException)) or (
                self.soft_fail and not is_timeout
            ):
                raise cause from None
            flag = "soft_fail" if self.soft_fail else "never_fail"
            task_logger(self).warning("%s. The task is skipped (%s=True)", cause, flag)
            raise


class SinceSensor(WebDataSensor):
    """Base class of the sensors for events after a given time.

    :param after: accept only later events: ISO 8601 text or a datetime (templated). Default: the start of the DAG run,
        which is the same for every attempt, so events before the start of the wait are found too.
    :param kwargs: arguments of `WebDataSensor`.
    """

    def __init__(self, *, after: str | datetime | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.after = after

    def _check_values(self) -> None:
        """Check the arguments; see `ServiceTask._check_values`."""
        super()._check_values()
        if is_literal(self.after) and self.after and _moment(self.after) is None:
            raise ArgumentError(f"after {_RULE_FOR_AFTER} (given: {self.after!r})")

    def _since(self, context: Context | None) -> dict[str, Any]:
        """Return `after`. In a trigger that the scheduler starts, None means the start of the DAG run."""
        if context is not None:
            return {"after": self._after_moment(context).isoformat()}
        found = _moment(self.after) if self.after else None
        return {"after": found.isoformat() if found else None}

    def _after_moment(self, context: Context) -> datetime:
        """Return the earliest time of a match, which is the same for every attempt.

        :raises ArgumentError: `after` is not a valid time.
        """
        if self.after:
            found = _moment(self.after)
            if found is None:
                raise ArgumentError(f"after {_RULE_FOR_AFTER} (given: {self.after!r})")
            return found
        dag_run = context.get("dag_run")
        start: datetime | None = getattr(dag_run, "start_date", None)
        return start or datetime.now(timezone.utc)


def _moment(after: str | datetime) -> datetime | None:
    if isinstance(after, datetime):
        return after if after.tzinfo is not None else after.replace(tzinfo=timezone.utc)
    return moment(str(after))
