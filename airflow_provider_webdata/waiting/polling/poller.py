"""The one poller of a connection in an event loop: it looks at each thing once, however many wait for it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import (
    AuthenticationError,
    ConfigurationError,
    NotFoundError,
    RateLimitError,
    TransportError,
    WebDataError,
)
from airflow_provider_webdata.waiting.backoff import LONGEST_PAUSE, Backoff
from airflow_provider_webdata.waiting.mailbox import Failure, Notice
from airflow_provider_webdata.waiting.polling.lookups import Lookups
from airflow_provider_webdata.waiting.polling.monitor_sweep import MonitorSweep
from airflow_provider_webdata.waiting.shared_task import SharedTask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook
    from airflow_provider_webdata.waiting.polling.watch import Place, Wait, Watch
    from airflow_provider_webdata.waiting.shared_connection import SharedConnection

GATHER = 0.05
"""Seconds for which a look waits for others that begin at the same time."""

EARLY = 0.1
"""Part of its interval by which a look may come sooner, to be made together with others."""

GONE_AFTER = 30.0
"""Seconds for which something may be missing before it counts as gone: reads come from a replica."""

_AT_ONCE = 4
_SLICE = 200


class SharedPoller(SharedTask):
    """Looks at the monitors and jobs that are waited for, and tells each wait what may end it.

    A new wait is looked at promptly. What the service refuses for good ends the waits; all else is tried again,
    ever more slowly, and told to them.

    :param connection: whose monitors and jobs are looked at.
    """

    def __init__(self, connection: SharedConnection) -> None:
        super().__init__(f"the poller of connection {connection.conn_id!r}")
        self._connection = connection
        self._watches: dict[Place, Watch] = {}
        self._callers = 0
        self._news = asyncio.Event()
        self._rest_until = 0.0
        self._service = Backoff(f"service of connection {connection.conn_id!r}", self._tell)
        self.lookups = Lookups(connection)
        self._sweep = MonitorSweep(self.lookups, self._next_look)

    @property
    def is_needed(self) -> bool:
        """Whether anybody waits."""
        return bool(self._watches) or self._callers > 0

    def subscribe(self, wait: Wait) -> None:
        """Begin to look for a wait.

        :param wait: one that was not looked for before.
        """
        watch = self._watches.get(wait.place)
        if watch is None:
            watch = self._watches[wait.place] = wait.new_watch()
        watch.waits.add(wait)
        watch.due = 0.0
        watch.stir()
        if self._service.notice is not None:
            wait.mailbox.post(self._service.notice)
        self._news.set()
        self.need()

    def unsubscribe(self, wait: Wait) -> None:
        """Stop looking for a wait.

        :param wait: one that was given to `subscribe`.
        """
        watch = self._watches.get(wait.place)
        if watch is not None:
            watch.waits.discard(wait)
            if not watch.waits:
                del self._watches[wait.place]
        self.release()

    def look_soon(self, place: Place) -> None:
        """Look at something now rather than when it is due.

        :param place: what to look at.
        """
        watch = self._watches.get(place)
        if watch is not None:
            watch.due = 0.0
            watch.stir()
            self._news.set()

    def watch(self, place: Place) -> Watch | None:
        """Return what is known of something that is waited for.

        :param place: what it is.
        """
        return self._watches.get(place)

    async def call(self, question: Callable[[AsyncWebDataHook], Awaitable[Any]]) -> Any:
        """Ask the service something that is no look; the connection is closed as it is after looks.

        :param question: makes the calls with the hook it is given.
        """
        self._callers += 1
        self.need()
        try:
            return await self.lookups.with_renewal(question)
        finally:
            self._callers -= 1
            self.release()

    async def _work(self) -> None:
        try:
            while True:
                await self._until_due()
                await self._round()
        finally:
            await self.lookups.stop()
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
            await self._look_at(await self._sweep.sift(due))
        except (AuthenticationError, ConfigurationError) as error:
            self._tell(Failure(str(error), "never"))
            self._rest(self._service.failed(error))
        except Exception as error:  # noqa: BLE001 - told to all waits, and tried again
            self._rest(self._service.failed(error))
        else:
            self._service.recovered()

    def _rest(self, seconds: float) -> None:
        self._rest_until = asyncio.get_running_loop().time() + seconds

    async def _look_at(self, watches: list[Watch]) -> None:
        """Look at each; what only some of them meet with is their own trouble, and keeps nobody else waiting."""
        stumbled: list[tuple[Watch, WebDataError]] = []
        for start in range(0, len(watches), _AT_ONCE):
            batch = watches[start : start + _AT_ONCE]
            for watch, error in zip(
                batch,
                await asyncio.gather(*(self._look(watch) for watch in batch), return_exceptions=True),
                strict=True,
            ):
                if isinstance(error, BaseException):
                    if not isinstance(error, WebDataError) or isinstance(error, _EVERYBODYS):
                        raise error
                    stumbled.append((watch, error))
        if stumbled and len(stumbled) == len(watches):
            raise stumbled[-1][1]
        for watch, error in stumbled:
            self._stumble(watch, error)

    async def _look(self, watch: Watch) -> None:
        if not watch.waits:
            return
        try:
            news = await watch.look(self.lookups)
        except NotFoundError as error:
            self._missing(watch, error)
            return
        except (AuthenticationError, ConfigurationError):
            raise
        except WebDataError as error:
            if error.verdict != "never":
                raise
            self._fail(watch, f"{watch.what}: {error}")
            return
        watch.missing_since = None
        watch.stumbles = 0
        # Told before the looks, which may end the waits.
        self._service.recovered()
        for number, (wait, item) in enumerate(news, 1):
            wait.mailbox.post(item)
            if number % _SLICE == 0:
                await asyncio.sleep(0)
        self._next_look(watch)

    def _next_look(self, watch: Watch) -> None:
        if watch.waits:
            watch.due = asyncio.get_running_loop().time() + watch.pause

    def _missing(self, watch: Watch, error: NotFoundError) -> None:
        now = asyncio.get_running_loop().time()
        if watch.missing_since is None:
            watch.missing_since = now
        elif now - watch.missing_since > GONE_AFTER:
            self._fail(watch, watch.gone(str(error)))
            return
        watch.due = now + min(1.0 + (now - watch.missing_since), 8.0)

    def _stumble(self, watch: Watch, error: WebDataError) -> None:
        watch.stumbles += 1
        if watch.stumbles == 2:
            for wait in watch.waits:
                wait.mailbox.post(
                    Notice(f"{watch.what}: {error}; it is tried again until it works or time is up")
                )
        watch.due = asyncio.get_running_loop().time() + min(2.0**watch.stumbles / 2, LONGEST_PAUSE)

    def _fail(self, watch: Watch, text: str) -> None:
        for wait in watch.waits:
            wait.mailbox.post(Failure(text, "never"))
        self._next_look(watch)

    def _tell(self, item: Any) -> None:
        for watch in self._watches.values():
            for wait in watch.waits:
                wait.mailbox.post(item)


_EVERYBODYS = (AuthenticationError, ConfigurationError, RateLimitError, TransportError)
"""What one look meets with and all others would too."""
