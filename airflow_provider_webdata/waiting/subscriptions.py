"""Subscriptions to deliveries, indexed so that the cost of a delivery depends on its matches, not on the waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.inbox.envelope import LONGEST_TEXT, same_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from airflow_provider_webdata.inbox.reader import Delivery
    from airflow_provider_webdata.waiting.mailbox import Mailbox


class Subscription:
    """The deliveries that one wait is for: all that is given must fit.

    Deliveries that come live are held back until those of the past were looked up, so that all come once, in order.

    :param mailbox: gets the deliveries.
    :param key: correlation key.
    :param job_id: id of a job; for monitors, of a check.
    :param monitor_id: id of a monitor.
    :param events: names of events, with or without the operation's prefix; empty: all.
    :param since: deliveries that arrived later count; None: all that the inbox holds.
    :raises ArgumentError: a value that no delivery can have; it would make the inbox refuse the search of all.
    """

    __slots__ = ("events", "held_back", "job_id", "key", "mailbox", "monitor_id", "position", "since")

    def __init__(
        self,
        mailbox: Mailbox,
        *,
        key: str | None = None,
        job_id: str | None = None,
        monitor_id: str | None = None,
        events: tuple[str, ...] = (),
        since: datetime | None = None,
    ) -> None:
        for name, value in (("key", key), ("job_id", job_id), ("monitor_id", monitor_id), *_named(events)):
            if value is None:
                continue
            if not (isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT and value.isprintable()):
                raise ArgumentError(
                    f"{name} must be 1 to {LONGEST_TEXT} printable characters (given: {value!r})"
                )
        self.mailbox = mailbox
        self.key = key
        self.job_id = job_id
        self.monitor_id = monitor_id
        self.events = events
        self.since = since
        self.held_back: list[Delivery] | None = []
        self.position = 0

    @property
    def index_key(self) -> tuple[str, str | None]:
        """The most selective of what is given: by this the subscription is found."""
        if self.key is not None:
            return "key", self.key
        if self.job_id is not None:
            return "job_id", self.job_id
        if self.monitor_id is not None:
            return "monitor_id", self.monitor_id
        return "all", None

    def fits(self, delivery: Delivery, received: datetime | None) -> bool:
        """Return whether a delivery is one of those that are waited for.

        :param delivery: a delivery.
        :param received: when it arrived, if that can be read.
        """
        for given, found in (
            (self.key, delivery.key),
            (self.job_id, delivery.job_id),
            (self.monitor_id, delivery.monitor_id),
        ):
            if given is not None and given != found:
                return False
        if self.events and not any(same_event(event, delivery.event or "") for event in self.events):
            return False
        return self.since is None or received is None or received > self.since

    def live(self, delivery: Delivery) -> None:
        """Take a delivery that has just come.

        :param delivery: one that fits.
        """
        if self.held_back is not None:
            self.held_back.append(delivery)
        elif (delivery.position or 0) > self.position:
            self.mailbox.post(delivery)

    def past(self, delivery: Delivery) -> None:
        """Take a delivery of the past.

        :param delivery: one that fits.
        """
        self.position = max(self.position, delivery.position or 0)
        self.mailbox.post(delivery)

    def caught_up(self) -> None:
        """Note that the past was looked up: the deliveries that arrived meanwhile follow."""
        held_back, self.held_back = self.held_back or (), None
        for delivery in held_back:
            self.live(delivery)

    def restart(self) -> None:
        """Note that the inbox was reset: its past must be looked up again."""
        self.held_back = []
        self.position = 0


class SubscriptionIndex:
    """Subscriptions, found by what they wait for.

    :param subscriptions: those to begin with.
    """

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        # Most keys have a single subscription, for which a set would be a waste.
        self._by_key: dict[tuple[str, str | None], Subscription | set[Subscription]] = {}
        self._count = 0
        for subscription in subscriptions:
            self.add(subscription)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Subscription]:
        for found in list(self._by_key.values()):
            yield from list(found) if isinstance(found, set) else (found,)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription that is not there yet.

        :param subscription: a subscription.
        """
        index_key = subscription.index_key
        found = self._by_key.get(index_key)
        if found is None:
            self._by_key[index_key] = subscription
        elif isinstance(found, set):
            found.add(subscription)
        else:
            self._by_key[index_key] = {found, subscription}
        self._count += 1

    def remove(self, subscription: Subscription) -> bool:
        """Remove a subscription and return whether it was there.

        :param subscription: a subscription.
        """
        index_key = subscription.index_key
        found = self._by_key.get(index_key)
        if isinstance(found, set) and subscription in found:
            found.discard(subscription)
            if not found:
                del self._by_key[index_key]
        elif found is subscription:
            del self._by_key[index_key]
        else:
            return False
        self._count -= 1
        return True

    def of(self, delivery: Delivery) -> list[Subscription]:
        """Return the subscriptions that a delivery is for.

        :param delivery: a delivery.
        """
        found: list[Subscription] = []
        received = moment(delivery.received_at)
        for index_key in (
            ("key", delivery.key),
            ("job_id", delivery.job_id),
            ("monitor_id", delivery.monitor_id),
            ("all", None),
        ):
            there = self._by_key.get(index_key)
            if there is not None:
                candidates = there if isinstance(there, set) else (there,)
                found.extend(candidate for candidate in candidates if candidate.fits(delivery, received))
        return found


def _named(events: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return (("events", event) for event in events)
