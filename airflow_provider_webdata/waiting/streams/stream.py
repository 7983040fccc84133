"""A stream shared by many watchers, each with its own cursor.

A watcher joins with the cursor of its checkpoint. The stream rewinds to this cursor (if possible, for this watcher
only) and emits a `Joined` mark, after which its items are for that watcher too. Each watcher records its next cursor in
an item.

On Airflow 3.3, this is the producer of a shared stream in ack mode: Airflow reports when the events for an item are in
its database, and only then are the item's cursors written to the checkpoints. On other versions, each watcher runs a
separate stream.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow_provider_webdata.waiting.hub import Hub

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Hashable, Sequence

    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.streams.checkpoint import Checkpoint

log = logging.getLogger(__name__)

MAX_UNACKNOWLEDGED = 256
"""Maximum number of emitted items that are not stored yet: less than Airflow's queue per watcher (1024)."""

RESTART_DELAY = 30.0
"""Seconds before a failed stream ends, which makes Airflow restart its watchers."""


@dataclass(eq=False)
class Join:
    """A watcher's request to read the stream from its cursor.

    :param cursor: cursor from the watcher's checkpoint, or None.
    :param start: where to start without a cursor: an ISO 8601 time, or None for now.
    """

    cursor: Any
    start: str | None


@dataclass(eq=False)
class Joined:
    """A mark in the stream: the following items are for these watchers too.

    :param joins: the joins of the watchers; None: all watchers.
    :param cursor: the first cursor of watchers without a cursor.
    :param reset: whether the inbox was reset, so that all these watchers start at `cursor`.
    """

    joins: frozenset[Join] | None
    cursor: Any
    reset: bool = False


@dataclass(eq=False)
class StreamItem:
    """One item of the stream, the same object for all watchers.

    :param value: a delivery, or a check that was found.
    :param cursor: the cursor after this item, if the stream knows it.
    :param only: the watchers for which it is read again; None: all.
    :param cursors: for each watcher that has processed it: checkpoint, cursor, and whether it emitted an event.
    """

    value: Any
    cursor: Any = None
    only: frozenset[Join] | None = None
    cursors: list[tuple[Checkpoint, Any, bool]] = field(default_factory=list)


class NewJoinError(Exception):
    """Interrupts a stream when a watcher joins."""


class Joins:
    """The pending joins of a stream. Watchers may join before it opens."""

    def __init__(self) -> None:
        self._waiting: list[Join] = []
        self.mailbox: Mailbox | None = None

    @classmethod
    def of(cls, key: Hashable) -> Joins:
        """Return the joins of a stream in the running event loop."""
        return _JOINS.setdefault(asyncio.get_running_loop(), {}).setdefault(key, cls())

    def add(self, join: Join) -> None:
        """Add a join, and wake the stream."""
        self._waiting.append(join)
        if self.mailbox is not None:
            self.mailbox.post(NewJoinError())

    def remove(self, join: Join) -> None:
        """Remove a pending join."""
        if join in self._waiting:
            self._waiting.remove(join)

    def pop_all(self) -> list[Join]:
        """Remove and return the pending joins."""
        joins, self._waiting = self._waiting, []
        return joins


_JOINS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Joins]] = WeakKeyDictionary()


class Stream(ABC):
    """Reader for all watchers of one key. Implements Airflow's `SharedStreamProducer` protocol."""

    def __init__(self, key: Hashable, conn_id: str) -> None:
        self._conn_id = conn_id
        self._joins = Joins.of(key)
        self._unacknowledged = asyncio.Semaphore(MAX_UNACKNOWLEDGED)

    @abstractmethod
    def _read(self, hub: Hub, mailbox: Mailbox) -> AsyncGenerator[Any, None]:
        """Yield items and `Joined` marks until cancelled. A new join interrupts the mailbox."""

    async def open_stream(self) -> AsyncGenerator[tuple[Any, Any], None]:
        """Yield each item twice: for the watchers, and for `advance`."""
        hub = Hub.of(self._conn_id)
        with hub.mailbox() as mailbox:
            self._joins.mailbox = mailbox
            try:
                async with aclosing(self._read(hub, mailbox)) as items:
                    async for item in items:
                        await self._unacknowledged.acquire()
                        yield item, item
            except Exception:
                log.exception(
                    "A stream of asset events failed; its watchers restart in %.0f s.", RESTART_DELAY
                )
                await asyncio.sleep(RESTART_DELAY)
                raise
            finally:
                if self._joins.mailbox is mailbox:
                    self._joins.mailbox = None

    async def advance(self, batch: Sequence[Any]) -> None:
        """Write the watchers' cursors after Airflow has stored the events for these items.

        :param batch: pairs of an item and its outcome for the watchers.
        """
        # Airflow does not report which watcher failed: no watcher's cursor advances, and all may see the item again.
        await self.acknowledge([item for item, outcome in batch if outcome.failed == 0], len(batch))

    async def acknowledge(self, items: Sequence[Any], count: int) -> None:
        """Write the last cursor of each watcher, and release capacity for further items.

        :param items: items whose events are stored.
        :param count: number of items to release.
        """
        for _ in range(count):
            self._unacknowledged.release()
        last: dict[Checkpoint, tuple[Any, bool]] = {}
        for item in items:
            for checkpoint, cursor, made_event in item.cursors if isinstance(item, StreamItem) else ():
                last[checkpoint] = (cursor, made_event or last.get(checkpoint, (None, False))[1])
        for checkpoint, (cursor, made_event) in last.items():
            await checkpoint.write(cursor, made_event=made_event)

    def get_advance_lane(self, item: Any) -> int:  # noqa: ARG002
        """Return 0: all items share one lane."""
        return 0

    async def aclose(self) -> None:
        """Release blocked producers."""
        self._unacknowledged = asyncio.Semaphore(MAX_UNACKNOWLEDGED)


async def unshared(stream: Stream) -> AsyncGenerator[Any, None]:
    """Yield a stream's items to a single watcher, for Airflow versions without shared streams."""
    async with aclosing(stream.open_stream()) as items:
        async for item, _ in items:
            yield item
            await stream.acknowledge([item], 1)
