"""Gives stored deliveries their place in the order, and wakes who waits for them: one thread for the whole process.

What this process stored is announced at once. What other processes stored is looked for, only while somebody waits.
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
    from .records import Changes
    from .store import DeliveryStore

log = logging.getLogger(__name__)

WATCH_INTERVAL = 0.5
"""Seconds between two looks for what other processes stored."""
IDLE_INTERVAL = 1.0
"""Seconds after which deliveries are announced that nobody waits for."""
MOST_READERS = 500
"""Most readers that wait at once in this process."""


@dataclass(eq=False)
class Waiter:
    """A reader that waits for the next delivery of a connection.

    :param conn_id: the connection.
    :param cursor: nothing of the connection that lies at or before it is news.
    """

    conn_id: str
    cursor: int
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Announcer:
    """Announces deliveries in a thread that runs from the first need of it until `close`.

    :param store: what to announce.
    :param watch_interval: seconds between two looks for what other processes stored.
    :param most_readers: most readers that wait at once.
    """

    def __init__(
        self,
        store: DeliveryStore,
        *,
        watch_interval: float = WATCH_INTERVAL,
        most_readers: int = MOST_READERS,
    ) -> None:
        self._store = store
        self._watch_interval = watch_interval
        self._most_readers = most_readers
        self._changed = threading.Condition()
        self._waiters: set[Waiter] = set()
        self._asked = False
        self._closing = False
        self._failing = False
        self._next_look = 0.0
        self._thread: threading.Thread | None = None

    @property
    def closed(self) -> bool:
        """Whether nobody will be woken any more."""
        return self._closing

    def announce_soon(self) -> None:
        """Announce what was just committed; returns at once. May be called from any thread."""
        with self._changed:
            if self._asked and self._thread is not None:
                # It was told and has not looked since: to wake it once more would only cost time.
                return
            self._asked = True
            self._run()
            self._changed.notify()

    def add(self, waiter: Waiter) -> None:
        """Wake a reader when there is news.

        :param waiter: to be removed again.
        :raises TooManyReadersError: no further reader can wait.
        """
        with self._changed:
            if len(self._waiters) >= self._most_readers:
                raise TooManyReadersError("too many readers wait for deliveries")
            self._waiters.add(waiter)
            self._run()
            self._changed.notify()

    def remove(self, waiter: Waiter) -> None:
        """Forget a reader.

        :param waiter: a reader, known or not.
        """
        with self._changed:
            self._waiters.discard(waiter)

    def close(self) -> None:
        """End the thread, and wake every reader."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            waiters = list(self._waiters)
        for waiter in waiters:
            _wake(waiter)

    def _run(self) -> None:
        if self._thread is None and not self._closing:
            # A daemon: a hanging database must not keep the process from ending.
            thread = threading.Thread(target=self._work, name="webdata-inbox-announcer", daemon=True)
            thread.start()
            self._thread = thread

    def _work(self) -> None:
        while self._something_to_do():
            if failure := self._look_safely():
                if not self._failing:
                    log.warning("Deliveries cannot be announced now: %s", failure)
                with self._changed:
                    self._asked = True
                    self._changed.wait_for(lambda: self._closing, self._watch_interval)
            elif self._failing:
                log.info("Deliveries are announced again")
            self._failing = failure is not None

    def _look_safely(self) -> str | None:
        try:
            self._look()
        except StoreUnavailableError as error:
            return str(error)
        except Exception as error:
            # The thread must live on: readers wait for it.
            log.debug("Deliveries cannot be announced", exc_info=True)
            return f"{type(error).__name__}"
        return None

    def _something_to_do(self) -> bool:
        """Wait until somebody needs an announcement; False when the thread is to end."""
        with self._changed:
            while not (self._closing or self._asked):
                pause = self._next_look - time.monotonic() if self._waiters else None
                if pause is not None and pause <= 0:
                    break
                self._changed.wait(pause)
            if not self._waiters:
                # Nobody is in a hurry: one announcement serves for many commits.
                self._changed.wait_for(lambda: self._closing or bool(self._waiters), IDLE_INTERVAL)
            self._asked = False
            self._next_look = time.monotonic() + self._watch_interval
            return not self._closing

    def _look(self) -> None:
        with self._changed:
            since = min((waiter.cursor for waiter in self._waiters), default=None)
        if since is None:
            self._store.sequence()
            return
        changes = self._store.changes(since)
        with self._changed:
            waiters = list(self._waiters)
        for waiter in waiters:
            self._tell(waiter, changes, since)

    def _tell(self, waiter: Waiter, changes: Changes, since: int) -> None:
        if waiter.cursor < since:
            # It came while we looked, with a cursor from before that look began.
            self.announce_soon()
        elif changes.newest.get(waiter.conn_id, 0) > waiter.cursor:
            _wake(waiter)
        else:
            waiter.cursor = max(waiter.cursor, changes.end)


def _wake(waiter: Waiter) -> None:
    try:
        waiter.loop.call_soon_threadsafe(waiter.news.set)
    except RuntimeError:
        log.debug("A reader's event loop was closed while it waited")
