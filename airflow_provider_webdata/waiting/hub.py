"""All that the waits of one connection share in one event loop."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from airflow_provider_webdata.waiting.deadlines import Deadlines
from airflow_provider_webdata.waiting.inbox.delivery_reader import DeliveryReader
from airflow_provider_webdata.waiting.mailbox import Mailbox
from airflow_provider_webdata.waiting.polling.poller import SharedPoller
from airflow_provider_webdata.waiting.shared_connection import SharedConnection
from airflow_provider_webdata.waiting.shared_task import LINGER

if TYPE_CHECKING:
    from collections.abc import Iterator

_HUBS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Hub]] = WeakKeyDictionary()


class Hub:
    """The inbox reader, the poller and the deadlines of one connection.

    :param conn_id: id of the connection.
    """

    def __init__(self, conn_id: str) -> None:
        self.conn_id = conn_id
        self.connection = SharedConnection(conn_id)
        self.reader = DeliveryReader(self.connection)
        self.poller = SharedPoller(self.connection)
        self._deadlines = Deadlines()
        self._users = 0
        self._end: asyncio.TimerHandle | None = None

    @classmethod
    def of(cls, conn_id: str) -> Hub:
        """Return the hub of a connection in the running event loop.

        :param conn_id: id of the connection.
        """
        hubs = _HUBS.setdefault(asyncio.get_running_loop(), {})
        return hubs.get(conn_id) or hubs.setdefault(conn_id, cls(conn_id))

    @contextmanager
    def waiting(self, deadline: float | None = None) -> Iterator[Mailbox]:
        """Open a mailbox for the time of one wait.

        :param deadline: seconds since the epoch at which the mailbox gets `EXPIRED`; None: never.
        """
        mailbox = Mailbox()
        self._users += 1
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if deadline is not None:
            self._deadlines.add(mailbox, deadline)
        try:
            yield mailbox
        finally:
            mailbox.closed = True
            self._deadlines.remove(mailbox)
            self._users -= 1
            if not self._users:
                self._end = asyncio.get_running_loop().call_later(2 * LINGER, self._leave)

    def _leave(self) -> None:
        # The next wait reads the connection again.
        hubs = _HUBS.get(asyncio.get_running_loop(), {})
        if not self._users and hubs.get(self.conn_id) is self:
            del hubs[self.conn_id]
