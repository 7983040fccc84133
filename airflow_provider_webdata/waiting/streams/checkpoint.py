"""How far a watcher has come, kept in Airflow's asset state store (Airflow 3.3) so that a restart goes on there."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.getLogger(__name__)

SELDOM = 60.0
"""Seconds between two writes for what made no event: it only shortens what is read again after a restart."""


class Checkpoint:
    """The place of one watcher in its stream.

    :param store: the accessors that Airflow gives to the trigger; None on Airflow 3.2: nothing is kept.
    :param trigger: class path and arguments of the trigger, which tell its watchers from others of the same asset.
    """

    def __init__(self, store: Any, trigger: tuple[str, dict[str, Any]]) -> None:
        # A trigger that several assets watch has several places to keep it in; they are all kept alike.
        by_name = getattr(store, "_by_name", None) or {}
        by_uri = getattr(store, "_by_uri", None) or {}
        self._accessors = [*by_name.values(), *by_uri.values()]
        digest = hashlib.sha256(json.dumps(trigger, sort_keys=True).encode()).hexdigest()
        self._key = f"webdata_{digest[:24]}"
        self._written = 0.0

    async def read(self) -> Any:
        """Return the place that was written last, or None."""
        for accessor in self._accessors:
            if (found := await accessor.aget(self._key)) is not None:
                return found
        return None

    async def write(self, place: Any, *, matters: bool = True) -> None:
        """Keep a place. A store that does not answer costs a repetition after a restart, and no more.

        :param place: JSON.
        :param matters: whether an event was made since; else it is written seldom.
        """
        now = time.monotonic()
        if not self._accessors or (not matters and now - self._written < SELDOM):
            return
        self._written = now
        try:
            for accessor in self._accessors:
                await accessor.aset(self._key, place)
        except Exception as error:  # noqa: BLE001 - whatever the store of the deployment raises
            log.warning("The place of a watcher could not be kept: %s: %s", type(error).__name__, error)


async def commit(places: Iterable[tuple[Checkpoint, Any, bool]]) -> None:
    """Keep the last place of each watcher.

    :param places: watcher, place, and whether an event was made there; in the order of the stream.
    """
    last: dict[Checkpoint, tuple[Any, bool]] = {}
    for checkpoint, place, matters in places:
        last[checkpoint] = (place, matters or last.get(checkpoint, (None, False))[1])
    for checkpoint, (place, matters) in last.items():
        await checkpoint.write(place, matters=matters)
