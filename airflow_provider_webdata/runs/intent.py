"""A write-ahead record of the object (job, check, or session) that a task starts at the service.

A later attempt finds the object by this record. Before the request, the task records its intent, with the ids of
similar existing objects; after the request, the id of the new object. Airflow 3.3 keeps both in its task state store,
across attempts and crashes. Airflow 3.2 has no such store: a later attempt adopts an object that was created since the
DAG run began.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_webdata.api.errors import (
    InvalidResponseError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.stored_record import Text  # noqa: TC001 - msgspec reads the annotations
from airflow_provider_webdata.runs.state import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.sdk import Context

    from airflow_provider_webdata.api.errors import WebDataError

SERVICE_CLOCK_SKEW = timedelta(minutes=2)
"""Maximum lag of the service's clock behind Airflow's."""


class _IntentState(msgspec.Struct, frozen=True):
    known: tuple[str, ...]
    id: Text | None = None
    monitor_id: Text | None = None


class Intent:
    """The one object that a task instance starts.

    :param key: the record's key in the task state store.
    """

    def __init__(self, context: Context, key: str) -> None:
        self._state = TaskState(context, key, _IntentState(()))

    @property
    def began(self) -> bool:
        """True if an earlier attempt may have started the object."""
        return self._state.may_have_begun

    @property
    def remembers(self) -> bool:
        """True if a record exists."""
        return self._state.exists

    @property
    def started_id(self) -> str | None:
        """The recorded id of the started object, or None."""
        return self._state.record.id

    @property
    def known(self) -> tuple[str, ...]:
        """Ids of similar objects that existed before."""
        return self._state.record.known

    @property
    def monitor_id(self) -> str | None:
        """Id of the monitor of a check, or None."""
        return self._state.record.monitor_id

    def begin(self, known: Iterable[str], monitor_id: str | None = None) -> None:
        """Record that the request is about to be sent.

        :param known: ids of similar existing objects.
        :param monitor_id: for a check, the id of its monitor.
        """
        self._state.set(known=tuple(sorted(known)), id=None, monitor_id=monitor_id)

    def started(self, object_id: str, monitor_id: str | None = None) -> None:
        """Record the id of the started object.

        :param monitor_id: for a check that another task started, the id of its monitor.
        """
        self._state.set(id=object_id, monitor_id=monitor_id or self.monitor_id)

    def forget(self) -> None:
        """Delete the record: the object was not started, or was deleted."""
        self._state.forget()

    def is_own(self, object_id: str, created_at: str | None) -> bool:
        """Return whether an object that the service lists was started by an earlier attempt.

        :param created_at: the service's time, ISO 8601.
        """
        if self.remembers:
            return object_id == self.started_id if self.started_id else object_id not in self.known
        created, run_start = moment(created_at), self._state.attempt.run_start
        if not self.began or created is None or run_start is None:
            return False
        return created >= run_start - SERVICE_CLOCK_SKEW


def may_have_acted(error: WebDataError) -> bool:
    """Return whether the service may have executed a failed call despite the error."""
    if isinstance(error, TransportError):
        return error.sent
    return isinstance(error, (InvalidResponseError, RequestTimeoutError, ServerError))
