"""Deliveries that arrived before a wait began, searched for many waits in one request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.inbox.reader import MOST_VALUES
from airflow_provider_webdata.waiting.subscriptions import SubscriptionIndex

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow_provider_webdata.inbox.reader import Delivery, Page
    from airflow_provider_webdata.waiting.subscriptions import Subscription

GATHER = 0.05
"""Seconds for which a search waits for others that begin at the same time and can share it."""

_PAGE_SIZE = 200
_MAX_EVENTS = 50

_FIELDS = {"key": "keys", "job_id": "job_ids", "monitor_id": "monitor_ids"}


class Backfill:
    """Looks up the past of subscriptions, of many in one search.

    :param search: searches the inbox, with the arguments of the reader's `search`.
    """

    def __init__(self, search: Callable[..., Awaitable[Page]]) -> None:
        self._search = search
        self._waiting: dict[Subscription, None] = {}
        self._added = asyncio.Event()

    def add(self, subscription: Subscription) -> None:
        """Schedule a lookup of a subscription's past.

        :param subscription: one that holds back live deliveries until then.
        """
        self._waiting[subscription] = None
        self._added.set()

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription, if it is there.

        :param subscription: one that has ended.
        """
        self._waiting.pop(subscription, None)

    async def until_added(self) -> None:
        """Wait until there is something to look up, and a little for subscriptions that are added at the same time."""
        while not self._waiting:
            self._added.clear()
            await self._added.wait()
        await asyncio.sleep(GATHER)

    async def look_up(self) -> None:
        """Look up as many as fit into one search. What fails is kept for the next call.

        :raises InboxError: the inbox did not answer.
        """
        batch = self._batch()
        if not batch:
            return
        found = await search_past(self._search, batch)
        # Handed out in one go, so that a lookup that fails half way can be repeated from the start.
        for subscription, delivery in found:
            if subscription in self._waiting:
                subscription.past(delivery)
        for subscription in batch:
            if self._waiting.pop(subscription, self) is None:
                subscription.caught_up()

    def _batch(self) -> list[Subscription]:
        """Return the subscriptions of the next search: those with values, or those without any."""
        batch: list[Subscription] = []
        index_keys: set[tuple[str, str | None]] = set()
        events: set[str] = set()
        for subscription in self._waiting:
            has_value = subscription.index_key[0] != "all"
            if batch and has_value is not (batch[0].index_key[0] != "all"):
                continue
            new = {subscription.index_key} - index_keys
            # One search holds the events of all its subscriptions: a filter that lets more through does no harm.
            more = events.union(subscription.events)
            if batch and (len(index_keys) + len(new) + _MAX_EVENTS > MOST_VALUES or len(more) > _MAX_EVENTS):
                break
            index_keys |= new
            events = more
            batch.append(subscription)
        return batch


async def search_past(
    search: Callable[..., Awaitable[Page]], batch: list[Subscription]
) -> list[tuple[Subscription, Delivery]]:
    """Return the stored deliveries that fit, in the order of the inbox.

    :param search: searches the inbox, with the arguments of the reader's `search`.
    :param batch: subscriptions that fit into one search.
    :raises InboxError: the inbox did not answer.
    """
    query = _query(batch)
    index = SubscriptionIndex(batch)
    after: str | None = None
    found: list[tuple[Subscription, Delivery]] = []
    while True:
        page = await search(**query, after=after, limit=_PAGE_SIZE)
        for delivery in page.deliveries:
            found.extend((subscription, delivery) for subscription in index.of(delivery))
        if not page.more or not page.deliveries:
            return found
        after = page.cursor


def _query(batch: list[Subscription]) -> dict[str, Any]:
    values: dict[str, list[str]] = {field: [] for field in _FIELDS.values()}
    for kind, value in dict.fromkeys(subscription.index_key for subscription in batch):
        if value is not None:
            values[_FIELDS[kind]].append(value)
    events: dict[str, None] = {}
    for subscription in batch:
        events.update(dict.fromkeys(subscription.events))
    if not all(subscription.events for subscription in batch):
        events = {}
    since = [subscription.since for subscription in batch]
    oldest = None if None in since else min(moment for moment in since if moment is not None)
    return {**values, "events": list(events), "received_after": oldest.isoformat() if oldest else None}
