"""Many monitors are found by listing all of them, a hundred at a time; only those that moved are asked."""

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
"""So many monitors are asked one by one; where there are more, all are listed and those that moved are asked."""


class MonitorSweep:
    """Spares looks at monitors that did not move.

    :param lookups: asks the service.
    :param looked: told of each monitor that needs no look of its own.
    """

    def __init__(self, lookups: Lookups, looked: Callable[[Watch], None]) -> None:
        self._errands = lookups
        self._looked = looked
        self._pages = 0

    async def sift(self, due: list[Watch]) -> list[Watch]:
        """Return what needs a look of its own.

        :param due: what is to be looked at, monitors and others.
        """
        monitors = [watch for watch in due if isinstance(watch, MonitorWatch)]
        if len(monitors) <= max(FEW, self._pages):
            return due
        others = [watch for watch in due if not isinstance(watch, MonitorWatch)]
        return [*others, *await self._sweep(monitors)]

    async def _sweep(self, due: list[MonitorWatch]) -> list[MonitorWatch]:
        still = {watch.monitor_id: watch for watch in due}
        moved: list[MonitorWatch] = []
        pages = MonitorPages()
        count = 0
        while pages.query is not None and still:
            page = await self._page(pages.query)
            count += 1
            for monitor in pages.take(page):
                watch = still.pop(monitor.id, None)
                if watch is None:
                    continue
                if watch.take_monitor(monitor):
                    moved.append(watch)
                else:
                    watch.looked_at = time.time()
                    self._looked(watch)
        self._pages = max(count, 1)
        # What is not listed may be too new for the replica, or gone.
        return [*moved, *still.values()]

    async def _page(self, query: dict[str, int]) -> list[Monitor]:
        page: list[Monitor] = await self._errands.with_renewal(lambda hook: hook.list_monitors(**query))
        return page
