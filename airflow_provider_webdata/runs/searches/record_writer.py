"""Keeps records while searches continue, without filling memory where storage is slow."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.runs.kept_records import Record

log = logging.getLogger(__name__)


class RecordWriter:
    """Saves records in the background, all that wait together; `put` waits while there is no room.

    :param save: saves records; called in a thread, one call at a time.
    :param room: how many records may wait.
    """

    def __init__(self, save: Callable[[list[Record]], None], room: int) -> None:
        self._save = save
        self._queue: asyncio.Queue[Record | None] = asyncio.Queue(room)
        self._left: list[Record] = []
        self._error: Exception | None = None
        self._over = False

    @property
    def failed(self) -> bool:
        """Whether storage failed: send no more billed calls."""
        return self._error is not None

    async def put(self, record: Record) -> None:
        """Hand over a record."""
        try:
            await self._queue.put(record)
        except asyncio.CancelledError:
            # The attempt ends; `run` saves it with the last ones.
            self._left.append(record)
            raise

    def finish(self) -> None:
        """Let `run` end once all records are saved."""
        self._over = True
        with contextlib.suppress(asyncio.QueueFull):
            # A full queue wakes the loop as well.
            self._queue.put_nowait(None)

    async def run(self) -> None:
        """Save records until `finish` is called; after a failure, try again at the end."""
        unsaved: list[Record] = []
        try:
            while not (self._over and self._queue.empty()):
                unsaved += self._waiting(await self._queue.get())
                if unsaved and not self.failed:
                    try:
                        await asyncio.to_thread(self._save, unsaved)
                        unsaved = []
                    except Exception as error:  # noqa: BLE001 - storages raise any error
                        log.warning("%d results could not be saved: %s", len(unsaved), error)
                        self._error = error
        finally:
            # Also where the task's time is over, and this is cancelled.
            if unsaved := [*unsaved, *self._waiting(None)]:
                self._save(unsaved)

    def _waiting(self, first: Record | None) -> list[Record]:
        records = [first, *self._left]
        self._left = []
        while not self._queue.empty():
            records.append(self._queue.get_nowait())
        return [record for record in records if record is not None]

    def check(self) -> None:
        """Raise what storage raised, though it took the records in the end: no further search was begun."""
        if self._error is not None:
            raise self._error
