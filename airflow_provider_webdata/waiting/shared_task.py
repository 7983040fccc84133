"""A background task that runs while somebody needs it, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.waiting.mailbox import WaitFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

log = logging.getLogger(__name__)

LINGER = 5.0
"""Seconds for which a task goes on when nobody needs it: often the next wait begins at once."""

GATHER = 0.05
"""Seconds for which a request waits for others that begin at the same time and can share it."""

SLICE = 200
"""Items posted in one go, before other tasks of the event loop have their turn."""


def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Start a task that belongs to no trigger.

    It gets an empty context: with a copy of the caller's, all that it logs would go into that one task's log.

    :param work: what to run.
    :param name: of the task.
    """
    loop = asyncio.get_running_loop()
    task: asyncio.Task[None] = contextvars.Context().run(lambda: loop.create_task(work, name=name))
    return task


class SharedTask(ABC):
    """Runs `_work` from the first `need()` until it is no longer needed (`is_needed`).

    Each run owns its resources: they are closed after that run, while the next one may have begun already.

    :param name: of the task.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._end: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @property
    @abstractmethod
    def is_needed(self) -> bool:
        """Whether somebody waits."""

    @abstractmethod
    async def _work(self) -> None:
        """Work until cancelled."""

    @abstractmethod
    def _detach(self) -> Callable[[], Awaitable[None]]:
        """Forget at once what the run uses, so that the next gets its own, and return what closes it."""

    @abstractmethod
    def _broadcast(self, item: Any) -> None:
        """Post an item to every wait."""

    def need(self) -> None:
        """Start the task, unless it runs."""
        self._go_on()
        if self._task is not None and self._task.done():
            self._stop()
        if self._task is None:
            self._task = spawn(self._guarded(), self._name)

    def release(self) -> None:
        """Let the task end after `LINGER` if it is no longer needed."""
        if not self.is_needed and self._end is None and self._task is not None:
            self._end = asyncio.get_running_loop().call_later(LINGER, self._stop)

    async def stop(self) -> None:
        """End the task and wait for it."""
        self._stop()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _go_on(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def _stop(self) -> None:
        self._go_on()
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        closing = spawn(self._close(task, self._detach()), f"{self._name}, closing")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self, task: asyncio.Task[None], close: Callable[[], Awaitable[None]]) -> None:
        await asyncio.gather(task, return_exceptions=True)
        await close()

    async def _guarded(self) -> None:
        me = asyncio.current_task()
        try:
            await self._work()
        except asyncio.CancelledError:
            # Stopped because it is no longer needed, or together with the event loop.
            if self._task is me:
                self._broadcast(WaitFailure(f"{self._name} was ended while it was needed"))
                await self._detach()()
            raise
        except Exception as error:
            log.exception("%s ended unexpectedly", self._name)
            self._broadcast(WaitFailure(f"{self._name} ended unexpectedly: {type(error).__name__}: {error}"))
