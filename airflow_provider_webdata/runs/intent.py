"""A write-ahead record of the object (job, check, or session) that a task starts at the service.

A later attempt finds the object by this record. Before the request, the task records its intent, with the ids of
similar existing objects; after the request, the id of the new object. Airflow 3.3 keeps both in its task state store,
across attempts and crashes. Airflow 3.2 has no such store: a later attempt adopts an object that was created since the
DAG run began.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from airflow_provider_webdata.api.errors import (
    InvalidResponseError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.job_kinds import JobKind  # noqa: TC001 - msgspec reads the annotations
from airflow_provider_webdata.common.stored_record import Count, Epoch, Moment, Text, place_of
from airflow_provider_webdata.runs.failures import UncertainStartError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow.sdk import Context

    from airflow_provider_webdata.api.errors import WebDataError

SERVICE_CLOCK_SKEW = timedelta(minutes=2)
"""Maximum lag of the service's clock behind Airflow's."""

_OF_A_START = ("generation", "past", "requested_at", "job_id", "kind", "request", "account")


class _Fields(TypedDict, total=False):
    """The fields of all records; see `begin`, `StartRecord`, and `CheckRun`."""

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
    stopped: bool


def _missing(record: Mapping[str, Any]) -> str | None:
    """Return the problem of an incomplete record, or None."""
    if not record.keys() & {*_OF_A_START}:
        return None
    return next((f"{name} is missing" for name in (*_OF_A_START, "known") if name not in record), None)


class Intent:
    """The one object that a task instance starts.

    The record is valid until the task is cleared.

    :param key: the record's key in the task state store.
    """

    def __init__(self, context: Context, key: str) -> None:
        self._key = key
        self.attempt = Attempt(context)
        stored = self.attempt.read(key, _Fields)
        self._record = stored.values
        if damage := stored.damage or _missing(stored.values):
            raise UncertainStartError(
                f"the record {key} of an earlier attempt's job, check, or session is damaged ({damage}). The task "
                "starts no other, because both could be billed. If the service has one of this task, stop it or save "
                f"its result; then {place_of(key)}"
            )

    @property
    def began(self) -> bool:
        """True if an earlier attempt may have started the object."""
        if self._record or self.is_lasting:
            return bool(self._record)
        return self.attempt.may_follow_another

    @property
    def is_lasting(self) -> bool:
        """True if later attempts can read the record."""
        return self.attempt.store is not None

    @property
    def remembers(self) -> bool:
        """True if a record exists."""
        return bool(self._record)

    @property
    def started_id(self) -> str | None:
        """The recorded id of the started object, or None."""
        return self._record.get("id")

    def begin(self, known: Iterable[str], **values: Any) -> None:
        """Record that the request is about to be sent.

        :param known: ids of similar existing objects.
        :param values: other JSON values for later attempts.
        """
        self._write({"known": sorted(known), **values})

    def started(self, object_id: str) -> None:
        """Record the id of the started object."""
        self.remember(id=object_id)

    def remember(self, **values: Any) -> None:
        """Record JSON values for later attempts."""
        self._write({**self._record, **values})

    def recall(self, name: str) -> Any:
        """Return a recorded value, or None."""
        return self._record.get(name)

    def forget(self) -> None:
        """Delete the record: the object was not started, or was deleted."""
        self._record = {}
        self.attempt.delete(self._key)

    def is_own(self, object_id: str, created_at: str | None) -> bool:
        """Return whether an object that the service lists was started by an earlier attempt.

        :param created_at: the service's time, ISO 8601.
        """
        if self._record:
            own = self._record.get("id")
            return object_id == own if own else object_id not in self._record.get("known", ())
        return self.began and self._is_of_this_run(created_at)

    def _is_of_this_run(self, created_at: str | None) -> bool:
        created, run_start = moment(created_at), self.attempt.run_start
        return created is not None and run_start is not None and created >= run_start - SERVICE_CLOCK_SKEW

    def _write(self, record: dict[str, Any]) -> None:
        self._record = record
        self.attempt.write(self._key, record)


def may_have_acted(error: WebDataError) -> bool:
    """Return whether the service may have executed a failed call despite the error."""
    if isinstance(error, TransportError):
        return error.sent
    return isinstance(error, (InvalidResponseError, RequestTimeoutError, ServerError))
