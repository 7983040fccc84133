"""Many monitors are found by listing all of them, a hundred at a time; only those that changed are polled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from airflow_provider_webdata.hooks.calls import MonitorPages
from airflow_provider_webdata.waiting.polling.monitor_watch import MonitorWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.waiting.polling.lookups import Lookups
    from airflow_provider_webdata.waiting.polling.watch import Watch

FEW = 10
"""So many monitors are polled one by one; where there are more, all are listed and those that changed are polled."""


class MonitorSweep:
    """Spares polls of monitors that did not change.

    :param lookups: makes the requests.
    :param on_unchanged: called with each monitor that needs no separate poll.
    """

    def __init__(self, lookups: Lookups, on_unchanged: Callable[[Watch], None]) -> None:
        self._lookups = lookups
        self._on_unchanged = on_unchanged
        self._pages = 0

    async def filter(self, due: list[Watch]) -> list[Watch]:
        """Return what needs a separate poll.

        :param due: the monitors and jobs to poll.
        """
        monitors = [watch for watch in due if isinstance(watch, MonitorWatch)]
        if len(monitors) <= max(FEW, self._pages):
            return due
        others = [watch for watch in due if not isinstance(watch, MonitorWatch)]
        return [*others, *await self._sweep(monitors)]

    async def _sweep(self, due: list[MonitorWatch]) -> list[MonitorWatch]:
        unlisted = {watch.monitor_id: watch for watch in due}
        changed: list[MonitorWatch] = []
        pages = MonitorPages()
        count = 0
        while pages.query is not None and unlisted:
            page = await self._read_page(pages.query)
            count += 1
            for monitor in pages.take(page):
                watch = unlisted.pop(monitor.id, None)
                if watch is None:
                    continue
                if watch.update(monitor):
                    changed.append(watch)
                else:
                    watch.polled_at = time.time()
                    self._on_unchanged(watch)
        self._pages = max(count, 1)
        # What is not listed may be too new for the replica, or deleted.
        return [*changed, *unlisted.values()]

    async def _read_page(self, query: dict[str, int]) -> list[Monitor]:
        page: list[Monitor] = await self._lookups.call(lambda hook: hook.list_monitors(**query))
        return page
