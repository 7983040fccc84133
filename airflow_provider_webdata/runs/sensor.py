"""Base of the runs of sensors."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import PokeReturnValue

from airflow_provider_webdata.api.errors import (
    InvalidResponseError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.runs.wait import WaitRun
from airflow_provider_webdata.waiting.wait import look

if TYPE_CHECKING:
    from airflow_provider_webdata.waiting.target import Target


class SensorRun(WaitRun):
    """One attempt of a sensor."""

    def check(self) -> None:
        """Fail before the wait if rendered arguments cannot work."""
        try:
            self.task.trigger_kwargs()
            self.task.since(self.context)
        except ArgumentError as error:
            self.refuse(error)

    def look(self) -> dict[str, Any] | None:
        """Look once, without a trigger; return the event that the trigger would yield, or None."""
        return self.here(lambda hub: look(hub, self.target))  # type: ignore[no-any-return]

    @cached_property
    def target(self) -> Target:
        """What the sensor waits for."""
        raise NotImplementedError

    def poke(self) -> bool | PokeReturnValue:
        """Look once; return the task's XCom once the wait is over.

        An error that may pass is logged, and does not end the wait. What names a time to come back is raised.
        """
        with self.calling():
            try:
                event = self.look()
                if event is not None:
                    self.judge(event)
                    return PokeReturnValue(is_done=True, xcom_value=self.result_of(event))
            except (InvalidResponseError, RequestTimeoutError, ServerError, TransportError) as error:
                if error.verdict != "unknown":
                    raise
                self.log.warning("%s. Still waiting", error)
        return False

    def wait_in_triggerer(self) -> NoReturn:
        """Defer the task."""
        task, first = self.task, self.attempt.first_reschedule
        began = first.timestamp() if first else time.time()
        self.defer_until(
            began + task.timeout,
            task.trigger_class,
            {**task.trigger_kwargs(), **task.since(self.context)},
            resumed=first is not None,
        )
