"""Mailboxes: what sources have found for one wait, with at most one future for each."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_webdata.api.errors import Verdict


@dataclass(frozen=True)
class Notice:
    """A line for the log of the waiting task.

    :param text: what happened.
    :param is_warning: whether it is logged as a warning.
    """

    text: str
    is_warning: bool = True

    def log_to(self, log: Any) -> None:
        """Write it to the waiting task's log."""
        (log.warning if self.is_warning else log.info)(self.text)


class WaitFailedError(Exception):
    """The wait cannot continue.

    :param text: the cause.
    :param verdict: what a later attempt can expect.
    """

    def __init__(self, text: str, verdict: Verdict = "unknown") -> None:
        super().__init__(text)
        self.text = text
        self.verdict: Verdict = verdict


class ExpiredError(Exception):
    """The deadline of the wait has come."""


class Mailbox:
    """What arrives for one wait, in order. Not thread-safe: it belongs to one event loop."""

    __slots__ = ("_items", "_waiter")

    def __init__(self) -> None:
        # Created when something arrives: most of ten thousand waits have nothing in them.
        self._items: deque[Any] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def post(self, item: Any) -> None:
        """Add an item, and wake the wait. An exception is raised where the wait reads it."""
        if self._items is None:
            self._items = deque()
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> Any:
        """Return the next item, waiting until there is one.

        :raises Exception: the item, if it is one.
        """
        while not self._items:
            self._items = None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        item = self._items.popleft()
        if isinstance(item, Exception):
            raise item
        return item
