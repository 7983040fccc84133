"""Counts of refused deliveries, by connection and reason.

Anyone may send requests to be refused, so they cost little: a process writes at most once a second, after the response.
A connection has one count per reason, however its id is spelled, and missing connections have none.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

import anyio

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.logs import logger

from .tables import CONN_ID_LENGTH
from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logger(__name__)

Reason = Literal["secret missing", "secret wrong", "signature missing", "signature wrong"]

REASONS: Mapping[Reason, str] = {
    "secret missing": "without the webhook secret",
    "secret wrong": "with a wrong webhook secret",
    "signature missing": "without a signature",
    "signature wrong": "with a wrong signature",
}
"""The reasons, as the rest of a sentence about deliveries."""

INTERVAL = 1.0
"""Minimum seconds between two writes."""
CLOSE_TIMEOUT = 2.0
"""Maximum seconds for the last write."""


def counted_as(conn_id: str) -> str:
    """Return the id under which a connection's refused deliveries are counted.

    Connections of the environment have many spellings, of which a caller chooses one.
    """
    return conn_id.upper()[:CONN_ID_LENGTH]


class Refusal(NamedTuple):
    """What refused deliveries are counted by.

    :param conn_id: the connection's id as in the URL.
    :param counted_as: the result of `counted_as`, of the connection's own id.
    """

    conn_id: str
    counted_as: str
    reason: Reason


class Refusals:
    """Counts refused deliveries in memory and stores the counts, for one event loop.

    :param store: stores counts; blocking. Raises `StoreUnavailableError`: the counts are lost.
    """

    def __init__(self, store: Callable[[Mapping[Refusal, int]], None]) -> None:
        self._store = store
        self._counts: Counter[Refusal] = Counter()
        self._storing: asyncio.Task[None] | None = None

    def add(self, refusal: Refusal) -> None:
        """Count one delivery; return before it is stored."""
        self._counts[refusal] += 1
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._keep_storing(), name="webdata-inbox-refusals")

    async def close(self) -> None:
        """Store the rest, within `CLOSE_TIMEOUT`."""
        if self._storing is not None:
            self._storing.cancel()
        with anyio.move_on_after(CLOSE_TIMEOUT):
            await self._store_all()

    async def _keep_storing(self) -> None:
        while self._counts:
            await self._store_all()
            await asyncio.sleep(INTERVAL)

    async def _store_all(self) -> None:
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            await in_thread(functools.partial(self._store, counts))
        except (StoreUnavailableError, RuntimeError) as error:
            # The responses and the log have named the refusals.
            log.debug("Failed to count refused deliveries: %s", error)
