# SPDX-License-Identifier: Apache-2.0
"""Subscriptions of waits to deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.inbox.envelope import MAX_TEXT, same_event

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from airflow_provider_webdata.inbox.reader import Delivery
    from airflow_provider_webdata.waiting.mailbox import Mailbox


IndexKey = tuple[str, str | None]
_ALL: IndexKey = ("all", None)


class Subscription:
    """A filter for the deliveries of one wait. Deliveries must match all values given.

    Live deliveries are held back until past deliveries have been searched, so that each is posted once, in order.

    :ivar mailbox: receives the deliveries; set when the subscription starts.
    :param job_id: id of a job; for monitors, of a check.
    :param events: names of events, with or without the operation's prefix; empty: all.
    :param since: match only deliveries that arrived later; None: all deliveries in the inbox.
    :raises ArgumentError: a value is invalid; the inbox would refuse the entire search.
    """

    __slots__ = ("_held_back", "_position", "events", "job_id", "key", "mailbox", "monitor_id", "since")

    def __init__(
        self,
        *,
        key: str | None = None,
        job_id: str | None = None,
        monitor_id: str | None = None,
        events: tuple[str, ...] = (),
        since: datetime | None = None,
    ) -> None:
        named = (("key", key), ("job_id", job_id), ("monitor_id", monitor_id))
        for name, value in (*named, *(("events", event) for event in events)):
            if value is not None and not (
                isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable()
            ):
                raise ArgumentError(f"{name} must be 1 to {MAX_TEXT} printable characters (given: {value!r})")
        self.mailbox: Mailbox
        self.key = key
        self.job_id = job_id
        self.monitor_id = monitor_id
        self.events = events
        self.since = since
        self._held_back: list[Delivery] | None = []
        self._position = 0

    @property
    def index_key(self) -> IndexKey:
        """The most selective of the filter's values, which indexes the subscription."""
        if self.key is not None:
            return "key", self.key
        if self.job_id is not None:
            return "job_id", self.job_id
        return ("monitor_id", self.monitor_id) if self.monitor_id is not None else _ALL

    @property
    def is_caught_up(self) -> bool:
        """Whether the search of past deliveries has ended."""
        return self._held_back is None

    def fits(self, delivery: Delivery, received: datetime | None) -> bool:
        """Return whether a delivery matches.

        :param received: time of arrival, or None if it cannot be parsed.
        """
        return (
            self.key in (None, delivery.key)
            and self.job_id in (None, delivery.job_id)
            and self.monitor_id in (None, delivery.monitor_id)
            and (not self.events or any(same_event(event, delivery.event or "") for event in self.events))
            and (self.since is None or received is None or received > self.since)
        )

    def live(self, delivery: Delivery) -> None:
        """Process a matching live delivery."""
        if self._held_back is not None:
            self._held_back.append(delivery)
        elif (delivery.position or 0) > self._position:
            self.mailbox.post(delivery)

    def past(self, delivery: Delivery) -> None:
        """Process a matching past delivery."""
        self._position = max(self._position, delivery.position or 0)
        self.mailbox.post(delivery)

    def caught_up(self) -> None:
        """End the search of past deliveries, and post the live deliveries held back."""
        held_back, self._held_back = self._held_back or (), None
        for delivery in held_back:
            self.live(delivery)

    def restart(self) -> None:
        """Hold back live deliveries again after a reset of the inbox, until a new search of past ones."""
        self._held_back = []
        self._position = 0


class SubscriptionIndex:
    """Index of subscriptions by filter value, so that the cost of a delivery depends on its matches."""

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        # Most keys have a single subscription, which needs no set.
        self._by_key: dict[IndexKey, Subscription | set[Subscription]] = {}
        for subscription in subscriptions:
            self.add(subscription)

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __iter__(self) -> Iterator[Subscription]:
        for index_key in list(self._by_key):
            yield from list(self._at(index_key))

    def _at(self, index_key: IndexKey) -> Collection[Subscription]:
        found = self._by_key.get(index_key, ())
        return (found,) if isinstance(found, Subscription) else found

    def add(self, subscription: Subscription) -> None:
        """Add a new subscription."""
        there = self._at(subscription.index_key)
        if isinstance(there, set):
            there.add(subscription)
        else:
            self._by_key[subscription.index_key] = {*there, subscription} if there else subscription

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription, if present."""
        there = self._by_key.get(subscription.index_key)
        if isinstance(there, set):
            there.discard(subscription)
        if not there or there is subscription:
            self._by_key.pop(subscription.index_key, None)

    def of(self, delivery: Delivery) -> list[Subscription]:
        """Return the subscriptions that a delivery matches."""
        received = moment(delivery.received_at)
        named = (("key", delivery.key), ("job_id", delivery.job_id), ("monitor_id", delivery.monitor_id))
        return [
            subscription
            for index_key in (*named, _ALL)
            for subscription in self._at(index_key)
            if subscription.fits(delivery, received)
        ]
