"""A stream that many watchers share, each from its own place, with places kept only for what Airflow has stored.

On Airflow 3.3 this is the producer of a shared stream in ack mode: Airflow tells when the events that were made of
an item are in its database, and only then the watcher's place is kept. Elsewhere each watcher runs a stream of its
own.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow_provider_webdata.waiting.mailbox import Mailbox
from airflow_provider_webdata.waiting.streams.checkpoint import Checkpoint, commit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Sequence

log = logging.getLogger(__name__)

MOST_UNDER_WAY = 256
"""Items that are handed out and not stored yet: fewer than what Airflow queues for a watcher (1024)."""

START_AGAIN = 30.0
"""Seconds before a stream that failed ends, which makes Airflow start its watchers anew."""


@dataclass(eq=False)
class Ticket:
    """A watcher that wants to read from a place on.

    :param place: what its checkpoint held; None: there is none.
    :param start: where to begin without one: a moment in ISO 8601, or None for now.
    """

    place: Any
    start: str | None


@dataclass(eq=False)
class Item:
    """One item of the stream, the same object for all watchers.

    :param value: what came.
    :param place: behind it.
    :param only: the watchers that it is read again for; None: all.
    :param places: where the watchers that went past it are now.
    """

    value: Any
    place: Any = None
    only: frozenset[Ticket] | None = None
    places: list[tuple[Checkpoint, Any, bool]] = field(default_factory=list)

    def passed(self, checkpoint: Checkpoint, place: Any, *, matters: bool) -> None:
        """Note that a watcher went past.

        :param checkpoint: of the watcher.
        :param place: where it is now.
        :param matters: whether it made an event.
        """
        self.places.append((checkpoint, place, matters))


@dataclass(eq=False)
class Ready:
    """From here on the stream is for these watchers too.

    :param tickets: whose watchers; None: all.
    :param place: where those begin that have no place of their own.
    :param anew: all of these begin there, whatever they have seen: what they know of is no more.
    """

    tickets: frozenset[Ticket] | None
    place: Any
    anew: bool = False


class Board:
    """Where watchers of one stream leave their tickets, before or after the stream has opened."""

    def __init__(self) -> None:
        self.tickets: list[Ticket] = []
        self.mailbox: Mailbox | None = None

    def join(self, ticket: Ticket) -> None:
        """Ask to be read to.

        :param ticket: of the watcher.
        """
        self.tickets.append(ticket)
        if self.mailbox is not None:
            self.mailbox.post(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Take back a ticket; one that was answered does no harm.

        :param ticket: of the watcher.
        """
        if ticket in self.tickets:
            self.tickets.remove(ticket)


_BOARDS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Board]] = WeakKeyDictionary()


def board_of(key: Hashable) -> Board:
    """Return the board of a stream in the running event loop.

    :param key: of the stream.
    """
    return _BOARDS.setdefault(asyncio.get_running_loop(), {}).setdefault(key, Board())


class Stream(ABC):
    """Reads for all watchers of one key. It has the shape of Airflow's `SharedStreamProducer`.

    :param key: of the stream.
    """

    def __init__(self, key: Hashable) -> None:
        self._board = board_of(key)
        self._under_way = asyncio.Semaphore(MOST_UNDER_WAY)

    @abstractmethod
    def _read(self, mailbox: Mailbox) -> AsyncIterator[Any]:
        """Yield items and `Ready` marks for ever; the mailbox also gets the tickets."""

    @abstractmethod
    def _close(self, mailbox: Mailbox) -> None:
        """Leave nothing behind."""

    async def open_stream(self) -> AsyncGenerator[tuple[Any, Any], None]:
        """Yield each item twice: for the watchers, and for `advance`."""
        mailbox = Mailbox()
        self._board.mailbox = mailbox
        try:
            async for item in self._read(mailbox):
                await self._under_way.acquire()
                yield item, item
        except Exception:
            log.exception("A stream of asset events ended; its watchers start anew.")
            await asyncio.sleep(START_AGAIN)
            raise
        finally:
            if self._board.mailbox is mailbox:
                self._board.mailbox = None
            mailbox.closed = True
            self._close(mailbox)

    async def advance(self, batch: Sequence[Any]) -> None:
        """Keep the places of the watchers: what they made of these items is in Airflow's database.

        :param batch: pairs of an item and how its watchers took it.
        """
        await self.keep(
            # One watcher failed at it, and it is not said which: it and its neighbours may see it again.
            [item for item, outcome in batch if outcome.failed == 0],
            len(batch),
        )

    async def keep(self, items: Sequence[Any], count: int) -> None:
        """Keep places and make room for as many further items.

        :param items: those that were stored.
        :param count: of items that are no longer under way.
        """
        for _ in range(count):
            self._under_way.release()
        await commit(entry for item in items if isinstance(item, Item) for entry in item.places)

    def get_advance_lane(self, item: Any) -> int:  # noqa: ARG002
        """All items are in one lane."""
        return 0

    async def aclose(self) -> None:
        """End: whoever still waits for room need not."""
        self._under_way = asyncio.Semaphore(MOST_UNDER_WAY)


async def alone(stream: Stream) -> AsyncGenerator[Any, None]:
    """Yield a stream's items to a single watcher, where Airflow does not share it.

    :param stream: one that nobody else reads.
    """
    async with aclosing(stream.open_stream()) as items:
        async for item, _ in items:
            yield item
            await stream.keep([item], 1)
