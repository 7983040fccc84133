"""The one reader of a connection's inbox in an event loop: a long poll with a cursor, for all waits."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.hooks.once import Once
from airflow_provider_webdata.inbox.reader import (
    END,
    CursorAheadError,
    InboxMissingError,
    InboxRefusedError,
)
from airflow_provider_webdata.waiting.backoff import Backoff
from airflow_provider_webdata.waiting.inbox.backfill import Backfill
from airflow_provider_webdata.waiting.inbox.subscriptions import SubscriptionIndex
from airflow_provider_webdata.waiting.shared_task import SLICE, SharedTask, spawn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow_provider_webdata.inbox.reader import AsyncInboxReader, Delivery, Page
    from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.shared_connection import SharedConnection

log = logging.getLogger(__name__)

LONG_POLL = 25.0
"""Seconds for which the inbox holds a request while there is no delivery."""


class FeedPage(NamedTuple):
    """Deliveries that came live, for those who watch the whole feed.

    :param before: the cursor in front of them.
    :param deliveries: in the order of the feed.
    """

    before: str
    deliveries: list[Delivery]


class FeedReset(NamedTuple):
    """The inbox's database was reset: the feed begins again."""


class DeliveryReader(SharedTask):
    """Posts to every subscription the deliveries that fit, those of the past first, each once.

    The reader starts at the end of the feed. A new subscription is registered first and its past looked up
    afterwards, so that nothing falls between the two. When the inbox does not answer, the reader retries from its
    cursor, ever more slowly, and says so in the waiting tasks' logs.

    :param connection: whose deliveries are read.
    """

    def __init__(self, connection: SharedConnection) -> None:
        super().__init__(f"the inbox reader of connection {connection.conn_id!r}")
        self._connection = connection
        self.subscriptions = SubscriptionIndex()
        self._watchers: dict[Mailbox, None] = {}
        self._backfill = Backfill(self._search)
        self._reader = Once(self._open_reader)
        self._following = asyncio.Event()
        self.backoff = Backoff(f"inbox of connection {connection.conn_id!r}", self._broadcast)
        self.last: Delivery | None = None

    @property
    def is_needed(self) -> bool:
        """Whether there is any subscription, or anybody who watches the whole feed."""
        return len(self.subscriptions) > 0 or bool(self._watchers)

    def subscribe(self, subscription: Subscription) -> None:
        """Begin to post deliveries to a subscription.

        :param subscription: one that is not subscribed yet.
        """
        self.subscriptions.add(subscription)
        self._backfill.add(subscription)
        if self.backoff.notice is not None:
            subscription.mailbox.post(self.backoff.notice)
        self.need()

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop posting to a subscription.

        :param subscription: one that is subscribed.
        """
        self.subscriptions.remove(subscription)
        self._backfill.remove(subscription)
        self.release()

    def watch(self, mailbox: Mailbox) -> None:
        """Begin to post every `FeedPage`, and a `FeedReset` where there is one.

        :param mailbox: of a watcher of the whole feed.
        """
        self._watchers[mailbox] = None
        self.need()

    def unwatch(self, mailbox: Mailbox) -> None:
        """Stop posting to a mailbox.

        :param mailbox: one that was given to `watch`.
        """
        self._watchers.pop(mailbox, None)
        self.release()

    async def page(self, after: str | None, **query: Any) -> Page:
        """Return a page of the feed, once its live part is read too, so that nothing falls between.

        :param after: as in the reader's `feed`.
        :param query: the other arguments of the reader's `feed`.
        :raises InboxError: the inbox did not answer.
        """
        while not self._following.is_set():
            await self._following.wait()
        return await self._ask(lambda reader: reader.feed(after, **query))

    def state(self) -> str:
        """Return how the inbox is, for the message of a timeout."""
        if self.backoff.notice is not None:
            return f"the inbox could not be read ({self.backoff.notice.text})"
        if self.last is None:
            return "the inbox was reachable; no delivery for the connection arrived meanwhile"
        return (
            f"the inbox was reachable; the last delivery of the connection was {self.last.event or 'of no type'} "
            f"at {self.last.received_at}"
        )

    async def _work(self) -> None:
        following = self._following
        lookups = spawn(self._look_up(following), f"{self._name}, backfill")
        follow = spawn(self._follow(following), f"{self._name}, feed")
        try:
            done, _ = await asyncio.wait({lookups, follow}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (lookups, follow):
                task.cancel()
            await asyncio.gather(lookups, follow, return_exceptions=True)

    def _detach(self) -> Callable[[], Awaitable[None]]:
        former, self._following = self._following, asyncio.Event()
        # The waiting tasks continue with the next event.
        former.set()
        return partial(_closed, self._reader.take())

    async def _follow(self, following: asyncio.Event) -> None:
        cursor: str | None = None
        while True:
            cursor = await self._read_page(cursor, following)

    async def _read_page(self, cursor: str | None, following: asyncio.Event) -> str | None:
        """Read one page of the feed and return the cursor behind it."""
        try:
            if cursor is None:
                # Answered at once, so that the past up to it can be looked up.
                cursor = (await self._ask(lambda reader: reader.feed(END))).cursor
                following.set()
            after = cursor
            page = await self._ask(lambda reader: reader.feed(after, LONG_POLL))
        except CursorAheadError as error:
            log.warning("%s: %s; deliveries are looked up again", self._name, error)
            for subscription in self.subscriptions:
                subscription.restart()
                self._backfill.add(subscription)
            for mailbox in self._watchers:
                mailbox.post(FeedReset())
            return error.cursor
        except Exception as error:  # noqa: BLE001 - shown to all waits, and retried
            at_once = isinstance(error, (InboxRefusedError, InboxMissingError))
            await asyncio.sleep(self.backoff.failed(error, at_once=at_once))
            return cursor
        self.backoff.recovered()
        if page.deliveries:
            for mailbox in self._watchers:
                mailbox.post(FeedPage(after, page.deliveries))
        for delivery in page.deliveries:
            await self._dispatch(delivery)
        return page.cursor

    async def _dispatch(self, delivery: Delivery) -> None:
        self.last = delivery
        for number, subscription in enumerate(self.subscriptions.of(delivery), 1):
            subscription.live(delivery)
            if number % SLICE == 0:
                await asyncio.sleep(0)

    async def _look_up(self, following: asyncio.Event) -> None:
        # The feed asks the same server and posts notices about it; here requests are only repeated.
        backoff = Backoff(self._name, lambda _: None)
        await following.wait()
        while True:
            await self._backfill.until_added()
            try:
                await self._backfill.look_up()
            except Exception as error:  # noqa: BLE001 - retried
                log.debug("%s: looking up the past failed: %s", self._name, error)
                await asyncio.sleep(backoff.failed(error))
            else:
                backoff.recovered()

    async def _search(self, **query: Any) -> Page:
        return await self._ask(lambda reader: reader.search(**query))

    async def _ask(self, request: Callable[[AsyncInboxReader], Awaitable[Page]]) -> Page:
        hook = await self._connection.hook()
        reader = await self._reader.get()
        try:
            return await request(reader)
        except InboxRefusedError:
            # The secret may have changed since the connection was read.
            await self._connection.renew(hook)
            if self._reader.made is reader:
                await _closed(self._reader.take())
            raise

    async def _open_reader(self) -> AsyncInboxReader:
        return await (await self._connection.hook()).inbox()

    def _broadcast(self, item: Any) -> None:
        for subscription in self.subscriptions:
            subscription.mailbox.post(item)
        for mailbox in self._watchers:
            mailbox.post(item)


async def _closed(reader: AsyncInboxReader | None) -> None:
    if reader is not None:
        with suppress(Exception):
            await reader.aclose()
