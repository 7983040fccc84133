"""What the triggers of asset watchers share: one stream for many, and a place that survives a restart."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_webdata.states.checks import moment
from airflow_provider_webdata.waiting.streams.checkpoint import Checkpoint
from airflow_provider_webdata.waiting.streams.stream import Ready, Ticket, alone, board_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable

    from airflow_provider_webdata.waiting.streams.stream import Item, Stream


class StreamTrigger(BaseEventTrigger):
    """Base of the event triggers.

    :param webdata_conn_id: id of the connection.
    :param start: where to begin when nothing is kept: `now`, or a moment in ISO 8601.
    :raises ValueError: `start` is neither.
    """

    def __init__(self, webdata_conn_id: str, start: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if not isinstance(start, str) or (start != "now" and moment(start) is None):
            raise ValueError(
                f"start must be 'now' or a moment as ISO 8601 text, such as 2026-01-31T10:00:00Z (given: {start!r})"
            )
        self.webdata_conn_id = webdata_conn_id
        self.start = start

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class's path and every argument; none of them is a secret."""
        return f"{type(self).__module__}.{type(self).__qualname__}", self._arguments()

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the trigger."""

    @abstractmethod
    def _stream(self, key: Hashable) -> Stream:
        """Return a stream that holds what this trigger watches."""

    @abstractmethod
    def _first_place(self, ready: Ready) -> Any:
        """Return where a watcher begins that has no place yet."""

    @abstractmethod
    async def _look(self, item: Item, place: Any) -> tuple[Any, dict[str, Any] | None]:
        """Return the place behind an item, the same one if it was seen before, and the payload of its event, if any."""

    @abstractmethod
    def shared_stream_key(self) -> Hashable:
        """Return what all triggers share that can read one stream."""

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> Any:
        """Return the reader that all watchers of the stream share (Airflow 3.3).

        :param kwargs: of any of them.
        """
        trigger = cls(**kwargs)
        return trigger._stream(trigger.shared_stream_key())

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch without sharing: Airflow 3.2 has no shared streams."""
        key = (self.shared_stream_key(), id(self))
        async with aclosing(alone(self._stream(key))) as stream:
            async for event in self._watch(stream, key):
                yield event

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Yield this watcher's events.

        :param shared_stream: what all watchers of the stream see.
        """
        async for event in self._watch(shared_stream, self.shared_stream_key()):
            yield event

    async def _watch(self, stream: AsyncIterator[Any], key: Hashable) -> AsyncIterator[TriggerEvent]:
        checkpoint = Checkpoint(getattr(self, "asset_state_store", None), self.serialize())
        board = board_of(key)
        ticket = Ticket(await checkpoint.read(), None if self.start == "now" else self.start)
        board.join(ticket)
        place: Any = None
        try:
            async for item in stream:
                if isinstance(item, Ready):
                    if item.tickets is None or ticket in item.tickets:
                        place = self._begin(ticket, item)
                        await checkpoint.write(place)
                    continue
                if place is None or (item.only is not None and ticket not in item.only):
                    continue
                behind, payload = await self._look(item, place)
                if behind is not place:
                    place = behind
                    item.passed(checkpoint, place, matters=payload is not None)
                if payload is not None:
                    yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
        finally:
            board.leave(ticket)

    def _begin(self, ticket: Ticket, ready: Ready) -> Any:
        if ready.anew:
            return ready.place
        return ticket.place if ticket.place is not None else self._first_place(ready)
