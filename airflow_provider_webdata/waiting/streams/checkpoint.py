"""A watcher's cursor, kept in Airflow's asset state store (Airflow 3.3) so that a restart continues there."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from typing import Any

log = logging.getLogger(__name__)

WRITE_INTERVAL = 60.0
"""Seconds between writes where no event was made: they only shorten what is read again after a restart."""


class Checkpoint:
    """The stored cursor of one watcher.

    :param store: the accessors that Airflow gives to the trigger; None on Airflow 3.2: nothing is kept.
    :param trigger: class path and arguments of the trigger, which tell its watchers from others of the same asset.
    """

    def __init__(self, store: Any, trigger: tuple[str, dict[str, Any]]) -> None:
        # A trigger that several assets watch has a store for each; all get the same.
        by_name = getattr(store, "_by_name", None) or {}
        by_uri = getattr(store, "_by_uri", None) or {}
        self._accessors = [*by_name.values(), *by_uri.values()]
        digest = hashlib.sha256(json.dumps(trigger, sort_keys=True).encode()).hexdigest()
        self._key = f"webdata_{digest[:24]}"
        self._written = 0.0

    async def read(self) -> Any:
        """Return the cursor that was written last, or None."""
        for accessor in self._accessors:
            if (found := await accessor.aget(self._key)) is not None:
                return found
        return None

    async def write(self, cursor: Any, *, made_event: bool = True) -> None:
        """Write a cursor. A store that does not answer costs a repetition after a restart, and no more.

        :param cursor: JSON.
        :param made_event: whether an event was made since; else it is written once every `WRITE_INTERVAL`.
        """
        now = time.monotonic()
        if not self._accessors or (not made_event and now - self._written < WRITE_INTERVAL):
            return
        self._written = now
        try:
            for accessor in self._accessors:
                await accessor.aset(self._key, cursor)
        except Exception as error:  # noqa: BLE001 - the deployment's store raises any error
            log.warning("The cursor of a watcher could not be stored: %s: %s", type(error).__name__, error)
