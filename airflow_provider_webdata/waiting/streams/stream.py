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

from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.streams.checkpoint import Checkpoint, commit
from airflow_provider_webdata.waiting.streams.joining import join_queue

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Hashable, Sequence

    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.streams.joining import Join

log = logging.getLogger(__name__)

MAX_UNACKNOWLEDGED = 256
"""Items that are handed out and not stored yet: fewer than what Airflow queues for a watcher (1024)."""

RESTART_DELAY = 30.0
"""Seconds before a stream that failed ends, which makes Airflow restart its watchers."""


@dataclass(eq=False)
class StreamItem:
    """One item of the stream, the same object for all watchers.

    :param value: a delivery, or a check that was found.
    :param cursor: behind it, where the stream knows it.
    :param only: the watchers that it is read again for; None: all.
    :param cursors: checkpoint, cursor and whether an event was made, of each watcher that went past it.
    """

    value: Any
    cursor: Any = None
    only: frozenset[Join] | None = None
    cursors: list[tuple[Checkpoint, Any, bool]] = field(default_factory=list)

    def passed(self, checkpoint: Checkpoint, cursor: Any, *, made_event: bool) -> None:
        """Note where a watcher is that went past.

        :param checkpoint: of the watcher.
        :param cursor: where it is now.
        :param made_event: whether it made an event.
        """
        self.cursors.append((checkpoint, cursor, made_event))


class Stream(ABC):
    """Reads for all watchers of one key. It has the shape of Airflow's `SharedStreamProducer`.

    :param key: of the stream.
    :param conn_id: id of the connection.
    """

    def __init__(self, key: Hashable, conn_id: str) -> None:
        self._conn_id = conn_id
        self._joins = join_queue(key)
        self._unacknowledged = asyncio.Semaphore(MAX_UNACKNOWLEDGED)

    @abstractmethod
    def _read(self, hub: Hub, mailbox: Mailbox) -> AsyncGenerator[Any, None]:
        """Yield items and `Joined` marks until cancelled; the mailbox also gets each `Join`."""

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
        stored = [item for item, outcome in batch if outcome.failed == 0]
        await self.acknowledge(stored, len(batch))

    async def acknowledge(self, items: Sequence[Any], count: int) -> None:
        """Write cursors, and make room for as many further items.

        :param items: those whose events are stored.
        :param count: of items that are done with.
        """
        for _ in range(count):
            self._unacknowledged.release()
        await commit(entry for item in items if isinstance(item, StreamItem) for entry in item.cursors)

    def get_advance_lane(self, item: Any) -> int:  # noqa: ARG002
        """All items are in one lane."""
        return 0

    async def aclose(self) -> None:
        """End, and release blocked producers."""
        self._unacknowledged = asyncio.Semaphore(MAX_UNACKNOWLEDGED)


async def unshared(stream: Stream) -> AsyncGenerator[Any, None]:
    """Yield a stream's items to its only watcher, where Airflow does not share streams.

    :param stream: of this watcher alone.
    """
    async with aclosing(stream.open_stream()) as items:
        async for item, _ in items:
            yield item
            await stream.acknowledge([item], 1)
