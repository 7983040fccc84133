"""What arrived before a wait began, looked up for many waits in one request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.inbox.reader import MOST_VALUES
from airflow_provider_webdata.waiting.inbox.subscriptions import Index

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow_provider_webdata.inbox.reader import Page
    from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription

GATHER = 0.05
"""Seconds for which a lookup waits for others that it can be asked together with."""

_MANY = 200
_MOST_EVENTS = 50

_FIELDS = {"key": "keys", "job_id": "job_ids", "monitor_id": "monitor_ids"}


class History:
    """Subscriptions whose past is still to be looked up.

    :param search: searches the inbox, with the arguments of the reader's `search`.
    """

    def __init__(self, search: Callable[..., Awaitable[Page]]) -> None:
        self._search = search
        self._waiting: dict[Subscription, None] = {}
        self._some = asyncio.Event()

    def ask(self, subscription: Subscription) -> None:
        """Have the past of a subscription looked up soon.

        :param subscription: one that holds back what comes live until then.
        """
        self._waiting[subscription] = None
        self._some.set()

    def forget(self, subscription: Subscription) -> None:
        """Take a subscription out; one that is not known does no harm.

        :param subscription: one that has ended.
        """
        self._waiting.pop(subscription, None)

    async def asked(self) -> None:
        """Wait until there is something to look up, and a little for what comes at the same time."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
        await asyncio.sleep(GATHER)

    async def look_up(self) -> None:
        """Look up as many as fit into one search. What fails stays to be looked up.

        :raises InboxError: the inbox did not answer.
        """
        batch = self._batch()
        if not batch:
            return
        query = _query(batch)
        index = Index(batch)
        after: str | None = None
        found: list[tuple[Subscription, Any]] = []
        while True:
            page = await self._search(**query, after=after, limit=_MANY)
            for delivery in page.deliveries:
                found.extend((subscription, delivery) for subscription in index.of(delivery))
            if not page.more or not page.deliveries:
                break
            after = page.cursor
        # Handed out in one go, so that a lookup that fails half way can be done again from the start.
        for subscription, delivery in found:
            if subscription in self._waiting:
                subscription.past(delivery)
        for subscription in batch:
            if self._waiting.pop(subscription, self) is None:
                subscription.caught_up()

    def _batch(self) -> list[Subscription]:
        """Return the subscriptions of the next search: those with values, or those without any."""
        batch: list[Subscription] = []
        places: set[tuple[str, str | None]] = set()
        events: set[str] = set()
        for subscription in self._waiting:
            has_value = subscription.place[0] != "all"
            if batch and has_value is not (batch[0].place[0] != "all"):
                continue
            new = {subscription.place} - places
            # One search holds the events of all its subscriptions: a filter that lets more through does no harm.
            more = events.union(subscription.events)
            if batch and (len(places) + len(new) + _MOST_EVENTS > MOST_VALUES or len(more) > _MOST_EVENTS):
                break
            places |= new
            events = more
            batch.append(subscription)
        return batch


def _query(batch: list[Subscription]) -> dict[str, Any]:
    values: dict[str, list[str]] = {field: [] for field in _FIELDS.values()}
    for kind, value in dict.fromkeys(subscription.place for subscription in batch):
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
