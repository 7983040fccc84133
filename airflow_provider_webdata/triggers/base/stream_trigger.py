# SPDX-License-Identifier: Apache-2.0
"""Base class of the triggers for asset watchers: one stream each, and cursors that survive a restart."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.triggers.base.serialization import serialized
from airflow_provider_webdata.waiting.streams.checkpoint import Checkpoint
from airflow_provider_webdata.waiting.streams.stream import Opening, unshared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable

    from airflow_provider_webdata.waiting.streams.stream import Stream

HAS_TRIGGER_QUEUES = hasattr(BaseEventTrigger, "queue")
"""Whether Airflow assigns event triggers to triggerers by queue (3.4 and later)."""


class StreamTrigger(BaseEventTrigger):
    """Base class of the event triggers.

    :param start: where to start without a stored cursor: `now`, or an ISO 8601 time.
    :param queue: the trigger queue (Airflow 3.4 and later).
    :raises ArgumentError: `start` is invalid, or this Airflow has no queues for event triggers.
    """

    def __init__(self, webdata_conn_id: str, start: str, queue: str | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if queue is not None and not HAS_TRIGGER_QUEUES:
            raise ArgumentError(
                f"queue needs Airflow 3.4 or newer: omit it, or upgrade Airflow (given: {queue!r})"
            )
        if not isinstance(start, str) or (start != "now" and moment(start) is None):
            raise ArgumentError(
                f"start must be 'now' or a time in ISO 8601, such as 2026-01-31T10:00:00Z (given: {start!r})"
            )
        self.webdata_conn_id = webdata_conn_id
        self.start = start
        self.queue = queue

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, without those with default values.

        Airflow stores the queue separately, so a watcher that moves to another queue keeps its cursor.
        """
        path, arguments = serialized(self)
        arguments.pop("queue", None)
        return path, arguments

    @abstractmethod
    def _stream(self, start: str | None) -> Stream:
        """Return the stream that this trigger watches.

        :param start: where it starts without a stored cursor: an ISO 8601 time, or None for now.
        """

    @abstractmethod
    async def _payload(self, value: Any) -> dict[str, Any] | None:
        """Return the payload of the event for an item's value, or None."""

    def shared_stream_key(self) -> Hashable:
        """Return a key that only this object has. Airflow confirms stored events of triggers with a key."""
        return id(self)

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> Any:
        """Return the reader of a watcher's stream (Airflow 3.3)."""
        return cls(**kwargs)._opened()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch the stream directly: Airflow 3.2 confirms no events."""
        async with aclosing(unshared(self._opened())) as stream:
            async for event in self._watch(stream):
                yield event

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Yield this watcher's events."""
        async for event in self._watch(shared_stream):
            yield event

    def _opened(self) -> Stream:
        return self._stream(None if self.start == "now" else self.start)

    async def _watch(self, stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        async for item in stream:
            if isinstance(item, Opening):
                checkpoint = Checkpoint(getattr(self, "asset_state_store", None), self.serialize())
                item.checkpoint.set_result(checkpoint)
                continue
            payload = None if item.value is None else await self._payload(item.value)
            item.is_decided = True
            if payload is not None:
                item.at_once = True
                yield TriggerEvent(storable(payload))  # type: ignore[no-untyped-call]
