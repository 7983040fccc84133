# SPDX-License-Identifier: Apache-2.0
"""Retention: deletes old deliveries in small transactions that do not block writers and readers."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.logs import logger

if TYPE_CHECKING:
    from threading import Event

    from .store import DeliveryStore

log = logger(__name__)

INTERVAL = 3600.0
"""Seconds between two prunings by one process, with a jitter of 20%."""
FIRST_WITHIN = 600.0
"""Maximum seconds from a process's start to its first pruning."""


def prune_all(store: DeliveryStore, before: datetime) -> int:
    """Delete all deliveries received before a time, in batches; return their number.

    :param before: timezone-aware.
    :raises StoreUnavailableError: the database is unavailable. Deletions so far are committed.
    """
    total = 0
    while deleted := store.prune(before):
        total += deleted
    return total


def keep_pruned(store: DeliveryStore, days: float, closing: Event) -> None:
    """Prune periodically until `closing` is set. Several processes spread their prunings over the hour."""
    pause = random.uniform(0, FIRST_WITHIN)  # noqa: S311
    while not closing.wait(pause):
        pause = INTERVAL * random.uniform(0.8, 1.2)  # noqa: S311
        before = datetime.now(timezone.utc) - timedelta(days=days)
        try:
            deleted = prune_all(store, before)
        except StoreUnavailableError as error:
            log.warning("Failed to delete old deliveries; retrying later: %s", error)
            continue
        if deleted:
            log.info("Deleted %d deliveries older than %g days", deleted, days)
