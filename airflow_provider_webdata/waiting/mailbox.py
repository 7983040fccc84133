# SPDX-License-Identifier: Apache-2.0
"""Mailboxes: queues of the sources' findings for one wait, with at most one future each."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.api.errors import Verdict


@dataclass(frozen=True)
class Notice:
    """A line for the log of the waiting task."""

    text: str
    is_warning: bool = True

    def log_to(self, log: Any) -> None:
        """Write the notice to the waiting task's log."""
        (log.warning if self.is_warning else log.info)("%s", self.text)


class WaitFailedError(Exception):
    """The wait cannot continue.

    :param is_missing: whether the service does not know what was waited for.
    """

    def __init__(self, text: str, verdict: Verdict = "unknown", *, is_missing: bool = False) -> None:
        super().__init__(text)
        self.verdict: Verdict = verdict
        self.is_missing = is_missing


class ExpiredError(Exception):
    """The deadline of the wait has come."""


class Mailbox:
    """Findings for one wait, in order. Not thread-safe: it belongs to one event loop.

    :param on_exit: called at the end of the block that the mailbox opens as a context manager.
    """

    __slots__ = ("_items", "_on_exit", "_waiter")

    def __init__(self, on_exit: Callable[[Mailbox], None] | None = None) -> None:
        self._on_exit = on_exit
        # Created on the first item: of ten thousand waits, most have an empty mailbox.
        self._items: deque[Any] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def post(self, item: Any) -> None:
        """Add an item, and wake the wait. An exception is raised when the wait reads it."""
        if self._items is None:
            self._items = deque()
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def pop(self) -> Any:
        """Return the next item, or None.

        :raises Exception: the item, if it is an exception.
        """
        if not self._items:
            self._items = None
            return None
        item = self._items.popleft()
        if isinstance(item, Exception):
            raise item
        return item

    def arrival(self) -> asyncio.Future[None]:
        """Return a future that the next item completes. Awaiting it directly saves a coroutine."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    async def get(self) -> Any:
        """Wait for the next item and return it.

        :raises Exception: the item, if it is an exception.
        """
        while (item := self.pop()) is None:
            await self.arrival()
        return item

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *_: object) -> None:
        if self._on_exit is not None:
            self._on_exit(self)
