"""Deadlines by the wall clock, all of one event loop on one timer."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from airflow_provider_webdata.waiting.mailbox import EXPIRED

if TYPE_CHECKING:
    from airflow_provider_webdata.waiting.mailbox import Mailbox

LONGEST_NAP = 10.0
"""Seconds after which the clock is read again: it may be set, or the machine may have slept."""


class Deadlines:
    """Posts `EXPIRED` to every mailbox whose time has come.

    The entries are not sorted: they are gone through when the soonest of them is due, which is rare, and none is
    kept longer than its wait.
    """

    def __init__(self) -> None:
        self._entries: dict[Mailbox, float] = {}
        self._soonest = float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def add(self, mailbox: Mailbox, when: float) -> None:
        """Have `EXPIRED` posted at a moment.

        :param mailbox: of the wait.
        :param when: seconds since the epoch.
        """
        self._entries[mailbox] = when
        if when < self._soonest:
            self._soonest = when
            self._set_timer()

    def remove(self, mailbox: Mailbox) -> None:
        """Remove a mailbox, if it is there.

        :param mailbox: of the wait.
        """
        self._entries.pop(mailbox, None)
        if not self._entries:
            self._soonest = float("inf")
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._entries:
            nap = min(max(self._soonest - time.time(), 0.0), LONGEST_NAP)
            self._timer = asyncio.get_running_loop().call_later(nap, self._tick)

    def _tick(self) -> None:
        now = time.time()
        if now >= self._soonest:
            for mailbox in [mailbox for mailbox, when in self._entries.items() if when <= now]:
                del self._entries[mailbox]
                mailbox.post(EXPIRED)
            self._soonest = min(self._entries.values(), default=float("inf"))
        self._set_timer()
