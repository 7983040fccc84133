# SPDX-License-Identifier: Apache-2.0
"""Group commit: many deliveries in one transaction, each acknowledged only after the commit.

A commit costs the same for one delivery and for a hundred. Deliveries that arrive during a commit are batched into the
next. There is no batching delay: a single delivery is stored immediately.
"""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING, NamedTuple

import anyio

from airflow_provider_webdata.airflow_db.errors import ContendedError, RefusedError, StoreUnavailableError
from airflow_provider_webdata.common.coded_errors import traceback_of
from airflow_provider_webdata.common.logs import logger

from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from .records import NewDelivery
    from .store import DeliveryStore

log = logger(__name__)

MAX_WAITING = 1000
"""Maximum number of queued deliveries; further ones are rejected."""
MAX_WAITING_BYTES = 128 * 2**20
"""Maximum bytes of queued bodies."""
BATCH_DELIVERIES = 200
"""Maximum number of deliveries in one transaction."""
BATCH_BYTES = 8 * 2**20
"""Bytes of bodies after which a transaction accepts no further delivery."""
STORE_TIMEOUT = 8.0
"""Timeout of a caller in seconds; the service's timeout is 10."""
ONE_BY_ONE_SECONDS = 3.0
"""Seconds for retrying a failed batch one delivery at a time."""
MAX_STUCK = 3
"""Maximum number of batches that may hang in an unresponsive database, while another one is stored."""


_Outcome = bool | StoreUnavailableError


class _Waiting(NamedTuple):
    delivery: NewDelivery
    future: asyncio.Future[bool]


class Writer:
    """Stores deliveries, for one event loop.

    :param stored: called after every commit, with the new deliveries; must not block.
    """

    def __init__(
        self,
        store: DeliveryStore,
        stored: Callable[[list[NewDelivery]], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._stored = stored
        self._timeout = STORE_TIMEOUT
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._queued_bytes = 0
        self._writing: asyncio.Task[None] | None = None
        self._closing = False

    async def submit(self, delivery: NewDelivery) -> bool:
        """Store a delivery; return once it is committed.

        Canceling the caller has no effect: its delivery is stored with the others.

        :return: True if the delivery is new, False if it was already stored.
        :raises RefusedError: the database rejects the delivery's content.
        :raises StoreUnavailableError: the delivery was not stored, or the outcome is unknown within the timeout. A
            retry is safe.
        """
        self._raise_if_full(delivery)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="webdata-inbox-writer")
        waiting = _Waiting(delivery, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(waiting)
        self._queued_bytes += len(delivery.body)
        try:
            return await asyncio.wait_for(waiting.future, self._timeout)
        except asyncio.TimeoutError:
            raise StoreUnavailableError(f"the database has not responded for {self._timeout:g} s") from None

    async def close(self) -> None:
        """Store the queued deliveries, within `STORE_TIMEOUT`; `submit` then fails."""
        self._closing = True
        with anyio.move_on_after(STORE_TIMEOUT):
            await self._queue.join()
        if self._writing is not None:
            self._writing.cancel()

    def _raise_if_full(self, delivery: NewDelivery) -> None:
        if self._closing:
            raise StoreUnavailableError("the inbox is closing")
        too_many = self._queue.qsize() >= MAX_WAITING
        too_large = self._queued_bytes and self._queued_bytes + len(delivery.body) > MAX_WAITING_BYTES
        if too_many or too_large:
            raise StoreUnavailableError("too many deliveries are waiting to be stored")

    async def _write(self) -> None:
        storing: set[asyncio.Future[list[_Outcome]]] = set()
        while True:
            batch = await self._next_batch()
            work = functools.partial(self._add, [waiting.delivery for waiting in batch])
            try:
                stored = in_thread(work)
            except RuntimeError as error:
                # The machine starts no more threads; the sender repeats the deliveries.
                stored = asyncio.get_running_loop().create_future()
                stored.set_exception(error)
            stored.add_done_callback(functools.partial(self._answer, batch))
            storing.add(stored)
            timeout = None if len(storing) > MAX_STUCK else self._timeout
            done, storing = await asyncio.wait(storing, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                log.warning("The database does not respond; trying another connection")

    async def _next_batch(self) -> list[_Waiting]:
        batch = [await self._queue.get()]
        size = len(batch[0].delivery.body)
        while not self._queue.empty() and len(batch) < BATCH_DELIVERIES and size < BATCH_BYTES:
            batch.append(self._queue.get_nowait())
            size += len(batch[-1].delivery.body)
        self._queued_bytes -= size
        return batch

    def _answer(self, batch: list[_Waiting], stored: asyncio.Future[list[_Outcome]]) -> None:
        outcomes: list[_Outcome]
        if error := stored.exception():
            log.error("Failed to store %d deliveries%s", len(batch), traceback_of(error))
            outcomes = [StoreUnavailableError("internal error, see the inbox's log")] * len(batch)
        else:
            outcomes = stored.result()
        for waiting, outcome in zip(batch, outcomes, strict=True):
            self._queue.task_done()
            if waiting.future.done():
                continue
            if isinstance(outcome, StoreUnavailableError):
                # A separate exception for each caller, because each adds its own traceback.
                waiting.future.set_exception(type(outcome)(*outcome.args))
            else:
                waiting.future.set_result(outcome)
        if new := [one.delivery for one, outcome in zip(batch, outcomes, strict=True) if outcome is True]:
            self._stored(new)

    def _add(self, batch: list[NewDelivery]) -> list[_Outcome]:
        try:
            return [*self._store.add(batch)]
        except (RefusedError, ContendedError) as error:
            if len(batch) == 1:
                return [error]
        except StoreUnavailableError as error:
            return [error] * len(batch)
        # One delivery causes the error: store the others without it.
        deadline = time.monotonic() + ONE_BY_ONE_SECONDS
        return [self._add_alone(delivery, deadline) for delivery in batch]

    def _add_alone(self, delivery: NewDelivery, deadline: float) -> _Outcome:
        if time.monotonic() > deadline:
            return StoreUnavailableError("the database is too slow")
        try:
            return self._store.add([delivery])[0]
        except StoreUnavailableError as error:
            return error
