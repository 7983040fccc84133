# SPDX-License-Identifier: Apache-2.0
"""Base class of the triggers for deferred tasks: deadline, start time, and the final event."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.common.coded_errors import ArgumentError, brief, traceback_of
from airflow_provider_webdata.common.component_metrics import count, timing
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.worker_exit import seconds_until_resumable
from airflow_provider_webdata.states.outcomes import WaitOutcome
from airflow_provider_webdata.triggers.base.announcement import Announcement
from airflow_provider_webdata.triggers.base.serialization import serialized
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.policy import TIMEOUT_MARGIN_SECONDS
from airflow_provider_webdata.waiting.wait import wait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_webdata.waiting.target import Target

log = logger(__name__)


class WaitTrigger(BaseTrigger):
    """Base class of the triggers that end with one event.

    :param after: ISO 8601 time; only later checks or deliveries count.
    :param deadline: end of the wait, in seconds since the epoch. None: a minute before Airflow's timeout of the task's
        deferral, or never if there is no timeout.
    """

    kind: str
    """The wait's kind in metrics."""

    def __init__(self, webdata_conn_id: str, after: str | None, deadline: float | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.webdata_conn_id = webdata_conn_id
        self.after = after
        self.deadline = deadline
        self.timeout_after: datetime | None = None

    serialize = serialized

    @abstractmethod
    def _target(self) -> Target[Any]:
        """Return the target of the wait.

        :raises ArgumentError: an argument is invalid.
        """

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait and yield one event."""
        began = time.monotonic()
        resumable_at = began + self._hold_back_seconds()
        with Announcement() as announcement:
            try:
                target = self._target()
                hub = Hub.of(self.webdata_conn_id)
                outcome: WaitOutcome = await wait(hub, target, self._ends_at(), announcement.announce)
            except WebDataError as error:
                outcome = WaitOutcome(status="error", message=brief(error), verdict=error.verdict)
            except Exception as error:  # noqa: BLE001 - the task gets it
                log.error("The wait ended unexpectedly.%s", traceback_of(error))
                message = f"{type(error).__name__}: {brief(error)}"
                outcome = WaitOutcome(status="error", message=message, verdict="unknown")
        tags = {"conn_id": self.webdata_conn_id, "kind": self.kind, "status": outcome.status}
        count("webdata.waits", **tags, via=outcome.via or "none")
        timing("webdata.wait.duration", time.monotonic() - began, **tags)
        await asyncio.sleep(max(resumable_at - time.monotonic(), 0))
        yield TriggerEvent(storable(outcome.serialize()))  # type: ignore[no-untyped-call]

    def _hold_back_seconds(self) -> float:
        """Return the seconds to delay the event, because the worker that deferred the task may still be running."""
        # Without a deadline, the task started in the triggerer and no worker deferred it.
        return 0.0 if self.deadline is None else seconds_until_resumable()

    def _ends_at(self) -> float | None:
        if self.deadline is not None:
            return self.deadline
        limit = self.timeout_after
        if limit is None:
            return None
        if limit.tzinfo is None:
            limit = limit.replace(tzinfo=timezone.utc)
        now = time.time()
        # Use half of the remaining time if it is less than twice the margin.
        return limit.timestamp() - min(TIMEOUT_MARGIN_SECONDS, max(limit.timestamp() - now, 0) / 2)

    def _after(self) -> datetime | None:
        """Return `after` as a datetime.

        :raises ArgumentError: `after` is not a valid time.
        """
        if self.after is None:
            return None
        found = moment(self.after)
        if found is None:
            raise ArgumentError(
                f"after must be a time in ISO 8601, such as 2026-01-31T10:00:00Z (given: {self.after!r})"
            )
        return found


def start_of_run(task_instance: Any) -> datetime:
    """Return the start of the DAG run if the triggerer knows it, otherwise the current time."""
    # Only the triggers of tasks that start in the triggerer have Airflow's context.
    context_of = getattr(task_instance, "get_template_context", dict[str, Any])
    run = context_of().get("dag_run")
    start = getattr(run, "start_date", None) or getattr(run, "run_after", None)
    if isinstance(start, str):
        start = moment(start)
    if isinstance(start, datetime):
        return start if start.tzinfo is not None else start.replace(tzinfo=timezone.utc)
    return datetime.now(timezone.utc)
