"""Base class of the triggers for asset watchers: shared streams, and cursors that survive a restart."""

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
from airflow_provider_webdata.waiting.streams.stream import Join, Joined, Joins, unshared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable

    from airflow_provider_webdata.waiting.streams.stream import Stream, StreamItem

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
    def _stream(self, key: Hashable) -> Stream:
        """Return the stream that this trigger watches."""

    def _first_cursor(self, joined: Joined) -> Any:
        """Return the first cursor of a new watcher."""
        return joined.cursor

    @abstractmethod
    async def _process(self, item: StreamItem, cursor: Any) -> tuple[Any, dict[str, Any] | None]:
        """Return the cursor after an item, or the same cursor if it was seen before, and the event payload or None."""

    @abstractmethod
    def shared_stream_key(self) -> Hashable:
        """Return the stream key. Triggers with the same key share a stream."""

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> Any:
        """Return the reader shared by all watchers of the stream (Airflow 3.3)."""
        trigger = cls(**kwargs)
        return trigger._stream(trigger.shared_stream_key())

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch an unshared stream: Airflow 3.2 has no shared streams."""
        key = (self.shared_stream_key(), id(self))
        async with aclosing(unshared(self._stream(key))) as stream:
            async for event in self._watch(stream, key):
                yield event

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Yield this watcher's events."""
        async for event in self._watch(shared_stream, self.shared_stream_key()):
            yield event

    async def _watch(self, stream: AsyncIterator[Any], key: Hashable) -> AsyncIterator[TriggerEvent]:
        checkpoint = Checkpoint(getattr(self, "asset_state_store", None), self.serialize())
        joins = Joins.of(key)
        join = Join(await checkpoint.read(), None if self.start == "now" else self.start)
        joins.add(join)
        cursor: Any = None
        try:
            async for item in stream:
                if isinstance(item, Joined):
                    if item.joins is None or join in item.joins:
                        is_known = join.cursor is not None and not item.reset
                        cursor = join.cursor if is_known else self._first_cursor(item)
                        await checkpoint.write(cursor)
                    continue
                if cursor is None or (item.only is not None and join not in item.only):
                    continue
                behind, payload = await self._process(item, cursor)
                if behind is not cursor:
                    cursor = behind
                    item.cursors.append((checkpoint, cursor, payload is not None))
                if payload is not None:
                    yield TriggerEvent(storable(payload))  # type: ignore[no-untyped-call]
        finally:
            joins.remove(join)
