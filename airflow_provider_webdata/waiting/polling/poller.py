"""The one poller of a connection in an event loop: each monitor and job is polled once, however many wait for it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import (
    AuthenticationError,
    ConfigurationError,
    NotFoundError,
    RateLimitError,
    TransportError,
    WebDataError,
)
from airflow_provider_webdata.component_metrics import count
from airflow_provider_webdata.waiting.backoff import LONGEST_PAUSE, Backoff
from airflow_provider_webdata.waiting.mailbox import Notice, WaitFailure
from airflow_provider_webdata.waiting.polling.lookups import Lookups
from airflow_provider_webdata.waiting.polling.monitor_sweep import MonitorSweep
from airflow_provider_webdata.waiting.shared_task import GATHER, SLICE, SharedTask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook
    from airflow_provider_webdata.waiting.polling.watch import Wait, Watch, WatchKey
    from airflow_provider_webdata.waiting.shared_connection import SharedConnection

EARLY = 0.1
"""Part of its interval by which a poll may come sooner, to be made together with others."""

MISSING_LIMIT = 30.0
"""Seconds for which a monitor or job may be missing before its waits fail: reads come from a replica."""

_BATCH = 4


class SharedPoller(SharedTask):
    """Polls the monitors and jobs that are waited for, and posts snapshots to the waits that they may end.

    A new wait is polled promptly. What the service refuses for good ends the waits; anything else is retried, ever
    more slowly, and shows in the waiting tasks' logs.

    :param connection: whose monitors and jobs are polled.
    """

    def __init__(self, connection: SharedConnection) -> None:
        super().__init__(f"the poller of connection {connection.conn_id!r}")
        self._connection = connection
        self.watches: dict[WatchKey, Watch] = {}
        self._callers = 0
        self._changed = asyncio.Event()
        self._paused_until = 0.0
        self._backoff = Backoff(f"service of connection {connection.conn_id!r}", self._broadcast)
        self._renew_lookups()

    @property
    def is_needed(self) -> bool:
        """Whether anybody waits."""
        return bool(self.watches) or self._callers > 0

    def subscribe(self, wait: Wait) -> None:
        """Begin to poll for a wait.

        :param wait: one that is not subscribed yet.
        """
        watch = self.watches.get(wait.key)
        if watch is None:
            watch = self.watches[wait.key] = wait.new_watch()
        watch.waits.add(wait)
        if self._backoff.notice is not None:
            wait.mailbox.post(self._backoff.notice)
        self.poll_soon(wait.key)
        self.need()

    def unsubscribe(self, wait: Wait) -> None:
        """Stop polling for a wait.

        :param wait: one that is subscribed.
        """
        watch = self.watches.get(wait.key)
        if watch is not None:
            watch.waits.discard(wait)
            if not watch.waits:
                del self.watches[wait.key]
        self.release()

    def poll_soon(self, key: WatchKey) -> None:
        """Poll something now rather than when it is due, and post the snapshot though nothing may have changed.

        :param key: what to poll.
        """
        watch = self.watches.get(key)
        if watch is not None:
            watch.due = 0.0
            watch.invalidate()
            self._changed.set()

    def watch(self, key: WatchKey) -> Watch | None:
        """Return what is known of something that is waited for.

        :param key: what it is.
        """
        return self.watches.get(key)

    async def call(self, request: Callable[[AsyncWebDataHook], Awaitable[Any]]) -> Any:
        """Call the service for something other than a poll; the connection is closed afterwards as after polls.

        :param request: makes the calls with the hook it is given.
        """
        self._callers += 1
        self.need()
        try:
            return await self.lookups.call(request)
        finally:
            self._callers -= 1
            self.release()

    async def _work(self) -> None:
        while True:
            await self._until_due()
            await self._round()

    def _renew_lookups(self) -> None:
        self.lookups = Lookups(self._connection)
        self._sweep = MonitorSweep(self.lookups, self._schedule)

    def _detach(self) -> Callable[[], Awaitable[None]]:
        lookups, hook = self.lookups, self._connection.take()
        self._renew_lookups()
        return partial(_closed, lookups, hook)

    async def _until_due(self) -> None:
        while True:
            self._changed.clear()
            soonest = min((watch.due for watch in self.watches.values()), default=float("inf"))
            # A pause that the service requested also applies to waits that begin meanwhile.
            nap = max(soonest, self._paused_until) - asyncio.get_running_loop().time()
            if nap <= 0:
                await asyncio.sleep(GATHER)
                return
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(nap, 3600.0))

    async def _round(self) -> None:
        now = asyncio.get_running_loop().time()
        due = [
            watch
            for watch in self.watches.values()
            if watch.due <= now + EARLY * watch.interval or watch.due <= now
        ]
        try:
            await self._poll_all(await self._sweep.filter(due))
        except (AuthenticationError, ConfigurationError) as error:
            self._broadcast(WaitFailure(str(error), "never"))
            self._pause(self._backoff.failed(error))
        except Exception as error:  # noqa: BLE001 - shown to all waits, and retried
            self._pause(self._backoff.failed(error))
        else:
            self._backoff.recovered()

    def _pause(self, seconds: float) -> None:
        self._paused_until = asyncio.get_running_loop().time() + seconds

    async def _poll_all(self, watches: list[Watch]) -> None:
        """Poll each; an error that only some of them meet delays no other."""
        failed: list[tuple[Watch, WebDataError]] = []
        for start in range(0, len(watches), _BATCH):
            batch = watches[start : start + _BATCH]
            for watch, error in zip(
                batch,
                await asyncio.gather(*(self._poll(watch) for watch in batch), return_exceptions=True),
                strict=True,
            ):
                if isinstance(error, BaseException):
                    if not isinstance(error, WebDataError) or isinstance(error, _CONNECTION_WIDE):
                        raise error
                    failed.append((watch, error))
        if failed and len(failed) == len(watches):
            raise failed[-1][1]
        for watch, error in failed:
            self._retry(watch, error)

    async def _poll(self, watch: Watch) -> None:
        if not watch.waits:
            return
        count("webdata.polls", conn_id=self._connection.conn_id, kind=watch.key[0])
        try:
            snapshots = await watch.poll(self.lookups)
        except NotFoundError as error:
            self._missing(watch, error)
            return
        except (AuthenticationError, ConfigurationError):
            raise
        except WebDataError as error:
            if error.verdict != "never":
                raise
            self._fail(watch, f"{watch.label}: {error}")
            return
        watch.missing_since = None
        watch.failures = 0
        # Its notice comes before the snapshots, which may end the waits.
        self._backoff.recovered()
        for number, (wait, snapshot) in enumerate(snapshots, 1):
            wait.mailbox.post(snapshot)
            if number % SLICE == 0:
                await asyncio.sleep(0)
        self._schedule(watch)

    def _schedule(self, watch: Watch) -> None:
        if watch.waits:
            watch.due = asyncio.get_running_loop().time() + watch.pause

    def _missing(self, watch: Watch, error: NotFoundError) -> None:
        now = asyncio.get_running_loop().time()
        if watch.missing_since is None:
            watch.missing_since = now
        elif now - watch.missing_since > MISSING_LIMIT:
            self._fail(watch, watch.not_found(str(error)))
            return
        watch.due = now + min(1.0 + (now - watch.missing_since), 8.0)

    def _retry(self, watch: Watch, error: WebDataError) -> None:
        watch.failures += 1
        if watch.failures == 2:
            for wait in watch.waits:
                wait.mailbox.post(
                    Notice(f"{watch.label}: {error}; retrying until it works or the wait times out")
                )
        watch.due = asyncio.get_running_loop().time() + min(2.0**watch.failures / 2, LONGEST_PAUSE)

    def _fail(self, watch: Watch, text: str) -> None:
        for wait in watch.waits:
            wait.mailbox.post(WaitFailure(text, "never"))
        self._schedule(watch)

    def _broadcast(self, item: Any) -> None:
        for watch in self.watches.values():
            for wait in watch.waits:
                wait.mailbox.post(item)


async def _closed(lookups: Lookups, hook: AsyncWebDataHook | None) -> None:
    await lookups.stop()
    if hook is not None:
        with suppress(Exception):
            await hook.close()


_CONNECTION_WIDE = (AuthenticationError, ConfigurationError, RateLimitError, TransportError)
"""Errors of one poll that all others would meet too."""
