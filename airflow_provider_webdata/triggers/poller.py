"""The one poller of a connection in an event loop: it looks at each monitor once, however many wait for it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import (
    AuthenticationError,
    ConfigurationError,
    NotFoundError,
    WebDataError,
)
from airflow_provider_webdata.hooks.calls import PAGE_SIZE, MonitorPages
from airflow_provider_webdata.hooks.checks import finished
from airflow_provider_webdata.triggers.errands import Errands
from airflow_provider_webdata.triggers.mailbox import Failure
from airflow_provider_webdata.triggers.outage import Outage
from airflow_provider_webdata.triggers.poll_waits import Look, Watch
from airflow_provider_webdata.triggers.shared_task import SharedTask

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models import Monitor, MonitorCheck
    from airflow_provider_webdata.triggers.poll_waits import PollWait
    from airflow_provider_webdata.triggers.shared_connection import SharedConnection

GATHER = 0.05
"""Seconds for which a look waits for others that begin at the same time."""

FEW = 10
"""So many monitors are asked one by one; where there are more, all are listed and those that moved are asked."""

EARLY = 0.1
"""Part of its interval by which a look may come sooner, to be made together with others."""

GONE_AFTER = 30.0
"""Seconds for which a monitor may be missing before it counts as gone: reads come from a replica."""

_AT_ONCE = 4
_FIRST_PAGE = 25
_MOST_PAGES = 40
_SLICE = 200


class SharedPoller(SharedTask):
    """Looks at the monitors that are waited for, and shows each wait the checks that may end it.

    A new wait is looked at promptly. A few monitors are asked for their checks one by one; many are found by
    listing all monitors, a hundred at a time, and only those that moved are asked. What the service refuses for
    good ends the waits; all else is tried again, ever more slowly, and told to them.

    :param connection: whose monitors are looked at.
    """

    def __init__(self, connection: SharedConnection) -> None:
        super().__init__(f"the monitor poller of connection {connection.conn_id!r}")
        self._connection = connection
        self._watches: dict[str, Watch] = {}
        self._news = asyncio.Event()
        self._sweep_pages = 0
        self._rest_until = 0.0
        self._service = Outage(f"service of connection {connection.conn_id!r}", self._tell)
        self.errands = Errands(connection)

    @property
    def is_needed(self) -> bool:
        """Whether anybody waits."""
        return bool(self._watches)

    def subscribe(self, wait: PollWait) -> None:
        """Begin to look for a wait.

        :param wait: one that was not looked for before.
        """
        watch = self._watches.get(wait.monitor_id)
        if watch is None:
            watch = self._watches[wait.monitor_id] = Watch(wait.monitor_id, 0.0)
        watch.waits.add(wait)
        watch.due = 0.0
        # A monitor that did not move since the last look may still have what this wait is for.
        watch.signature = None
        if self._service.notice is not None:
            wait.mailbox.post(self._service.notice)
        self._news.set()
        self.need()

    def unsubscribe(self, wait: PollWait) -> None:
        """Stop looking for a wait.

        :param wait: one that was given to `subscribe`.
        """
        watch = self._watches.get(wait.monitor_id)
        if watch is not None:
            watch.waits.discard(wait)
            if not watch.waits:
                del self._watches[wait.monitor_id]
        self.release()

    def look_soon(self, monitor_id: str) -> None:
        """Look at a monitor now rather than when it is due.

        :param monitor_id: the monitor's UUID.
        """
        watch = self._watches.get(monitor_id)
        if watch is not None:
            watch.due = 0.0
            watch.signature = None
            self._news.set()

    def watch(self, monitor_id: str) -> Watch | None:
        """Return what is known of a monitor that is waited for.

        :param monitor_id: the monitor's UUID.
        """
        return self._watches.get(monitor_id)

    async def _work(self) -> None:
        try:
            while True:
                await self._until_due()
                await self._round()
        finally:
            await self.errands.stop()
            with suppress(Exception):
                await self._connection.close()

    async def _until_due(self) -> None:
        while True:
            self._news.clear()
            soonest = min((watch.due for watch in self._watches.values()), default=float("inf"))
            # A service that asks for a pause gets it from waits that begin meanwhile too.
            nap = max(soonest, self._rest_until) - asyncio.get_running_loop().time()
            if nap <= 0:
                await asyncio.sleep(GATHER)
                return
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._news.wait(), min(nap, 3600.0))

    async def _round(self) -> None:
        now = asyncio.get_running_loop().time()
        due = [
            watch
            for watch in self._watches.values()
            if watch.due <= now + EARLY * watch.interval or watch.due <= now
        ]
        try:
            if len(due) > max(FEW, self._sweep_pages):
                due_looks = await self._sweep(due)
            else:
                due_looks = due
            await self._look_at(due_looks)
        except (AuthenticationError, ConfigurationError) as error:
            self._tell(Failure(str(error), "never"))
            self._rest(self._service.failed(error))
        except Exception as error:  # noqa: BLE001 - told to all waits, and tried again
            self._rest(self._service.failed(error))
        else:
            self._service.recovered()

    def _rest(self, seconds: float) -> None:
        self._rest_until = asyncio.get_running_loop().time() + seconds

    async def _sweep(self, due: list[Watch]) -> list[Watch]:
        """List all monitors and return those of `due` whose checks need a look."""
        still = {watch.monitor_id: watch for watch in due}
        moved: list[Watch] = []
        pages = MonitorPages()
        count = 0
        while pages.query is not None and still:
            page = await self._monitors_page(pages.query)
            count += 1
            for monitor in pages.take(page):
                watch = still.pop(monitor.id, None)
                if watch is None:
                    continue
                if watch.take_monitor(monitor):
                    moved.append(watch)
                else:
                    watch.looked_at = time.time()
                    self._next_look(watch)
        self._sweep_pages = max(count, 1)
        # What is not listed may be too new for the replica, or gone.
        return [*moved, *still.values()]

    async def _look_at(self, watches: list[Watch]) -> None:
        for start in range(0, len(watches), _AT_ONCE):
            await asyncio.gather(*(self._look(watch) for watch in watches[start : start + _AT_ONCE]))

    async def _look(self, watch: Watch) -> None:
        if not watch.waits:
            return
        try:
            if watch.asks_for_webhook:
                watch.take_monitor(
                    await self.errands.with_renewal(lambda hook: hook.get_monitor(watch.monitor_id))
                )
            checks = await self._checks(watch)
        except NotFoundError as error:
            self._missing(watch, error)
            return
        except (AuthenticationError, ConfigurationError):
            raise
        except WebDataError as error:
            if error.verdict != "never":
                raise
            self._fail(watch, f"monitor {watch.monitor_id}: {error}")
            return
        # Told before the looks, which may end the waits.
        self._service.recovered()
        for number, wait in enumerate(watch.take_checks(checks), 1):
            wait.mailbox.post(Look(checks))
            if number % _SLICE == 0:
                await asyncio.sleep(0)
        seen = {check.id for check in checks}
        for wait in list(watch.waits):
            if wait.check_id is not None and wait.check_id not in seen:
                self.errands.confirm(watch.monitor_id, wait.check_id, wait.mailbox)
        self._next_look(watch)

    async def _checks(self, watch: Watch) -> list[MonitorCheck]:
        """Return the monitor's checks, back to where the waits began."""
        since = [wait.after for wait in watch.waits if wait.check_id is None]
        oldest = None if not since or None in since else min(moment for moment in since if moment is not None)
        found: dict[str, MonitorCheck] = {}
        limit, offset = _FIRST_PAGE, 0
        for _ in range(_MOST_PAGES):
            page = await self._checks_page(watch.monitor_id, limit, offset)
            found.update((check.id, check) for check in page)
            ends = [end for check in page if (end := finished(check)) is not None]
            if len(page) < limit or oldest is None or (ends and min(ends) <= oldest):
                break
            offset += len(page)
            limit = PAGE_SIZE
        return list(found.values())

    async def _monitors_page(self, query: dict[str, int]) -> list[Monitor]:
        page: list[Monitor] = await self.errands.with_renewal(lambda hook: hook.list_monitors(**query))
        return page

    async def _checks_page(self, monitor_id: str, limit: int, offset: int) -> list[MonitorCheck]:
        page: list[MonitorCheck] = await self.errands.with_renewal(
            lambda hook: hook.list_monitor_checks(monitor_id, limit=limit, offset=offset)
        )
        return page

    def _next_look(self, watch: Watch) -> None:
        if watch.waits:
            watch.due = asyncio.get_running_loop().time() + watch.interval

    def _missing(self, watch: Watch, error: NotFoundError) -> None:
        now = asyncio.get_running_loop().time()
        if watch.missing_since is None:
            watch.missing_since = now
        elif now - watch.missing_since > GONE_AFTER:
            self._fail(
                watch,
                f"monitor {watch.monitor_id} is not there ({error}); it was deleted, or the id is wrong",
            )
            return
        watch.due = now + min(1.0 + (now - watch.missing_since), 8.0)

    def _fail(self, watch: Watch, text: str) -> None:
        for wait in watch.waits:
            wait.mailbox.post(Failure(text, "never"))
        self._next_look(watch)

    def _tell(self, item: Any) -> None:
        for watch in self._watches.values():
            for wait in watch.waits:
                wait.mailbox.post(item)
