# SPDX-License-Identifier: Apache-2.0
"""The inbox of one process: combines storing, reading, and pruning."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.database import airflow_engine

from .asset_events import AssetEvents
from .feed import Feed
from .refusals import Refusals
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
        self.refusals = Refusals(self.store.add_refusals)
        self._closing = threading.Event()

    def _stored(self, new: list[NewDelivery]) -> None:
        self.feed.publish_soon()
        self.asset_events.notice(new)

    def start_pruning(self, days: float) -> None:
        """Prune in a thread until `close`, also while the inbox receives no request.

        :param days: retention of deliveries; 0 keeps all.
        """
        if days > 0:
            # A daemon thread: a hanging database must not prevent the process from exiting.
            threading.Thread(
                target=keep_pruned,
                args=(self.store, days, self._closing),
                name="webdata-inbox-pruning",
                daemon=True,
            ).start()

    async def close(self) -> None:
        """Stop pruning, release waiting readers, and store the submitted deliveries."""
        self.asset_events.close()
        self._closing.set()
        self.feed.close()
        await self.writer.close()
        await self.refusals.close()
