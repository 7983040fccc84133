"""Mailboxes: shared tasks post to a waiting trigger, with at most one future for each wait."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_webdata.api.errors import Verdict


@dataclass(frozen=True)
class Notice:
    """Something for the log of the waiting task.

    :param text: what happened.
    :param is_warning: whether it is logged as a warning.
    """

    text: str
    is_warning: bool = True

    def log_to(self, log: Any) -> None:
        """Write it to a log.

        :param log: of the waiting task.
        """
        (log.warning if self.is_warning else log.info)(self.text)


@dataclass(frozen=True)
class WaitFailure:
    """The wait cannot go on.

    :param text: why.
    :param verdict: what a later attempt can expect.
    """

    text: str
    verdict: Verdict = "unknown"


class Expired:
    """The wait's deadline has come."""

    __slots__ = ()


EXPIRED = Expired()


class Mailbox:
    """What arrives for one waiting trigger, in order. Not thread-safe: it belongs to one event loop.

    `closed` is set when the wait is over and nothing is read any more.
    """

    __slots__ = ("_items", "_waiter", "closed")

    def __init__(self) -> None:
        self.closed = False
        # Made when something arrives: most of ten thousand waits have nothing in them.
        self._items: deque[Any] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def post(self, item: Any) -> None:
        """Add an item, and wake the trigger if it waits.

        :param item: what the trigger is to read.
        """
        if self._items is None:
            self._items = deque()
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> Any:
        """Return the next item, waiting until there is one."""
        while not self._items:
            self._items = None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._items.popleft()
