"""A stream that many watchers share, each from its own cursor.

A watcher joins with the cursor of its checkpoint. The stream returns to it, for this watcher only if it can distinguish
watchers, and marks with `Joined` where its items start to be for that watcher too. Each watcher records in an item the
cursor after it.

On Airflow 3.3 this is the producer of a shared stream in ack mode: Airflow says when the events that were made of an
item are in its database, and only then the cursors that the item holds are written to the checkpoints. Elsewhere each
watcher runs a separate stream.
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
"""Items that are handed out and not stored yet: fewer than what Airflow queues for a watcher (1024)."""

RESTART_DELAY = 30.0
"""Seconds before a stream that failed ends, which makes Airflow restart its watchers."""


@dataclass(eq=False)
class Join:
    """A watcher's request to read the stream from its cursor on.

    :param cursor: of the watcher's checkpoint; None: there is none.
    :param start: where to begin without one: a moment in ISO 8601, or None for now.
    """

    cursor: Any
    start: str | None


@dataclass(eq=False)
class Joined:
    """A mark in the stream: the items behind it are for these watchers too.

    :param joins: whose watchers; None: all.
    :param cursor: the start of watchers without a cursor.
    :param reset: all of these begin there, regardless of what they have seen: the inbox was reset.
    """

    joins: frozenset[Join] | None
    cursor: Any
    reset: bool = False


@dataclass(eq=False)
class StreamItem:
    """One item of the stream, the same object for all watchers.

    :param value: a delivery, or a check that was found.
    :param cursor: behind it, where the stream knows it.
    :param only: the watchers that it is read again for; None: all.
    :param cursors: of each watcher that went past it, and whether it made an event.
    """

    value: Any
    cursor: Any = None
    only: frozenset[Join] | None = None
    cursors: list[tuple[Checkpoint, Any, bool]] = field(default_factory=list)


class NewJoinError(Exception):
    """Posted to a stream to interrupt it: a watcher joins."""


class Joins:
    """The joins that a stream has not answered yet; watchers may join before it opens."""

    def __init__(self) -> None:
        self._waiting: list[Join] = []
        self.mailbox: Mailbox | None = None

    @classmethod
    def of(cls, key: Hashable) -> Joins:
        """Return the joins of a stream in the running event loop."""
        return _JOINS.setdefault(asyncio.get_running_loop(), {}).setdefault(key, cls())

    def add(self, join: Join) -> None:
        """Join, and wake the stream."""
        self._waiting.append(join)
        if self.mailbox is not None:
            self.mailbox.post(NewJoinError())

    def remove(self, join: Join) -> None:
        """Leave."""
        if join in self._waiting:
            self._waiting.remove(join)

    def take(self) -> list[Join]:
        """Return the joins that are not answered yet, and count them as answered."""
        joins, self._waiting = self._waiting, []
        return joins


_JOINS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Joins]] = WeakKeyDictionary()


class Stream(ABC):
    """Reads for all watchers of one key. It has the shape of Airflow's `SharedStreamProducer`."""

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
        """Write the watchers' cursors: the events that they made of these items are in Airflow's database.

        :param batch: pairs of an item and how its watchers took it.
        """
        # Where a watcher failed it is not said which: its cursor and its neighbours' stay, and they may see it again.
        await self.acknowledge([item for item, outcome in batch if outcome.failed == 0], len(batch))

    async def acknowledge(self, items: Sequence[Any], count: int) -> None:
        """Write the last cursor of each watcher, and make room for further items.

        :param items: those whose events are stored.
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
        """All items are in one lane."""
        return 0

    async def aclose(self) -> None:
        """End, and release blocked producers."""
        self._unacknowledged = asyncio.Semaphore(MAX_UNACKNOWLEDGED)


async def unshared(stream: Stream) -> AsyncGenerator[Any, None]:
    """Yield a stream's items to its only watcher, where Airflow does not share streams."""
    async with aclosing(stream.open_stream()) as items:
        async for item, _ in items:
            yield item
            await stream.acknowledge([item], 1)
