"""Publishes stored deliveries, and wakes the readers that wait for them: one thread for the whole process.

A delivery is published once it has a position in the feed. What this process stored is published at once. What other
processes stored is polled for, only while a reader waits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .errors import StoreUnavailableError, TooManyReadersError

if TYPE_CHECKING:
    from .store import DeliveryStore

log = logging.getLogger(__name__)

POLL_INTERVAL = 0.06
"""Seconds between two polls for what other processes stored: each is one statement, and for all readers."""
RETRY_INTERVAL = 0.5
"""Seconds until what failed is tried again."""
IDLE_INTERVAL = 1.0
"""Seconds after which deliveries are published that nobody waits for."""
MOST_READERS = 500
"""Most readers that wait at once in this process."""


@dataclass(eq=False)
class Waiter:
    """A reader that waits for the next delivery of a connection.

    :param cursor: only deliveries of the connection beyond it wake the reader.
    """

    conn_id: str
    cursor: int
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Publisher:
    """Publishes deliveries in a thread that runs from the first need of it until `close`.

    :ivar closed: no reader is woken any more.
    """

    def __init__(self, store: DeliveryStore) -> None:
        self._store = store
        self._changed = threading.Condition()
        self.waiters: set[Waiter] = set()
        self.closed = False
        self._requested = False
        self._next_poll = 0.0
        self._thread: threading.Thread | None = None

    def publish_soon(self) -> None:
        """Publish what was just committed; returns at once. May be called from any thread."""
        with self._changed:
            if self._requested and self._thread is not None:
                # The thread has yet to serve an earlier request: waking it again would only cost time.
                return
            self._requested = True
            self._start()
            self._changed.notify()

    def add(self, waiter: Waiter) -> None:
        """Wake a reader when there is something for it, until it is removed.

        :raises TooManyReadersError: no further reader can wait.
        """
        with self._changed:
            if len(self.waiters) >= MOST_READERS:
                raise TooManyReadersError("too many readers wait for deliveries")
            self.waiters.add(waiter)
            self._start()
            self._changed.notify()

    def remove(self, waiter: Waiter) -> None:
        """Forget a reader."""
        with self._changed:
            self.waiters.discard(waiter)

    def close(self) -> None:
        """End the thread, and wake every reader: later ones are answered without waiting."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            waiters = list(self.waiters)
        for waiter in waiters:
            _wake(waiter)

    def _start(self) -> None:
        if self._thread is None and not self.closed:
            # A daemon: a hanging database must not keep the process from ending.
            thread = threading.Thread(target=self._work, name="webdata-inbox-publisher", daemon=True)
            thread.start()
            self._thread = thread

    def _work(self) -> None:
        failing = False
        while self._wait_for_work():
            failure = ""
            try:
                self._publish()
            except StoreUnavailableError as error:
                failure = str(error)
            except Exception as error:
                # The thread must live on: readers wait for it.
                log.debug("Deliveries cannot be published", exc_info=True)
                failure = type(error).__name__
            if failure:
                if not failing:
                    log.warning("Deliveries cannot be published now: %s", failure)
                with self._changed:
                    self._requested = True
                    self._changed.wait_for(lambda: self.closed, RETRY_INTERVAL)
            elif failing:
                log.info("Deliveries are published again")
            failing = bool(failure)

    def _wait_for_work(self) -> bool:
        """Wait until there are deliveries to publish or to poll for. Return False when the thread must end."""
        with self._changed:
            while not (self.closed or self._requested):
                pause = self._next_poll - time.monotonic() if self.waiters else None
                if pause is not None and pause <= 0:
                    break
                self._changed.wait(pause)
            if not self.waiters:
                # Nobody is in a hurry: one transaction serves many commits.
                self._changed.wait_for(lambda: self.closed or bool(self.waiters), IDLE_INTERVAL)
            self._requested = False
            self._next_poll = time.monotonic() + POLL_INTERVAL
            return not self.closed

    def _publish(self) -> None:
        with self._changed:
            since = min((waiter.cursor for waiter in self.waiters), default=None)
            conn_ids = {waiter.conn_id for waiter in self.waiters}
        if since is None:
            self._store.publish()
            return
        if not self._store.has_news(since):
            return
        end, newest = self._store.changes(since, conn_ids)
        with self._changed:
            waiters = list(self.waiters)
        for waiter in waiters:
            if waiter.cursor < since or waiter.conn_id not in conn_ids:
                # It was added during the query, which does not cover it.
                self.publish_soon()
            elif newest.get(waiter.conn_id, 0) > waiter.cursor:
                _wake(waiter)
            else:
                waiter.cursor = max(waiter.cursor, end)


def _wake(waiter: Waiter) -> None:
    try:
        waiter.loop.call_soon_threadsafe(waiter.woken.set)
    except RuntimeError:
        log.debug("A reader's event loop was closed while it waited")
