# SPDX-License-Identifier: Apache-2.0
"""Watcher cursors in Airflow's asset state store (3.3), from which a restart continues."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

from airflow_provider_webdata.common.logs import logger

log = logger(__name__)

WRITE_INTERVAL = 60.0
"""Seconds between writes without an event. They only reduce the number of items to read again after a restart."""


class Checkpoint:
    """The stored cursor of one watcher.

    :param store: the trigger's accessors from Airflow; None on Airflow 3.2: the cursor is not stored.
    :param trigger: class path and arguments of the trigger, which identify its watchers among those of the same asset.
    """

    def __init__(self, store: Any, trigger: tuple[str, dict[str, Any]]) -> None:
        # A trigger that watches several assets has a store for each; all receive the same cursor.
        by_name = getattr(store, "_by_name", None) or {}
        by_uri = getattr(store, "_by_uri", None) or {}
        self._accessors = [*by_name.values(), *by_uri.values()]
        digest = hashlib.sha256(json.dumps(trigger, sort_keys=True).encode()).hexdigest()
        self._key = f"webdata_{digest[:24]}"
        self._written = 0.0

    async def read(self) -> Any:
        """Return the last stored cursor, or None."""
        for accessor in self._accessors:
            if (found := await accessor.aget(self._key)) is not None:
                return found
        return None

    async def write(self, cursor: Any, *, at_once: bool = True) -> None:
        """Write a cursor. If the store is unavailable, a restart only repeats some events.

        :param cursor: the cursor, JSON-serializable.
        :param at_once: whether the cursor must be stored immediately. Otherwise, it is written at most
            once every `WRITE_INTERVAL`.
        """
        now = time.monotonic()
        if not self._accessors or (not at_once and now - self._written < WRITE_INTERVAL):
            return
        self._written = now
        try:
            for accessor in self._accessors:
                await accessor.aset(self._key, cursor)
        except Exception as error:  # noqa: BLE001 - the deployment's store raises any error
            log.warning(
                "Could not store a watcher's cursor; a restart may repeat events: %s: %s",
                type(error).__name__,
                error,
            )
