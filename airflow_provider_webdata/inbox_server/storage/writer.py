"""Group commit: many deliveries in one transaction, each acknowledged only after the commit.

A commit costs the same for one delivery and for a hundred. Deliveries that arrive during a commit are batched into the
next. There is no batching delay: a single delivery is stored immediately.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.airflow_db.errors import ContendedError, RefusedError, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .records import NewDelivery
    from .store import DeliveryStore

log = logging.getLogger(__name__)

MOST_WAITING = 1000
"""Maximum number of queued deliveries; further ones are rejected."""
MOST_WAITING_BYTES = 128 * 2**20
"""Maximum bytes of queued bodies."""
BATCH_DELIVERIES = 200
"""Maximum number of deliveries in one transaction."""
BATCH_BYTES = 8 * 2**20
"""Bytes of bodies after which a transaction accepts no further delivery."""
STORE_TIMEOUT = 8.0
"""Timeout of a caller in seconds; the service's timeout is 10."""
ONE_BY_ONE_SECONDS = 3.0
"""Seconds for retrying a failed batch one delivery at a time."""
MOST_STUCK_THREADS = 3
"""Maximum number of threads that may hang in an unresponsive database."""

_Outcome = bool | StoreUnavailableError


class _Waiting(NamedTuple):
    delivery: NewDelivery
    future: asyncio.Future[bool]


@dataclass(eq=False)
class _Thread:
    """A thread and its state; `busy_since` is 0 while it is idle."""

    busy_since: float = 0.0
    replaced: bool = False
    handle: threading.Thread = field(default_factory=threading.Thread)


class Writer:
    """Stores deliveries through one thread; used from event loops.

    :param stored: called in the writer's thread after every commit, with the new deliveries; must not block.
    :param timeout: timeout of a caller, in seconds.
    """

    def __init__(
        self,
        store: DeliveryStore,
        stored: Callable[[list[NewDelivery]], None] = lambda _: None,
        *,
        timeout: float = STORE_TIMEOUT,
    ) -> None:
        self._store = store
        self._stored = stored
        self._timeout = timeout
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._thread: _Thread | None = None
        self._stuck: list[_Thread] = []
        self._closing = False

    async def submit(self, delivery: NewDelivery) -> bool:
        """Store a delivery; return once it is committed.

        Cancelling the caller has no effect: its delivery is stored with the others.

        :return: True if the delivery is new, False if it was already stored.
        :raises RefusedError: the database rejects the delivery's content.
        :raises StoreUnavailableError: the delivery was not stored, or the outcome is unknown within the timeout. A
            retry is safe.
        """
        waiting = _Waiting(delivery, asyncio.get_running_loop().create_future())
        with self._changed:
            self._raise_if_full(delivery)
            self._ensure_thread()
            self._waiting.append(waiting)
            self._waiting_bytes += len(delivery.body)
            self._changed.notify()
        try:
            return await asyncio.wait_for(waiting.future, self._timeout)
        except asyncio.TimeoutError:
            raise StoreUnavailableError(f"the database has not responded for {self._timeout:g} s") from None

    async def close(self) -> None:
        """Store the queued deliveries, within `STORE_TIMEOUT`, and stop the thread; `submit` then fails."""
        with self._changed:
            self._closing = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, thread.handle.join, STORE_TIMEOUT)

    def _raise_if_full(self, delivery: NewDelivery) -> None:
        if self._closing:
            raise StoreUnavailableError("the inbox is closing")
        too_many = len(self._waiting) >= MOST_WAITING
        too_large = self._waiting and self._waiting_bytes + len(delivery.body) > MOST_WAITING_BYTES
        if too_many or too_large:
            raise StoreUnavailableError("too many deliveries are waiting to be stored")

    def _ensure_thread(self) -> None:
        """Start the thread, or another one if it hangs in a dead connection."""
        thread = self._thread
        if thread is not None and thread.handle.is_alive():
            if not thread.busy_since or time.monotonic() - thread.busy_since <= self._timeout:
                return
            self._stuck = [stuck for stuck in self._stuck if stuck.handle.is_alive()]
            if len(self._stuck) >= MOST_STUCK_THREADS:
                return
            log.warning("The database does not respond; trying another connection")
            thread.replaced = True
            self._stuck.append(thread)
        fresh = self._thread = _Thread()
        # A daemon thread: a hanging database must not prevent the process from exiting.
        fresh.handle = threading.Thread(
            target=self._work, args=(fresh,), name="webdata-inbox-writer", daemon=True
        )
        fresh.handle.start()

    def _work(self, thread: _Thread) -> None:
        while batch := self._next_batch(thread):
            outcomes: list[_Outcome] = [StoreUnavailableError("internal error, see the inbox's log")] * len(
                batch
            )
            try:
                outcomes = self._add(batch)
            except BaseException:
                # On any error, callers must get a result, and later callers must find a thread.
                log.exception("Failed to store %d deliveries", len(batch))
            # Callers first: they should not compete with publishing for the GIL.
            _resolve(batch, outcomes)
            new = [one.delivery for one, outcome in zip(batch, outcomes, strict=True) if outcome is True]
            try:
                if new:
                    self._stored(new)
            except BaseException:
                log.exception("Failed to publish the stored deliveries; retrying with the next delivery")

    def _next_batch(self, thread: _Thread) -> list[_Waiting]:
        """Wait for and return the next batch; empty when this thread must stop."""
        batch: list[_Waiting] = []
        size = 0
        with self._changed:
            thread.busy_since = 0.0
            while not self._waiting and not self._closing and not thread.replaced:
                self._changed.wait()
            if thread.replaced:
                return batch
            while self._waiting and len(batch) < BATCH_DELIVERIES and size < BATCH_BYTES:
                batch.append(self._waiting.popleft())
                size += len(batch[-1].delivery.body)
            self._waiting_bytes -= size
            thread.busy_since = time.monotonic()
        return batch

    def _add(self, batch: list[_Waiting]) -> list[_Outcome]:
        try:
            return [*self._store.add([waiting.delivery for waiting in batch])]
        except (RefusedError, ContendedError) as error:
            if len(batch) == 1:
                return [error]
        except StoreUnavailableError as error:
            return [error] * len(batch)
        # One delivery causes the error: store the others without it.
        deadline = time.monotonic() + ONE_BY_ONE_SECONDS
        return [self._add_alone(waiting, deadline) for waiting in batch]

    def _add_alone(self, waiting: _Waiting, deadline: float) -> _Outcome:
        if time.monotonic() > deadline:
            return StoreUnavailableError("the database is too slow")
        try:
            return self._store.add([waiting.delivery])[0]
        except StoreUnavailableError as error:
            return error


def _resolve(batch: list[_Waiting], outcomes: list[_Outcome]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[bool], _Outcome]]] = {}
    for waiting, outcome in zip(batch, outcomes, strict=True):
        by_loop.setdefault(waiting.future.get_loop(), []).append((waiting.future, outcome))
    for loop, results in by_loop.items():
        # If the loop was closed in the meantime, no task waits on it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resume, results)


def _resume(results: list[tuple[asyncio.Future[bool], _Outcome]]) -> None:
    for future, outcome in results:
        if future.done():
            continue
        if isinstance(outcome, StoreUnavailableError):
            # A separate exception for each waiting task, because each adds its own traceback.
            future.set_exception(type(outcome)(*outcome.args))
        else:
            future.set_result(outcome)
