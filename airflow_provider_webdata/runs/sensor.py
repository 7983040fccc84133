"""Base of the runs of sensors."""

from __future__ import annotations

import time
from typing import Any, NoReturn

from airflow.sdk import PokeReturnValue

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.runs.wait import WaitRun


class SensorRun(WaitRun):
    """One attempt of a sensor."""

    def check(self) -> None:
        """Fail before the wait if rendered arguments cannot work."""
        try:
            self.task.trigger_kwargs()
            self.task.since(self.context)
        except ArgumentError as error:
            self.refuse(error)

    def poll(self) -> dict[str, Any] | None:
        """Poll once, without a trigger; return the event that the trigger would yield, or None."""
        raise NotImplementedError

    def poke(self) -> bool | PokeReturnValue:
        """Poll once; return the task's XCom once the wait is over."""
        with self.calling(), self.patiently():
            event = self.poll()
            if event is not None:
                self.judge(event)
                return PokeReturnValue(is_done=True, xcom_value=self.result_of(event))
        return False

    def wait_in_triggerer(self) -> NoReturn:
        """Defer the task."""
        task, first = self.task, Attempt(self.context).first_reschedule
        began = first.timestamp() if first else time.time()
        self.defer_until(
            began + task.timeout,
            task.trigger_class,
            {**task.trigger_kwargs(), **task.since(self.context)},
            resumed=first is not None,
        )
