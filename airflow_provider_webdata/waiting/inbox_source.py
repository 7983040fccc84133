# SPDX-License-Identifier: Apache-2.0
"""Reader of a connection's deliveries for all its waits: one long poll with a cursor, and searches of past ones."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.hooks.once import Once
from airflow_provider_webdata.inbox.reader import (
    END,
    MAX_VALUES,
    CursorAheadError,
    InboxError,
    InboxMissingError,
    InboxRefusedError,
)
from airflow_provider_webdata.inbox.wire import LISTS
from airflow_provider_webdata.waiting.backoff import Backoff
from airflow_provider_webdata.waiting.connection import GATHER, SLICE
from airflow_provider_webdata.waiting.subscriptions import SubscriptionIndex

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
    from airflow_provider_webdata.inbox.reader import AsyncInboxReader, Delivery, DeliveryPage
    from airflow_provider_webdata.waiting.connection import Connection
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.subscriptions import Subscription

log = logger(__name__)

LONG_POLL = 25.0
"""Seconds for which the inbox holds a request open while no delivery arrives."""

SILENT_SECONDS = 60.0
"""Seconds of an outage after which waits no longer rely on deliveries."""

_PAGE_SIZE = 200


class FeedPage(NamedTuple):
    """Live deliveries, for watchers of the entire feed.

    :param before: the cursor before these deliveries.
    :param deliveries: the deliveries, in the order of the feed.
    """

    before: str
    deliveries: list[Delivery]


class InboxSource:
    """Posts each matching delivery to every subscription once, past deliveries first.

    It starts at the end of the feed. A new subscription is registered before past deliveries are searched, so that none
    is missed in between. While the inbox is unavailable, it retries from its cursor with increasing pauses, and reports
    this in the waiting tasks' logs.

    :param adapt: called with `inbox_answers=False` if the inbox is silent when the source starts, or for
        `SILENT_SECONDS`, and with `inbox_answers=True` when it answers.
    """

    def __init__(self, connection: Connection, adapt: Callable[..., None]) -> None:
        self.subscriptions = SubscriptionIndex()
        self._connection = connection
        self._adapt = adapt
        self._name = f"the inbox reader of connection {connection.conn_id!r}"
        self._watchers: dict[Mailbox, None] = {}
        self._new: dict[Subscription, None] = {}
        self._added = asyncio.Event()
        self._reader = Once(self._open_reader)
        self._read_by: WebDataAsyncHook | None = None
        self._is_running = False
        self._wanted = asyncio.Event()
        self._following = asyncio.Event()
        self.backoff = Backoff(
            f"inbox of connection {connection.conn_id!r}",
            self._broadcast,
            ". Until then, jobs and checks are polled",
        )
        self.last: Delivery | None = None

    def subscribe(self, subscription: Subscription, mailbox: Mailbox) -> None:
        """Start posting a subscription's deliveries to a mailbox."""
        subscription.mailbox = mailbox
        self.subscriptions.add(subscription)
        self._search_for(subscription)
        if self.backoff.notice is not None:
            mailbox.post(self.backoff.notice)
        self._start()

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop posting to a subscription."""
        self.subscriptions.remove(subscription)
        self._new.pop(subscription, None)

    def watch(self, mailbox: Mailbox) -> None:
        """Start posting to a mailbox: every `FeedPage`, and a `CursorAheadError` when the feed starts again."""
        self._watchers[mailbox] = None
        self._start()

    def unwatch(self, mailbox: Mailbox) -> None:
        """Stop posting to a mailbox of `watch`."""
        self._watchers.pop(mailbox, None)

    async def page(self, after: str | None, **query: Any) -> DeliveryPage:
        """Return a page of the feed. Waits for the live reader to start, so that no delivery is missed in between.

        :raises InboxError: the inbox is unavailable.
        """
        await self._following.wait()
        return await self._ask(lambda reader: reader.feed(after, **query))

    async def past(self, batch: Sequence[Subscription]) -> list[tuple[Subscription, Delivery]]:
        """Return the stored deliveries that match subscriptions, in the order of the inbox.

        :param batch: subscriptions to the same events, either all with a searchable value or all without.
        :raises InboxError: the inbox is unavailable.
        """
        index = SubscriptionIndex(batch)
        values: dict[str, list[str]] = {field: [] for field in LISTS.values()}
        for kind, value in dict.fromkeys(subscription.index_key for subscription in batch):
            if value is not None:
                values[LISTS[kind]].append(value)
        starts = [subscription.since for subscription in batch]
        since = None if None in starts else min(start for start in starts if start is not None).isoformat()
        query: dict[str, Any] = {
            **values,
            "events": batch[0].events,
            "received_after": since,
            "limit": _PAGE_SIZE,
        }
        after: str | None = None
        found: list[tuple[Subscription, Delivery]] = []
        while True:
            page = await self._ask(lambda reader, after=after: reader.search(**query, after=after))  # type: ignore[misc]
            found += ((each, delivery) for delivery in page.deliveries for each in index.of(delivery))
            if not page.more or not page.deliveries:
                return found
            after = page.cursor

    def state(self) -> str:
        """Return the state of the inbox, for the message of a timeout."""
        if self.backoff.notice is not None:
            return f"the inbox could not be read ({self.backoff.notice.text})"
        if self.last is None:
            return "the inbox was reachable; no delivery for the connection arrived during the wait"
        return (
            f"the inbox was reachable; the last delivery of the connection was {self.last.event or 'of no type'} "
            f"at {self.last.received_at}"
        )

    async def close(self) -> None:
        """Close the reader. Its tasks end with the connection."""
        self._following.set()
        await self._close_reader()

    async def _close_reader(self) -> None:
        if (reader := self._reader.reset()) is not None:
            with suppress(Exception):
                await reader.aclose()

    def _start(self) -> None:
        self._wanted.set()
        if not self._is_running:
            self._is_running = True
            self._connection.run(self._follow(), self._name)
            self._connection.run(self._look_up(), f"{self._name}, for past deliveries")

    async def _follow(self) -> None:
        cursor: str | None = None
        while True:
            if not self.subscriptions and not self._watchers:
                # The connection's remaining waits only poll.
                cursor = None
                self._following.clear()
                self._wanted.clear()
                await self._wanted.wait()
            cursor = await self._read_page(cursor)

    async def _read_page(self, cursor: str | None) -> str | None:
        """Read one page of the feed and return the cursor after it."""
        try:
            if cursor is None:
                # The inbox responds immediately, so the search of past deliveries up to this cursor can start.
                cursor = (await self._ask(lambda reader: reader.feed(END))).cursor
                self._following.set()
            after = cursor
            # After an outage the first request returns immediately, so that the waits learn of its end.
            hold = LONG_POLL if self.backoff.notice is None else 0
            page = await self._ask(lambda reader: reader.feed(after, hold))
        except CursorAheadError as error:
            log.warning("%s: %s; searching all deliveries again", self._name, error.brief())
            for subscription in self.subscriptions:
                subscription.restart()
                self._search_for(subscription)
            for mailbox in self._watchers:
                mailbox.post(error)
            return error.cursor
        except Exception as error:  # noqa: BLE001 - shown to all waits, and retried
            at_once = isinstance(error, (InboxRefusedError, InboxMissingError))
            pause = self.backoff.failed(error, at_once=at_once)
            if cursor is None or self.backoff.seconds >= SILENT_SECONDS:
                self._adapt(inbox_answers=False)
            await asyncio.sleep(pause)
            return cursor
        self.backoff.recovered()
        self._adapt(inbox_answers=True)
        if page.deliveries:
            for mailbox in self._watchers:
                mailbox.post(FeedPage(after, page.deliveries))
        for delivery in page.deliveries:
            self.last = delivery
            for number, subscription in enumerate(self.subscriptions.of(delivery), 1):
                subscription.live(delivery)
                if number % SLICE == 0:
                    await asyncio.sleep(0)
        return page.cursor

    def _search_for(self, subscription: Subscription) -> None:
        self._new[subscription] = None
        self._added.set()

    async def _look_up(self) -> None:
        # The feed reader uses the same server and posts notices about it; this task only retries.
        backoff = Backoff(self._name, lambda _: None)
        while True:
            await self._following.wait()
            while not self._new:
                self._added.clear()
                await self._added.wait()
            await asyncio.sleep(GATHER)
            if not (batch := self._batch()):
                continue
            try:
                found = await self.past(batch)
            except Exception as error:  # noqa: BLE001 - retried
                log.debug("%s: the search of past deliveries failed: %s", self._name, brief(error))
                # The search of other subscriptions comes next, because only this one may fail.
                for subscription in batch:
                    if self._new.pop(subscription, self) is None:
                        self._new[subscription] = None
                await asyncio.sleep(backoff.failed(error))
                continue
            backoff.recovered()
            # Post only after a complete search, so that a failed search can be retried from the start.
            for subscription, delivery in found:
                if subscription in self._new:
                    subscription.past(delivery)
            for subscription in batch:
                if self._new.pop(subscription, self) is None:
                    subscription.caught_up()

    def _batch(self) -> list[Subscription]:
        """Return new subscriptions for one search: to the same events, either all with searchable values or none."""
        kinds: dict[tuple[tuple[str, ...], bool], list[Subscription]] = {}
        for subscription in self._new:
            kinds.setdefault((subscription.events, subscription.index_key[0] in LISTS), []).append(
                subscription
            )
        batch = next(iter(kinds.values()), [])
        return batch[: max(1, MAX_VALUES - len(batch[0].events))] if batch else batch

    async def _ask(self, request: Callable[[AsyncInboxReader], Awaitable[DeliveryPage]]) -> DeliveryPage:
        hook = await self._connection.hook()
        if self._read_by is not hook:
            self._read_by = hook
            await self._close_reader()
        reader = await self._reader.get()
        try:
            return await request(reader)
        except InboxError as error:
            # The secret or the address may have changed since the connection was read.
            await self._connection.renewed(hook, error)
            raise

    async def _open_reader(self) -> AsyncInboxReader:
        return await (await self._connection.hook()).inbox()

    def _broadcast(self, item: Any) -> None:
        for subscription in self.subscriptions:
            subscription.mailbox.post(item)
        for mailbox in self._watchers:
            mailbox.post(item)
