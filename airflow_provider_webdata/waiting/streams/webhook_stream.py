"""The deliveries of a connection as a stream of asset events."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.inbox.reader import END, CursorAheadError
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.inbox.delivery_reader import FeedPage, FeedReset
from airflow_provider_webdata.waiting.mailbox import Failure, Notice
from airflow_provider_webdata.waiting.streams.stream import Item, Ready, Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable

    from airflow_provider_webdata.inbox.reader import Delivery
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.streams.stream import Ticket

log = logging.getLogger(__name__)

_MANY = 200
_BEGINNING = {"cursor": None, "position": 0}


class WebhookStream(Stream):
    """Every delivery of a connection, in the order of the inbox, from where any watcher wants it.

    A watcher that joins makes the stream go back to its place, for this watcher only. A place is
    `{"cursor": ..., "position": ...}`: the page that holds a delivery, and the delivery; before the first one,
    `since` may say from when on deliveries count.

    :param key: of the stream.
    :param conn_id: id of the connection.
    """

    def __init__(self, key: Hashable, conn_id: str) -> None:
        super().__init__(key)
        self._channel = Hub.of(conn_id)

    async def _read(self, mailbox: Mailbox) -> AsyncIterator[Any]:
        with self._channel.waiting() as own:
            own.closed = True
            self._channel.feed.watch(mailbox)
            async for item in self._answer_tickets():
                yield item
            while True:
                news = await mailbox.get()
                if isinstance(news, FeedPage):
                    for item in _items(news.before, news.deliveries, None):
                        yield item
                elif isinstance(news, Notice):
                    log.log(logging.WARNING if news.trouble else logging.INFO, "%s", news.text)
                elif isinstance(news, Failure):
                    raise RuntimeError(news.text)
                elif isinstance(news, FeedReset):
                    yield Ready(None, _BEGINNING, anew=True)
                    async for item in self._from(None, None, None):
                        yield item
                async for item in self._answer_tickets():
                    yield item

    def _close(self, mailbox: Mailbox) -> None:
        self._channel.feed.unwatch(mailbox)

    async def _answer_tickets(self) -> AsyncIterator[Any]:
        tickets, self._board.tickets = self._board.tickets, []
        kept = [ticket for ticket in tickets if ticket.place is not None]
        new: dict[str | None, list[Ticket]] = {}
        for ticket in tickets:
            if ticket.place is None:
                new.setdefault(ticket.start, []).append(ticket)
        if kept:
            oldest = min(kept, key=lambda ticket: int(ticket.place["position"]))
            async for item in self._begin(kept, oldest.place["cursor"], None):
                yield item
        for start, group in new.items():
            cursor = None if start is not None else (await self._channel.feed.page(END)).cursor
            async for item in self._begin(group, cursor, start):
                yield item

    async def _begin(
        self, tickets: list[Ticket], cursor: str | None, since: str | None
    ) -> AsyncIterator[Any]:
        try:
            # Only to learn whether the cursor is still good.
            await self._channel.feed.page(cursor, limit=1)
        except CursorAheadError:
            cursor = None
            yield Ready(frozenset(tickets), _BEGINNING, anew=True)
        else:
            yield Ready(frozenset(tickets), {"cursor": cursor, "position": 0, "since": since})
        async for item in self._from(cursor, since, frozenset(tickets)):
            yield item

    async def _from(
        self, cursor: str | None, since: str | None, only: frozenset[Ticket] | None
    ) -> AsyncIterator[Any]:
        more = True
        while more:
            page = await self._channel.feed.page(cursor, limit=_MANY, received_after=since)
            for item in _items(cursor, page.deliveries, only):
                yield item
            cursor, more = page.cursor, page.more


def _items(before: str | None, deliveries: list[Delivery], only: frozenset[Ticket] | None) -> list[Item]:
    return [
        Item(delivery, {"cursor": before, "position": delivery.position or 0}, only)
        for delivery in deliveries
    ]
