"""The one reader of a connection's inbox in an event loop: a long poll with a cursor that feeds all waits."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.inbox.reader import (
    END,
    CursorAheadError,
    InboxMissingError,
    InboxRefusedError,
)
from airflow_provider_webdata.waiting.backoff import Backoff
from airflow_provider_webdata.waiting.inbox.backfill import History
from airflow_provider_webdata.waiting.inbox.subscriptions import Index
from airflow_provider_webdata.waiting.shared_task import SharedTask, spawn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow_provider_webdata.inbox.reader import AsyncInboxReader, Delivery, Page
    from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.shared_connection import SharedConnection

log = logging.getLogger(__name__)

WAIT = 25.0
"""Seconds for which the inbox holds a request that has nothing to answer."""

_SLICE = 200
"""Waits that are told something in one go, before others in the loop have their turn."""


class FeedPage(NamedTuple):
    """What came live, for those who watch the whole feed.

    :param before: the cursor in front of it.
    :param deliveries: in the order of the feed.
    """

    before: str
    deliveries: list[Delivery]


class FeedReset(NamedTuple):
    """The inbox's database was reset: what it holds now begins anew."""


class DeliveryReader(SharedTask):
    """Feeds every subscription the deliveries that fit, those of the past first, each once.

    The reader starts at the end of the feed. A new subscription is registered first and looked up in the history
    afterwards, so that nothing falls between the two. When the inbox does not answer, the reader tries again from
    its cursor, ever more slowly, and tells all waits so.

    :param connection: whose deliveries are read.
    """

    def __init__(self, connection: SharedConnection) -> None:
        super().__init__(f"the inbox reader of connection {connection.conn_id!r}")
        self._connection = connection
        self._index = Index()
        self._watchers: dict[Mailbox, None] = {}
        self._history = History(self._search)
        self._reader: AsyncInboxReader | None = None
        self._following = asyncio.Event()
        self.outage = Backoff(f"inbox of connection {connection.conn_id!r}", self._tell)
        self.last: Delivery | None = None

    @property
    def is_needed(self) -> bool:
        """Whether there is any subscription, or anybody who watches the whole feed."""
        return len(self._index) > 0 or bool(self._watchers)

    def subscribe(self, subscription: Subscription) -> None:
        """Begin to feed a subscription.

        :param subscription: one that was not fed before.
        """
        self._index.add(subscription)
        self._history.ask(subscription)
        if self.outage.notice is not None:
            subscription.mailbox.post(self.outage.notice)
        self.need()

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop feeding a subscription.

        :param subscription: one that was given to `subscribe`.
        """
        self._index.remove(subscription)
        self._history.forget(subscription)
        self.release()

    def watch(self, mailbox: Mailbox) -> None:
        """Begin to post every `FeedPage`, and a `FeedReset` where there is one.

        :param mailbox: of whoever watches the whole feed.
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
        """Return a page of the feed, once its live part is followed too, so that nothing falls between.

        :param after: as in the reader's `feed`.
        :param query: the other arguments of the reader's `feed`.
        :raises InboxError: the inbox did not answer.
        """
        await self._following.wait()
        return await self._ask(lambda reader: reader.feed(after, **query))

    def state(self) -> str:
        """Say, for the message of a timeout, how the inbox is."""
        if self.outage.notice is not None:
            return f"the inbox could not be read ({self.outage.notice.text})"
        if self.last is None:
            return "the inbox was reachable; no delivery at all came for the connection meanwhile"
        return (
            f"the inbox was reachable; the last delivery of the connection was {self.last.event or 'of no type'} "
            f"at {self.last.received_at}"
        )

    async def _work(self) -> None:
        self._following.clear()
        lookups = spawn(self._look_up(), f"{self._name}, history")
        follow = spawn(self._follow(), f"{self._name}, feed")
        try:
            done, _ = await asyncio.wait({lookups, follow}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (lookups, follow):
                task.cancel()
            await asyncio.gather(lookups, follow, return_exceptions=True)
            await self._close_reader()

    async def _follow(self) -> None:
        cursor: str | None = None
        while True:
            cursor = await self._turn(cursor)

    async def _turn(self, cursor: str | None) -> str | None:
        """Read one page of the feed and return the cursor behind it."""
        try:
            if cursor is None:
                # Answered at once, so that the history can be looked up behind it.
                cursor = (await self._ask(lambda reader: reader.feed(END))).cursor
                self._following.set()
            after = cursor
            page = await self._ask(lambda reader: reader.feed(after, WAIT))
        except CursorAheadError as error:
            log.warning("%s: %s; deliveries are looked up anew", self._name, error)
            for subscription in self._index:
                subscription.start_again()
                self._history.ask(subscription)
            for mailbox in self._watchers:
                mailbox.post(FeedReset())
            return error.cursor
        except Exception as error:  # noqa: BLE001 - told to all waits, and tried again
            at_once = isinstance(error, (InboxRefusedError, InboxMissingError))
            await asyncio.sleep(self.outage.failed(error, at_once=at_once))
            return cursor
        self.outage.recovered()
        if page.deliveries:
            for mailbox in self._watchers:
                mailbox.post(FeedPage(after, page.deliveries))
        for delivery in page.deliveries:
            await self._dispatch(delivery)
        return page.cursor

    async def _dispatch(self, delivery: Delivery) -> None:
        self.last = delivery
        for number, subscription in enumerate(self._index.of(delivery), 1):
            subscription.live(delivery)
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    async def _look_up(self) -> None:
        # The feed asks the same server and tells the waits how it is; here it is only asked again.
        pauses = Backoff(self._name, lambda _: None)
        await self._following.wait()
        while True:
            await self._history.asked()
            try:
                await self._history.look_up()
            except Exception as error:  # noqa: BLE001 - tried again
                log.debug("%s: looking up the history failed: %s", self._name, error)
                await asyncio.sleep(pauses.failed(error))
            else:
                pauses.recovered()

    async def _search(self, **query: Any) -> Page:
        return await self._ask(lambda reader: reader.search(**query))

    async def _ask(self, question: Callable[[AsyncInboxReader], Awaitable[Page]]) -> Page:
        hook = await self._connection.hook()
        if self._reader is None:
            self._reader = await hook.inbox()
        reader = self._reader
        try:
            return await question(reader)
        except InboxRefusedError:
            # The secret may have been changed since the connection was read.
            await self._connection.renew(hook)
            if self._reader is reader:
                await self._close_reader()
            raise

    async def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(Exception):
                await reader.aclose()

    def _tell(self, item: Any) -> None:
        for subscription in self._index:
            subscription.mailbox.post(item)
        for mailbox in self._watchers:
            mailbox.post(item)
