"""Records of what earlier attempts of a task started at the service, so that a later one finds it.

Before a request that starts something, the intent is recorded, with the ids of what looked alike before it; after
it, the id of what was started. Airflow 3.3 keeps both in its task state store, across attempts and crashes. Airflow
3.2 has no such store: there a later attempt takes what was created since the DAG run began for its own.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from airflow_provider_webdata.common.stored_record import Count, Epoch, Moment, Text, damage_of, place_of
from airflow_provider_webdata.states.jobs import JobKind  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterable, Mapping

    from airflow.sdk import Context

    from airflow_provider_webdata.api.errors import WebDataError

SERVICE_CLOCK_SKEW = timedelta(minutes=2)
"""How far the service's clock may be behind Airflow's."""

_NEWEST = ("kind", "request", "account")
_START = ("generation", "past", "known", "requested_at", "job_id", *_NEWEST)


class _Owner(TypedDict):
    max_tries: int


class _Fields(TypedDict, total=False):
    """The fields of all records; see `begin`, `StartRecord`, and `MonitorCheckOperator`."""

    id: Text
    known: list[str]
    monitor_id: Text
    after: Moment
    deadline: Epoch | None
    generation: Count
    past: list[Text]
    requested_at: Moment | None
    attempt: Count | None
    job_id: Text | None
    reports: bool
    invalid_urls: list[Any]
    kind: JobKind | None
    request: Text | None
    account: Text | None


def _missing(record: Mapping[str, Any]) -> str | None:
    """Return what a record of a job's start lacks; versions that did not write the newest fields may lack any."""
    if not any(name in record for name in _NEWEST):
        return None
    return next((f"{name} is missing" for name in _START if name not in record), None)


class Intent:
    """The one thing that a task instance starts.

    A task that is cleared after it ended starts anew: a record holds until then.

    :param key: the record's key in the task state store.
    """

    def __init__(self, context: Context, key: str) -> None:
        self._key = key
        self._ti = context.get("ti")
        self._store: Any = context.get("task_state_store")
        dag_run = context.get("dag_run")
        self.run_start: datetime.datetime | None = getattr(dag_run, "start_date", None)
        """When the DAG run began."""
        self._rescheduled = bool(context.get("task_reschedule_count"))
        self._record = self._stored_record()

    def _stored_record(self) -> dict[str, Any]:
        record = self._store.get(self._key) if self._store is not None else None
        if record is None:
            return {}
        damage = damage_of(record, _Owner)
        if damage is None and record["max_tries"] != self.max_tries:
            return {}
        if damage := damage or damage_of(record, _Fields) or _missing(record):
            from airflow_provider_webdata.runs.failures import UncertainStartError

            raise UncertainStartError(
                f"the record {self._key} of what an earlier attempt started is damaged ({damage}). Nothing is started, "
                "so that nothing is billed twice. If the service's dashboard shows a job, a check, or a session of "
                f"this task, end it there or take its result; then {place_of(self._key)}"
            )
        stored: dict[str, Any] = record
        return stored

    @property
    def max_tries(self) -> int:
        """Airflow's number of that name: clearing the task raises it, a retry does not."""
        return int(getattr(self._ti, "max_tries", 0) or 0)

    @property
    def began(self) -> bool:
        """Whether an earlier attempt may have started it."""
        if self._record:
            return True
        if self._store is not None or self._ti is None:
            return False
        retries = getattr(getattr(self._ti, "task", None), "retries", 0) or 0
        first_attempt = self.max_tries - retries + 1
        return self._rescheduled or self._ti.try_number > first_attempt

    @property
    def is_lasting(self) -> bool:
        """Whether later attempts can read the record."""
        return self._store is not None

    @property
    def remembers(self) -> bool:
        """Whether there is a record."""
        return bool(self._record)

    @property
    def started_id(self) -> str | None:
        """Id of what was started, where it was recorded."""
        return self._record.get("id")

    def begin(self, known: Iterable[str], **values: Any) -> None:
        """Record that the request is about to be sent.

        :param known: ids of all that looks alike and is there already.
        :param values: other JSON values for later attempts.
        """
        self._write({"known": sorted(known), **values})

    def started(self, object_id: str) -> None:
        """Record what was started."""
        self.remember(id=object_id)

    def remember(self, **values: Any) -> None:
        """Record JSON values for later attempts."""
        self._write({**self._record, **values})

    def recall(self, name: str) -> Any:
        """Return a recorded value, or None."""
        return self._record.get(name)

    def forget(self) -> None:
        """Delete the record: nothing was started, or it was undone."""
        self._record = {}
        if self._store is not None:
            self._store.delete(self._key)

    def is_own(self, object_id: str, created_at: str | None) -> bool:
        """Return whether an object that the service lists was started by an earlier attempt.

        :param created_at: ISO 8601, as the service says it.
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
        self._record = {**record, "max_tries": self.max_tries}
        if self._store is not None:
            self._store.set(self._key, self._record)


def may_have_acted(error: WebDataError) -> bool:
    """Return whether the service may have executed a failed call, though its answer did not say so."""
    from airflow_provider_webdata.api.errors import (
        InvalidResponseError,
        RequestTimeoutError,
        ServerError,
        TransportError,
    )

    if isinstance(error, TransportError):
        return error.sent
    return isinstance(error, (InvalidResponseError, RequestTimeoutError, ServerError))
