# SPDX-License-Identifier: Apache-2.0
"""Counts of refused deliveries, by connection, reason, and sender.

Anyone may send requests to be refused, so they cost little: a process writes at most once a second, after the response,
and at most `MAX_COUNTS` rows plus one per connection and reason. All spellings of a connection's id share their counts,
and missing connections have none.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import json
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

import anyio

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.component_metrics import count
from airflow_provider_webdata.common.logs import logger

from .tables import CONN_ID_LENGTH, MAX_SENDER
from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime

log = logger(__name__)

Reason = Literal["secret missing", "secret wrong", "signature missing", "signature wrong"]

REASONS: Mapping[Reason, str] = {
    "secret missing": "without the webhook secret",
    "secret wrong": "with a wrong webhook secret",
    "signature missing": "without a signature",
    "signature wrong": "with a wrong signature",
}
"""The reasons, as the rest of a sentence about deliveries."""

_FIELDS = {"secret": "Webhook secret", "signature": "Signing secret"}

INTERVAL = 1.0
"""Minimum seconds between two writes."""
CLOSE_TIMEOUT = 2.0
"""Maximum seconds for the last write."""
MAX_COUNTS = 50
"""Maximum number of counts by sender in one write; further senders share one count."""
MAX_SENDERS = 20
"""Maximum number of stored senders of a connection and reason; further ones share one count."""
OTHERS = ""
"""The sender of deliveries that are not counted by sender."""
COUNTED_WITHIN = timedelta(days=1)
"""Time without a refusal after which a count starts anew."""


def counted_as(conn_id: str) -> str:
    """Return the id under which a connection's refused deliveries are counted.

    Connections of the environment have many spellings, of which a caller chooses one.
    """
    return conn_id.upper()[:CONN_ID_LENGTH]


def next_step(reasons: Collection[str]) -> str:
    """Return what to do about deliveries that were refused for these reasons."""
    wrong = [name for part, name in _FIELDS.items() if any(one.startswith(part) for one in reasons)]
    advice = f"If the service sent them, enter its secret as {' and '.join(map(json.dumps, wrong))}."
    if "Webhook secret" in wrong:
        advice += " A monitor keeps the former webhook secret until the DAG that declares it runs."
    return advice


def sender_of(address: str, forwarded_for: str) -> str:
    """Return the sender as it is counted, such as `203.0.113.9` or `203.0.113.9 via 10.0.0.2`.

    :param address: the address that the connection comes from.
    :param forwarded_for: the header X-Forwarded-For. A proxy appends the address that it sees, so only the last address
        counts; a sender without a proxy in front of the inbox can claim any.
    """
    try:
        claimed = str(ipaddress.ip_address(forwarded_for.rpartition(",")[2].strip()))
    except ValueError:
        return address[:MAX_SENDER]
    return (address if claimed == address else f"{claimed} via {address}")[:MAX_SENDER]


class Refusal(NamedTuple):
    """What refused deliveries are counted by.

    :param counted_as: the result of `counted_as`, of the connection's own id.
    :param sender: the result of `sender_of`, or `OTHERS`.
    """

    counted_as: str
    reason: Reason
    sender: str


class RefusedDeliveries(NamedTuple):
    """Refused deliveries of a connection with the same reason and sender.

    :param reason: a key of `REASONS`.
    :param sender: address of the sender, such as `203.0.113.9 via 10.0.0.2`; `OTHERS` for many.
    :param number: their number since `since`.
    :param since: when the first one was stored. The count starts anew after a day without a refusal.
    :param last: when the last one was stored.
    :param is_before_accepted: whether the connection has accepted a delivery after the last one.
    """

    conn_id: str
    reason: Reason
    sender: str
    number: int
    since: datetime
    last: datetime
    is_before_accepted: bool

    def text(self) -> str:
        """Return the reason as the rest of a sentence about deliveries."""
        return REASONS.get(self.reason, self.reason)


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
        if refusal not in self._counts and len(self._counts) >= MAX_COUNTS:
            refusal = refusal._replace(sender=OTHERS)
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
        _measure(counts)
        try:
            await in_thread(functools.partial(self._store, counts))
        except (StoreUnavailableError, RuntimeError) as error:
            # The responses and the log have named the refusals.
            log.debug("Failed to count refused deliveries: %s", error)


def _measure(counts: Mapping[Refusal, int]) -> None:
    totals: Counter[tuple[str, Reason]] = Counter()
    for refusal, number in counts.items():
        totals[refusal.counted_as, refusal.reason] += number
    for (conn_id, reason), number in totals.items():
        # A caller chooses among the spellings of an id, each of which would be a separate metric.
        count("webdata.deliveries_refused", number, conn_id=conn_id.lower(), reason=reason)
