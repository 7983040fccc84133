"""The inbox of one process: combines storing, reading, and pruning."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.database import airflow_engine

from .asset_events import AssetEvents
from .feed import Feed
from .retention import keep_pruned
from .store import DeliveryStore
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Engine

    from .records import NewDelivery


class Inbox:
    """The storage API of the routes, for one event loop. Its tasks start on demand.

    :param engine: engine of a database with the tables. Default: Airflow's own.
    :param prepare: creates the tables, if configured; see `DeliveryStore`.
    :ivar asset_events: registers the events of completed checks; not started.
    :raises StoreUnavailableError: this process has no access to Airflow's database.
    """

    def __init__(self, engine: Engine | None = None, prepare: Callable[[], None] | None = None) -> None:
        engine = engine or airflow_engine()
        self.store = DeliveryStore(engine, prepare)
        self.feed = Feed(self.store)
        self.asset_events = AssetEvents(engine, self.store)
        self.writer = Writer(self.store, self._stored)
        self._pruning: asyncio.Task[None] | None = None

    def _stored(self, new: list[NewDelivery]) -> None:
        self.feed.publish_soon()
        self.asset_events.notice(new)

    def start_pruning(self, days: float) -> None:
        """Prune in the background of the running event loop; idempotent.

        :param days: retention of deliveries; 0 keeps all.
        """
        if days > 0 and self._pruning is None:
            self._pruning = asyncio.get_running_loop().create_task(
                keep_pruned(self.store, days), name="webdata-inbox-pruning"
            )

    async def close(self) -> None:
        """Stop pruning, release waiting readers, and store the submitted deliveries."""
        self.asset_events.close()
        if self._pruning is not None:
            self._pruning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pruning
        self.feed.close()
        await self.writer.close()
