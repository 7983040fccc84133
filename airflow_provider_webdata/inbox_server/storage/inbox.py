"""The inbox of one process: storing, reading and pruning, put together."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .database import airflow_engine
from .feed import Feed
from .publisher import Publisher
from .retention import keep_pruned
from .store import DeliveryStore
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Engine


@dataclass
class Inbox:
    """What the routes need.

    :param store: the deliveries in the database.
    :param writer: stores deliveries.
    :param feed: reads them, and waits for them.
    """

    store: DeliveryStore
    writer: Writer
    feed: Feed
    publisher: Publisher = field(repr=False)
    _pruning: asyncio.Task[None] | None = field(default=None, repr=False)

    @classmethod
    def open(cls, engine: Engine | None = None, prepare: Callable[[], None] | None = None) -> Inbox:
        """Return an inbox that has begun nothing yet: threads start at the first need, and all are daemons.

        :param engine: a database that has the tables; Airflow's own by default.
        :param prepare: makes the tables, where that is wanted; see `DeliveryStore`.
        :raises StoreUnavailableError: this process has no access to Airflow's database.
        """
        store = DeliveryStore(engine or airflow_engine(), prepare)
        publisher = Publisher(store)
        return cls(store, Writer(store, publisher.publish_soon), Feed(store, publisher), publisher)

    def start_pruning(self, days: float) -> None:
        """Prune in the background of the running event loop; a second call changes nothing.

        :param days: how long deliveries are kept; 0 keeps all.
        """
        if days > 0 and self._pruning is None:
            self._pruning = asyncio.get_running_loop().create_task(
                keep_pruned(self.store, days), name="webdata-inbox-pruning"
            )

    def send_readers_away(self) -> None:
        """Answer waiting readers at once, and later ones without waiting."""
        self.publisher.close()

    async def close(self) -> None:
        """Stop pruning, send waiting readers away, and store what was submitted."""
        if self._pruning is not None:
            self._pruning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pruning
        self.send_readers_away()
        await self.writer.close()
