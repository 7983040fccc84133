"""What earlier tries of a task began at the service, so that a later try finds it instead of beginning again.

Before a request that starts something, the intent is written down, with the ids of what looked alike before it;
after it, the id of what was started. Airflow 3.3 keeps both in its task state store, across tries and crashes.
Airflow 3.2 has no such place: there a later try takes as its own what was created since the DAG run began.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterable

    from airflow.sdk import Context

    from airflow_provider_webdata.api.errors import WebDataError

SERVICE_CLOCK_SKEW = timedelta(minutes=2)
"""How far the service's clock may be behind Airflow's."""


class Intent:
    """The one thing that a task instance starts.

    A task that is cleared after it ended starts anew: what is remembered holds for the tries of one attempt.

    :param context: the task's context.
    :param key: name under which it is remembered.
    """

    def __init__(self, context: Context, key: str) -> None:
        self._key = key
        self._ti = context.get("ti")
        self._store: Any = context.get("task_state_store")
        dag_run = context.get("dag_run")
        self.run_start: datetime.datetime | None = getattr(dag_run, "start_date", None)
        """When the DAG run began."""
        self._rescheduled = bool(context.get("task_reschedule_count"))
        self._record = self._recall()

    def _recall(self) -> dict[str, Any]:
        record = self._store.get(self._key) if self._store is not None else None
        return record if isinstance(record, dict) and record.get("attempt") == self.attempt else {}

    @property
    def attempt(self) -> int:
        """A number that tells the tries of one attempt from those after the task was cleared."""
        # Clearing a task raises its most tries; a retry does not.
        return int(getattr(self._ti, "max_tries", 0) or 0)

    @property
    def began(self) -> bool:
        """Whether an earlier try may have started it."""
        if self._record:
            return True
        if self._store is not None or self._ti is None:
            return False
        retries = getattr(getattr(self._ti, "task", None), "retries", 0) or 0
        first_try = self.attempt - retries + 1
        return self._rescheduled or self._ti.try_number > first_try

    @property
    def is_lasting(self) -> bool:
        """Whether later tries learn what is written down."""
        return self._store is not None

    @property
    def remembers(self) -> bool:
        """Whether what an earlier try wrote down is at hand."""
        return bool(self._record)

    @property
    def started_id(self) -> str | None:
        """Id of what an earlier try started, where it was still able to say so."""
        return self._record.get("id")

    def begin(self, known: Iterable[str]) -> None:
        """Write down that the request is about to be sent.

        :param known: ids of all that looks alike and is there already.
        """
        self._write({"known": sorted(known)})

    def started(self, object_id: str) -> None:
        """Write down what was started."""
        self.remember(id=object_id)

    def remember(self, **values: Any) -> None:
        """Write down what later tries are to know.

        :param values: JSON values by name.
        """
        self._write({**self._record, **values})

    def recall(self, name: str) -> Any:
        """Return what an earlier try wrote down, or None.

        :param name: what it was written down as.
        """
        return self._record.get(name)

    def forget(self) -> None:
        """Forget it: nothing was started, or it was undone."""
        self._record = {}
        if self._store is not None:
            self._store.delete(self._key)

    def is_own(self, object_id: str, created_at: str | None) -> bool:
        """Return whether an object that the service shows was started by an earlier try.

        :param object_id: its id.
        :param created_at: when the service says that it was created, ISO 8601.
        """
        if self._record:
            own = self._record.get("id")
            return object_id == own if own else object_id not in self._record.get("known", ())
        return self.began and self._is_of_this_run(created_at)

    def _is_of_this_run(self, created_at: str | None) -> bool:
        from airflow_provider_webdata.states.checks import moment

        created = moment(created_at)
        return (
            created is not None
            and self.run_start is not None
            and created >= self.run_start - SERVICE_CLOCK_SKEW
        )

    def _write(self, record: dict[str, Any]) -> None:
        self._record = {**record, "attempt": self.attempt}
        if self._store is not None:
            self._store.set(self._key, self._record)


def may_have_acted(error: WebDataError) -> bool:
    """Return whether the service may have done what was asked, though it did not say so.

    :param error: what the call raised.
    """
    from airflow_provider_webdata.api.errors import (
        InvalidResponseError,
        RequestTimeoutError,
        ServerError,
        TransportError,
    )

    if isinstance(error, TransportError):
        return error.sent
    return isinstance(error, (InvalidResponseError, RequestTimeoutError, ServerError))
