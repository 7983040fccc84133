# SPDX-License-Identifier: Apache-2.0
"""The sources and deadlines that the waits of one connection share in one event loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow_provider_webdata.common import component_metrics
from airflow_provider_webdata.waiting.connection import Connection, detached
from airflow_provider_webdata.waiting.inbox_source import InboxSource
from airflow_provider_webdata.waiting.mailbox import ExpiredError, Mailbox, WaitFailedError
from airflow_provider_webdata.waiting.poll_source import PollSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.waiting.mailbox import Notice

LINGER = 5.0
"""Seconds for which an idle hub stays open, because the next wait often begins immediately."""

MAX_NAP = 10.0
"""Maximum seconds between reads of the clock, which may be adjusted, or jump after the machine was suspended."""

_NEVER = float("inf")

_HUBS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Hub]] = WeakKeyDictionary()
_CLOSING: set[asyncio.Task[Any]] = set()


class Hub:
    """The sources and deadlines of one connection, from its first wait to its last.

    :param settings: settings of the connection, if already read, as in a worker, whose waits poll.
    :ivar listens: whether its waits subscribe to deliveries.
    """

    def __init__(
        self,
        conn_id: str,
        settings: ConnectionSettings | None = None,
        count: Callable[..., None] = component_metrics.count,
    ) -> None:
        self.connection = Connection(conn_id, count, self._fail, self._notify, settings)
        self.listens = settings is None
        self.polls = PollSource(self.connection)
        self.inbox = InboxSource(self.connection, self.polls.adapt)
        self._waits: dict[Mailbox, float] = {}
        self._on_exit = self._remove
        self._soonest = _NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None

    @classmethod
    def of(cls, conn_id: str) -> Hub:
        """Return the hub of a connection in the running event loop. Open a mailbox before the next `await`."""
        hubs = _HUBS.setdefault(asyncio.get_running_loop(), {})
        return hubs.get(conn_id) or hubs.setdefault(conn_id, cls(conn_id))

    def mailbox(self, deadline: float | None = None) -> Mailbox:
        """Return a mailbox for one wait, for use as a context manager.

        :param deadline: seconds since the epoch at which it receives an `ExpiredError`; None: never.
        """
        mailbox = Mailbox(self._on_exit)
        self._waits[mailbox] = when = _NEVER if deadline is None else deadline
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if when < self._soonest:
            self._set_timer(when)
        return mailbox

    def _remove(self, mailbox: Mailbox) -> None:
        del self._waits[mailbox]
        if not self._waits:
            self._set_timer(_NEVER)
            self._end = asyncio.get_running_loop().call_later(LINGER, self._leave)

    async def close(self) -> None:
        """Stop the sources and close their connections. A hub from `of` closes automatically after its last wait."""
        for timer in (self._timer, self._end):
            if timer is not None:
                timer.cancel()
        await self.connection.close()
        await self.inbox.close()

    def _leave(self) -> None:
        # The next wait creates another hub, which reads the connection again.
        hubs, conn_id = _HUBS.get(asyncio.get_running_loop(), {}), self.connection.conn_id
        if hubs.get(conn_id) is self:
            del hubs[conn_id]
        closing = detached(self.close(), f"the end of the waits of connection {conn_id!r}")
        _CLOSING.add(closing)
        closing.add_done_callback(_CLOSING.discard)

    def _notify(self, notice: Notice) -> None:
        for mailbox in self._waits:
            mailbox.post(notice)

    def _fail(self, cause: str) -> None:
        for mailbox in self._waits:
            mailbox.post(WaitFailedError(cause))
        self._leave()

    # Wall-clock deadlines on one timer. They are not sorted: all are checked when the soonest is reached.

    def _set_timer(self, soonest: float) -> None:
        self._soonest = soonest
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if soonest < _NEVER:
            nap = min(max(soonest - time.time(), 0.0), MAX_NAP)
            self._timer = asyncio.get_running_loop().call_later(nap, self._tick)

    def _tick(self) -> None:
        now = time.time()
        for mailbox, when in self._waits.items() if now >= self._soonest else ():
            if when <= now:
                self._waits[mailbox] = _NEVER
                mailbox.post(ExpiredError())
        self._set_timer(min(self._waits.values(), default=_NEVER) if now >= self._soonest else self._soonest)
