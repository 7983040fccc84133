"""Retention: deletes old deliveries in small transactions, so that writers and readers do not wait."""

from __future__ import annotations

import asyncio
import functools
import logging
import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import anyio.to_thread

from .errors import StoreUnavailableError

if TYPE_CHECKING:
    from .store import DeliveryStore

log = logging.getLogger(__name__)

INTERVAL = 3600.0
"""Seconds between two prunings by one process, give or take a fifth."""
FIRST_WITHIN = 600.0
"""Seconds after its start within which a process prunes for the first time."""


def prune_all(store: DeliveryStore, before: datetime) -> int:
    """Delete all that was received before a moment, a few at a time; return how many.

    :param before: aware.
    :raises StoreUnavailableError: the database cannot do it now; what is deleted already stays deleted.
    """
    total = 0
    while deleted := store.prune(before):
        total += deleted
    return total


async def keep_pruned(store: DeliveryStore, days: float) -> None:
    """Prune now and then until cancelled. Several processes that do so spread out over the hour."""
    pause = random.uniform(0, FIRST_WITHIN)  # noqa: S311
    while True:
        await asyncio.sleep(pause)
        pause = INTERVAL * random.uniform(0.8, 1.2)  # noqa: S311
        before = datetime.now(timezone.utc) - timedelta(days=days)
        try:
            deleted = await anyio.to_thread.run_sync(
                functools.partial(prune_all, store, before), abandon_on_cancel=True
            )
        except StoreUnavailableError as error:
            log.warning("Old deliveries cannot be deleted now: %s", error)
            continue
        if deleted:
            log.info("Deleted %d deliveries that were older than %g days", deleted, days)
