"""The inbox of one process: storing, reading and pruning, put together."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .asset_events import AssetEvents
from .database import airflow_engine
from .feed import Feed
from .publisher import Publisher
from .retention import keep_pruned
from .store import DeliveryStore
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Engine

    from .records import NewDelivery


@dataclass
class Inbox:
    """What the routes need.

    :param store: the deliveries in the database.
    :param writer: stores deliveries.
    :param feed: reads them, and waits for them.
    :param asset_events: registers the events of completed checks; not started.
    """

    store: DeliveryStore
    writer: Writer
    feed: Feed
    asset_events: AssetEvents
    publisher: Publisher = field(repr=False)
    _pruning: asyncio.Task[None] | None = field(default=None, repr=False)

    @classmethod
    def open(cls, engine: Engine | None = None, prepare: Callable[[], None] | None = None) -> Inbox:
        """Return an inbox that has begun nothing yet: threads start at the first need, and all are daemons.

        :param engine: a database that has the tables; Airflow's own by default.
        :param prepare: makes the tables, where that is wanted; see `DeliveryStore`.
        :raises StoreUnavailableError: this process has no access to Airflow's database.
        """
        engine = engine or airflow_engine()
        store = DeliveryStore(engine, prepare)
        publisher, asset_events = Publisher(store), AssetEvents(engine, store)

        def stored(new: list[NewDelivery]) -> None:
            publisher.publish_soon()
            asset_events.notice(new)

        return cls(store, Writer(store, stored), Feed(store, publisher), asset_events, publisher)

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
        self.asset_events.close()
        if self._pruning is not None:
            self._pruning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pruning
        self.send_readers_away()
        await self.writer.close()
