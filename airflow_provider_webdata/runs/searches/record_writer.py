"""Background storage of records, with backpressure if storage is slow."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from airflow_provider_webdata.common.coded_errors import brief

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.runs.money.paid_records import Record

log = logging.getLogger(__name__)


class RecordWriter:
    """Saves waiting records in batches in the background; `put` blocks while the queue is full.

    :param save: saves records; called in a thread, one call at a time.
    :param room: maximum number of waiting records.
    """

    def __init__(self, save: Callable[[list[Record]], None], room: int) -> None:
        self._save = save
        self._queue: asyncio.Queue[Record | None] = asyncio.Queue(room)
        self._left: list[Record] = []
        self._error: Exception | None = None
        self._over = False

    @property
    def failed(self) -> bool:
        """True if storage failed: send no more billed calls."""
        return self._error is not None

    async def put(self, record: Record) -> None:
        """Add a record to the queue."""
        try:
            await self._queue.put(record)
        except asyncio.CancelledError:
            # The attempt is ending; `run` saves this record with the last ones.
            self._left.append(record)
            raise

    def finish(self) -> None:
        """Make `run` return once all records are saved."""
        self._over = True
        with contextlib.suppress(asyncio.QueueFull):
            # A full queue also wakes the loop.
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
                    except Exception as error:  # noqa: BLE001 - storage backends raise any error
                        log.warning("Failed to save %d results: %s", len(unsaved), brief(error))
                        self._error = error
        finally:
            # Also after a cancellation, when the task has timed out.
            if unsaved := [*unsaved, *self._waiting(None)]:
                self._save(unsaved)

    def _waiting(self, first: Record | None) -> list[Record]:
        records = [first, *self._left]
        self._left = []
        while not self._queue.empty():
            records.append(self._queue.get_nowait())
        return [record for record in records if record is not None]

    def check(self) -> None:
        """Raise the storage error, even if a later attempt to save succeeded: no further search was started."""
        if self._error is not None:
            raise self._error
