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


class Intent(TaskState[_IntentState]):
    """The one object that a task instance starts.

    :param key: the record's key in the task state store.
    """

    def __init__(self, context: Context, key: str) -> None:
        super().__init__(context, key, _IntentState(()))

    @property
    def started_id(self) -> str | None:
        """The recorded id of the started object, or None."""
        return self.record.id

    def begin(self, known: Iterable[str], monitor_id: str | None = None) -> None:
        """Record that the request is about to be sent.

        :param known: ids of similar existing objects.
        :param monitor_id: for a check or an update, the id of the monitor.
        """
        self.set(known=tuple(sorted(known)), id=None, monitor_id=monitor_id)

    def started(self, object_id: str, monitor_id: str | None = None) -> None:
        """Record the id of the started object.

        :param monitor_id: for a check that another task started, the id of its monitor.
        """
        self.set(id=object_id, monitor_id=monitor_id or self.record.monitor_id)

    def is_own(self, object_id: str, created_at: str | None) -> bool:
        """Return whether an object that the service lists was started by an earlier attempt.

        :param created_at: the service's time, ISO 8601.
        """
        if self.exists:
            return object_id == self.started_id if self.started_id else object_id not in self.record.known
        created, run_start = moment(created_at), self.attempt.run_start
        if not self.began or created is None or run_start is None:
            return False
        return created >= run_start - SERVICE_CLOCK_SKEW


def may_have_acted(error: WebDataError) -> bool:
    """Return whether the service may have executed a failed call despite the error."""
    if isinstance(error, TransportError):
        return error.sent
    return isinstance(error, (InvalidResponseError, RequestTimeoutError, ServerError))
