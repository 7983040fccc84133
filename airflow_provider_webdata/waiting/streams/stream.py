# SPDX-License-Identifier: Apache-2.0
"""A watcher's stream of items, and the cursor from which a restart continues.

On Airflow 3.3, a stream is the producer of a shared stream in ack mode, with a single watcher: Airflow reports when the
events for an item are in its database, and only then is the cursor after the item written to the checkpoint. On other
versions, the watcher runs its stream itself. Watchers share the reader and the polls of their connection's hub.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.coded_errors import traceback_of
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.waiting.hub import Hub

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.streams.checkpoint import Checkpoint

log = logger(__name__)

MAX_UNACKNOWLEDGED = 256
"""Maximum number of emitted items that are not stored yet: less than Airflow's queue per watcher (1024)."""

RESTART_DELAY = 30.0
"""Seconds before a failed stream ends, which makes Airflow restart its watcher."""


@dataclass(eq=False)
class Opening:
    """The first item of a stream: asks the watcher for its checkpoint, which only Airflow's trigger object has."""

    checkpoint: asyncio.Future[Checkpoint] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


@dataclass(eq=False)
class StreamItem:
    """One item of the stream.

    :param value: a delivery, or a check that was found; None: only the cursor has changed.
    :param cursor: the cursor after this item.
    :param at_once: whether the cursor must be stored immediately: an event was emitted, or the stream begins.
    :param is_decided: whether the watcher has decided on the item, and emitted its event, if any. Airflow also reports
        an item as processed if its watcher ended earlier, or no longer received items.
    """

    value: Any
    cursor: Any
    at_once: bool = False
    is_decided: bool = False


class Stream(ABC):
    """Reader for one watcher. Implements Airflow's `SharedStreamProducer` protocol.

    :param start: where to start without a cursor: an ISO 8601 time, or None for now.
    """

    def __init__(self, conn_id: str, start: str | None) -> None:
        self._conn_id = conn_id
        self._start = start
        self._checkpoint: Checkpoint | None = None
        self._unacknowledged = asyncio.Semaphore(MAX_UNACKNOWLEDGED)

    @abstractmethod
    def _read(self, hub: Hub, mailbox: Mailbox, cursor: Any) -> AsyncGenerator[StreamItem, None]:
        """Yield the first cursor, and the items after it, until canceled.

        :param cursor: the cursor of the checkpoint, or None.
        """

    async def open_stream(self) -> AsyncGenerator[tuple[Any, Any], None]:
        """Yield each item twice: for the watcher, and for `advance`."""
        opening = Opening()
        await self._unacknowledged.acquire()
        yield opening, opening
        self._checkpoint = await opening.checkpoint
        hub = Hub.of(self._conn_id)
        with hub.mailbox() as mailbox:
            try:
                cursor = await self._checkpoint.read()
                async with aclosing(self._read(hub, mailbox, cursor)) as items:
                    async for item in items:
                        await self._unacknowledged.acquire()
                        yield item, item
            except Exception as error:
                log.error(
                    "A stream of asset events failed; its watcher restarts in %.0f s.%s",
                    RESTART_DELAY,
                    traceback_of(error),
                )
                await asyncio.sleep(RESTART_DELAY)
                raise

    async def advance(self, batch: Sequence[Any]) -> None:
        """Write the cursor after Airflow has stored the events for these items.

        :param batch: pairs of an item and its outcome for the watcher.
        """
        stored = takewhile(
            lambda pair: pair[1].failed == 0 and (isinstance(pair[0], Opening) or pair[0].is_decided), batch
        )
        await self.acknowledge([item for item, _ in stored], len(batch))

    async def acknowledge(self, items: Sequence[Any], count: int) -> None:
        """Write the last cursor, and release capacity for further items.

        :param items: items whose events are stored.
        :param count: number of items to release.
        """
        for _ in range(count):
            self._unacknowledged.release()
        passed = [item for item in items if isinstance(item, StreamItem)]
        if passed and self._checkpoint is not None:
            at_once = any(item.at_once for item in passed)
            await self._checkpoint.write(passed[-1].cursor, at_once=at_once)

    def get_advance_lane(self, item: Any) -> int:  # noqa: ARG002
        """Return 0: all items share one lane."""
        return 0

    async def aclose(self) -> None:
        """Release blocked producers."""
        self._unacknowledged = asyncio.Semaphore(MAX_UNACKNOWLEDGED)


async def unshared(stream: Stream) -> AsyncGenerator[Any, None]:
    """Yield a stream's items to its watcher, for Airflow versions without shared streams."""
    async with aclosing(stream.open_stream()) as items:
        async for item, _ in items:
            yield item
            await stream.acknowledge([item], 1)
