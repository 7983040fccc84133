"""Publishes stored deliveries and wakes waiting readers, in one thread per process.

A delivery is published once it has a position in the feed. Deliveries that this process stored are published
immediately. Those of other processes are polled for, only while a reader waits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError

from .errors import TooManyReadersError

if TYPE_CHECKING:
    from .store import DeliveryStore

log = logging.getLogger(__name__)

POLL_INTERVAL = 0.06
"""Poll interval in seconds for deliveries of other processes: one statement for all readers."""
RETRY_INTERVAL = 0.5
"""Seconds until a failure is retried."""
IDLE_INTERVAL = 1.0
"""Seconds after which deliveries are published if no reader waits for them."""
MOST_READERS = 500
"""Maximum number of waiting readers in this process."""


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
    """Publishes deliveries in a thread that starts on demand and runs until `close`.

    :ivar closed: True once no more readers are woken.
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
        """Publish recent commits in the background; thread-safe."""
        with self._changed:
            if self._requested and self._thread is not None:
                # The thread has not served an earlier request yet: another wakeup would only cost time.
                return
            self._requested = True
            self._start()
            self._changed.notify()

    def add(self, waiter: Waiter) -> None:
        """Wake a reader when a delivery matches, until the reader is removed.

        :raises TooManyReadersError: the limit of waiting readers is reached.
        """
        with self._changed:
            if len(self.waiters) >= MOST_READERS:
                raise TooManyReadersError("too many readers are waiting for deliveries")
            self.waiters.add(waiter)
            self._start()
            self._changed.notify()

    def remove(self, waiter: Waiter) -> None:
        """Remove a reader."""
        with self._changed:
            self.waiters.discard(waiter)

    def close(self) -> None:
        """Stop the thread and wake every reader; later reads do not wait."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            waiters = list(self.waiters)
        for waiter in waiters:
            _wake(waiter)

    def _start(self) -> None:
        if self._thread is None and not self.closed:
            # A daemon thread: a hanging database must not prevent the process from exiting.
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
                failure = error.brief()
            except Exception as error:
                # The thread must continue, because readers wait for it.
                log.debug("Failed to publish deliveries", exc_info=True)
                failure = type(error).__name__
            if failure:
                if not failing:
                    log.warning("Failed to publish deliveries; retrying: %s", failure)
                with self._changed:
                    self._requested = True
                    self._changed.wait_for(lambda: self.closed, RETRY_INTERVAL)
            elif failing:
                log.info("Publishing deliveries works again")
            failing = bool(failure)

    def _wait_for_work(self) -> bool:
        """Wait until there are deliveries to publish or to poll for. Return False when the thread must stop."""
        with self._changed:
            while not (self.closed or self._requested):
                pause = self._next_poll - time.monotonic() if self.waiters else None
                if pause is not None and pause <= 0:
                    break
                self._changed.wait(pause)
            if not self.waiters:
                # No reader is waiting, so one transaction can publish many commits.
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
                # A reader was added during the query, which does not cover it.
                self.publish_soon()
            elif newest.get(waiter.conn_id, 0) > waiter.cursor:
                _wake(waiter)
            else:
                waiter.cursor = max(waiter.cursor, end)


def _wake(waiter: Waiter) -> None:
    try:
        waiter.loop.call_soon_threadsafe(waiter.woken.set)
    except RuntimeError:
        log.debug("The event loop of a waiting reader was closed")
