"""The deliveries of a connection as a stream of asset events."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.inbox.reader import END, CursorAheadError
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.inbox.delivery_reader import FeedPage, FeedReset
from airflow_provider_webdata.waiting.mailbox import Notice, WaitFailure
from airflow_provider_webdata.waiting.streams.joining import Joined
from airflow_provider_webdata.waiting.streams.stream import Stream, StreamItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable

    from airflow_provider_webdata.inbox.reader import Delivery
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.streams.joining import Join

log = logging.getLogger(__name__)

_PAGE_SIZE = 200
_BEGINNING = {"page": None, "position": 0}


class WebhookStream(Stream):
    """Every delivery of a connection, in the order of the inbox.

    A watcher that joins makes the stream go back to its cursor, for this watcher only. A cursor is
    `{"page": ..., "position": ...}`: the inbox's cursor in front of the page that holds the last delivery seen, and
    the delivery's position; before the first one, `since` may say from when on deliveries count.

    :param key: of the stream.
    :param conn_id: id of the connection.
    """

    def __init__(self, key: Hashable, conn_id: str) -> None:
        super().__init__(key)
        self._hub = Hub.of(conn_id)

    async def _read(self, mailbox: Mailbox) -> AsyncIterator[Any]:
        with self._hub.waiting() as own:
            own.closed = True
            self._hub.reader.watch(mailbox)
            async for item in self._answer_joins():
                yield item
            while True:
                received = await mailbox.get()
                if isinstance(received, FeedPage):
                    for item in _items(received.before, received.deliveries, None):
                        yield item
                elif isinstance(received, Notice):
                    received.log_to(log)
                elif isinstance(received, WaitFailure):
                    raise RuntimeError(received.text)
                elif isinstance(received, FeedReset):
                    yield Joined(None, _BEGINNING, reset=True)
                    async for item in self._replay(None, None, None):
                        yield item
                async for item in self._answer_joins():
                    yield item

    def _close(self, mailbox: Mailbox) -> None:
        self._hub.reader.unwatch(mailbox)

    async def _answer_joins(self) -> AsyncIterator[Any]:
        joins = self._joins.take()
        kept = [join for join in joins if join.cursor is not None]
        new: dict[str | None, list[Join]] = {}
        for join in joins:
            if join.cursor is None:
                new.setdefault(join.start, []).append(join)
        if kept:
            oldest = min(kept, key=lambda join: int(join.cursor["position"]))
            async for item in self._go_back(kept, oldest.cursor["page"], None):
                yield item
        for start, group in new.items():
            page = None if start is not None else (await self._hub.reader.page(END)).cursor
            async for item in self._go_back(group, page, start):
                yield item

    async def _go_back(self, joins: list[Join], page: str | None, since: str | None) -> AsyncIterator[Any]:
        try:
            # Only to learn whether the cursor is still good.
            await self._hub.reader.page(page, limit=1)
        except CursorAheadError:
            page = None
            yield Joined(frozenset(joins), _BEGINNING, reset=True)
        else:
            yield Joined(frozenset(joins), {"page": page, "position": 0, "since": since})
        async for item in self._replay(page, since, frozenset(joins)):
            yield item

    async def _replay(
        self, page: str | None, since: str | None, only: frozenset[Join] | None
    ) -> AsyncIterator[Any]:
        more = True
        while more:
            found = await self._hub.reader.page(page, limit=_PAGE_SIZE, received_after=since)
            for item in _items(page, found.deliveries, only):
                yield item
            page, more = found.cursor, found.more


def _items(page: str | None, deliveries: list[Delivery], only: frozenset[Join] | None) -> list[StreamItem]:
    return [
        StreamItem(delivery, {"page": page, "position": delivery.position or 0}, only)
        for delivery in deliveries
    ]
