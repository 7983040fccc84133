"""What the triggers that one task waits for share: their deadline, their start, and how they end."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.states.checks import moment
from airflow_provider_webdata.waiting.hub import Hub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_webdata.waiting.mailbox import Failure, Mailbox

TIMEOUT_MARGIN = 60.0
"""Seconds before Airflow's own timeout at which a trigger gives up, so that the task learns what was seen."""

HEARD_WITHIN = 2.0
"""Seconds within which the scheduler hears of a worker's end."""


class WaitTrigger(BaseTrigger):
    """Base of the triggers that end with one event.

    :param webdata_conn_id: id of the connection.
    :param after: ISO 8601; what counts is later than this.
    :param deadline: seconds since the epoch at which the wait ends; None: a minute before Airflow's timeout of the
        task's deferral, or never where there is none.
    """

    def __init__(self, webdata_conn_id: str, after: str | None, deadline: float | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.webdata_conn_id = webdata_conn_id
        self.after = after
        self.deadline = deadline
        self.timeout_after: datetime | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class's path and every argument; none of them is a secret."""
        return f"{type(self).__module__}.{type(self).__qualname__}", self._arguments()

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the trigger."""

    @abstractmethod
    async def _wait(self, channel: Hub, mailbox: Mailbox) -> dict[str, Any]:
        """Wait, and return the event."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait and yield one event."""
        resumable_at = time.monotonic() + self._worker_lingers()
        channel = Hub.of(self.webdata_conn_id)
        with channel.waiting(self._deadline()) as mailbox:
            try:
                event = await self._wait(channel, mailbox)
            except WebDataError as error:
                event = {"status": "error", "error": str(error), "verdict": error.verdict}
            except Exception as error:
                self.log.exception("The wait ended unexpectedly.")
                event = {
                    "status": "error",
                    "error": f"{type(error).__name__}: {error}",
                    "verdict": "unknown",
                }
        await asyncio.sleep(max(resumable_at - time.monotonic(), 0))
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]

    def _worker_lingers(self) -> float:
        """Return for how many seconds the worker that deferred this task may still be there.

        Airflow (3.3.2) fails a task that runs again before: it takes the end of the one worker for that of the next,
        "finished with state success, but the task instance's state attribute is queued".
        """
        started_without_worker = self.deadline is None
        linger = conf.getint("workers", "min_heartbeat_interval", fallback=5)
        return 0.0 if started_without_worker or linger <= 0 else linger + HEARD_WITHIN

    def _deadline(self) -> float | None:
        if self.deadline is not None:
            return self.deadline
        limit = self.timeout_after
        if limit is None:
            return None
        if limit.tzinfo is None:
            limit = limit.replace(tzinfo=timezone.utc)
        now = time.time()
        # Where there is less than twice the margin, half of what is left must do.
        return limit.timestamp() - min(TIMEOUT_MARGIN, max(limit.timestamp() - now, 0) / 2)

    def _after(self) -> datetime | None:
        """Return the moment after which things count, as far as the arguments say.

        :raises ValueError: `after` is no moment.
        """
        if self.after is None:
            return None
        found = moment(self.after)
        if found is None:
            raise ValueError(f"after must be a moment in ISO 8601 (given: {self.after!r})")
        return found

    def _start(self) -> datetime:
        """Return when the DAG run started, as far as the triggerer knows, else the present moment."""
        context = getattr(self.task_instance, "_ti_context_from_server", None)
        run = getattr(context, "dag_run", None)
        start = getattr(run, "start_date", None) or getattr(run, "run_after", None)
        if isinstance(start, str):
            start = moment(start)
        if isinstance(start, datetime):
            return start if start.tzinfo is not None else start.replace(tzinfo=timezone.utc)
        return datetime.now(timezone.utc)


def error_event(failure: Failure) -> dict[str, Any]:
    """Return the event that says why a wait cannot go on.

    :param failure: what happened.
    """
    return {"status": "error", "error": failure.text, "verdict": failure.verdict}


def check_looks(wait_for: str, poll_interval: float, safety_poll: float) -> None:
    """Check how an end is to be learned. A trigger that renders templates does so after it was made: check as it runs.

    :param wait_for: `auto`, `webhook` or `polling`.
    :param poll_interval: seconds between looks where only looking helps.
    :param safety_poll: seconds between looks where deliveries come.
    :raises ValueError: a choice or a time span that there is not.
    """
    if wait_for not in ("auto", "webhook", "polling"):
        raise ValueError(f"wait_for must be auto, webhook or polling (given: {wait_for!r})")
    for name, value in (("poll_interval", poll_interval), ("safety_poll", safety_poll)):
        if not isinstance(value, (int, float)) or not value >= 1:
            raise ValueError(f"{name} must be a number of seconds, at least 1 (given: {value!r})")
