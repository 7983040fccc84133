# SPDX-License-Identifier: Apache-2.0
"""The connection of a hub: its hook, and the background tasks that use it."""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import RateLimitError, WebDataError
from airflow_provider_webdata.common.coded_errors import CodedError, brief, traceback_of
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.hooks.once import Once
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from airflow_provider_webdata.states.answers import is_refusal
from airflow_provider_webdata.waiting.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.waiting.mailbox import Notice

log = logger(__name__)

LOOKUP_SECONDS = 10.0
"""Maximum time of a lookup of a connection that a wait has read before."""

COMPARE_SECONDS = 10.0
"""Minimum seconds between two lookups for failed calls."""

GATHER = 0.05
"""Seconds that a request waits for concurrent requests that can share it."""

SLICE = 200
"""Number of items to post to waits before yielding to other tasks of the event loop."""


class Connection:
    """The hook of one connection in one event loop.

    It is shared, because lookups of the connection by each trigger would queue up at the triggerer's supervisor.

    :param count: counts a metric, with tags.
    :param on_failure: called with the cause if a task of `run` ends early.
    :param notify: receives a notice at the start and end of an outage of Airflow's connections.
    :param settings: settings of the connection, if already read.
    """

    def __init__(
        self,
        conn_id: str,
        count: Callable[..., None],
        on_failure: Callable[[str], None],
        notify: Callable[[Notice], None],
        settings: ConnectionSettings | None = None,
    ) -> None:
        self.conn_id = conn_id
        self._count = count
        self._on_failure = on_failure
        self._given = settings
        self._hook = Once(self._connect)
        self._reading: asyncio.Task[ConnectionSettings] | None = None
        self.backoff = Backoff(f"connection {conn_id!r}", notify)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False
        self._compare_at = 0.0
        self._pause = 0.0

    async def hook(self) -> WebDataAsyncHook:
        """Return the hook, after reading its connection.

        :raises ConfigurationError: the connection is invalid.
        :raises ConnectionMissingError: the connection does not exist.
        """
        return await self._hook.get()

    async def settings(self) -> ConnectionSettings:
        """Return the connection's settings."""
        return await (await self.hook()).get_settings()

    @property
    def is_read(self) -> bool:
        """Whether `settings` returns without a lookup of the connection."""
        return self._given is not None or self._hook.made is not None

    def reading(self) -> asyncio.Task[ConnectionSettings]:
        """Return a task that reads the connection's settings, and repeats failed lookups. Concurrent callers share it.

        It fails if the connection is missing or invalid; the next task then begins with a pause.
        """
        if self._reading is None or self._reading.done():
            self._reading = self.spawn(self._read(), f"the lookup of connection {self.conn_id!r}")
        return self._reading

    async def _read(self) -> ConnectionSettings:
        while True:
            await asyncio.sleep(self._pause)
            try:
                settings = await self.settings()
            except CodedError as error:
                self._pause = self.backoff.failed(error, is_silent=True)
                raise
            except Exception as error:  # noqa: BLE001 - a secrets backend raises any error
                self._pause = self.backoff.failed(error)
            else:
                self._pause = 0.0
                self.backoff.recovered()
                return settings

    async def renewed(self, used: WebDataAsyncHook, error: Exception) -> WebDataAsyncHook | None:
        """Return a hook of the connection as it is now; None if it is unchanged or cannot be read.

        :param error: of a call. After a refusal, the connection is read at each call, else every `COMPARE_SECONDS`.
        """
        if self._hook.made is not used:
            return await self.hook()
        now = asyncio.get_running_loop().time()
        if now < self._compare_at and not is_refusal(error):
            return None
        # During an outage, each poll fails.
        self._compare_at = now + COMPARE_SECONDS
        current = WebDataAsyncHook(self.conn_id)
        try:
            read = await asyncio.wait_for(current.get_settings(), LOOKUP_SECONDS)
            if read == await used.get_settings():
                return None
        except Exception as failure:  # noqa: BLE001 - the caller raises the call's own error
            log.debug("Failed to read connection %r again: %s", self.conn_id, brief(failure))
            return None
        # Another call may have read it meanwhile.
        if self._hook.made is used:
            self._hook.made = current
            await used.close()
        return await self.hook()

    async def call(self, request: Callable[[WebDataAsyncHook], Awaitable[Any]]) -> Any:
        """Call the service. Retry once if the call fails and the connection has changed."""
        hook = await self.hook()
        try:
            return await request(hook)
        except WebDataError as error:
            if isinstance(error, RateLimitError):
                raise
            # The service may have moved: a former address does not respond, or does not know new jobs.
            if (renewed := await self.renewed(hook, error)) is None:
                raise
            return await request(renewed)

    def count_poll(self, kind: str) -> None:
        """Count a poll of a `monitor` or of a kind of job."""
        count = self._count
        count("webdata.polls", conn_id=self.conn_id, kind=kind)

    async def _connect(self) -> WebDataAsyncHook:
        if (given := self._given) is not None:
            self._given = None
            return WebDataAsyncHook.of(given)
        hook = WebDataAsyncHook(self.conn_id)
        await hook.get_settings()
        return hook

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start a background task that is independent of any wait; `close` cancels it.

        Its context is empty: with a copy of the caller's context, its log lines would go to one Airflow task's log.
        """
        task = detached(work, name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Start a task that must not end before `close`."""
        self.spawn(work, name).add_done_callback(self._ended, context=contextvars.Context())

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._is_closed:
            return
        cause = f"{task.get_name()} was canceled while it was needed"
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s ended unexpectedly%s", task.get_name(), traceback_of(error))
            cause = f"{task.get_name()} ended unexpectedly: {type(error).__name__}: {brief(error)}"
        self._on_failure(cause)

    async def close(self) -> None:
        """Cancel the tasks, and close the hook."""
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if (hook := self._hook.reset()) is not None:
            with suppress(Exception):
                await hook.close()


def detached(work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
    """Start a task with an empty context."""
    loop = asyncio.get_running_loop()
    task: asyncio.Task[Any] = contextvars.Context().run(lambda: loop.create_task(work, name=name))
    return task
