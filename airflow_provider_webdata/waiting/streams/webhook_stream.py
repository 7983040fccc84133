"""The deliveries of a connection, as a stream for asset watchers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.inbox.reader import END, CursorAheadError
from airflow_provider_webdata.waiting.inbox_source import FeedPage
from airflow_provider_webdata.waiting.mailbox import Notice
from airflow_provider_webdata.waiting.streams.stream import Joined, NewJoinError, Stream, StreamItem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from airflow_provider_webdata.inbox.reader import Delivery
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.streams.stream import Join

log = logging.getLogger(__name__)

_PAGE_SIZE = 200
_BEGINNING = {"page": None, "position": 0}


class WebhookStream(Stream):
    """Every delivery of a connection, in the order of the inbox.

    When a watcher joins, the stream rewinds to the watcher's cursor for this watcher only. A cursor is
    `{"page": ..., "position": ...}`: the inbox's cursor before the page with the last delivery seen, and the position
    of this delivery. Before the first delivery, `since` may limit the deliveries to later ones.
    """

    async def _read(self, hub: Hub, mailbox: Mailbox) -> AsyncGenerator[Any, None]:
        hub.inbox.watch(mailbox)
        try:
            async for item in self._answer_joins(hub):
                yield item
            while True:
                try:
                    received = await mailbox.get()
                except NewJoinError:
                    received = None
                except CursorAheadError:
                    received = None
                    yield Joined(None, _BEGINNING, reset=True)
                    async for item in _replay(hub, None, None, None):
                        yield item
                if isinstance(received, FeedPage):
                    for item in _items(received.before, received.deliveries, None):
                        yield item
                elif isinstance(received, Notice):
                    received.log_to(log)
                async for item in self._answer_joins(hub):
                    yield item
        finally:
            hub.inbox.unwatch(mailbox)

    async def _answer_joins(self, hub: Hub) -> AsyncIterator[Any]:
        joins = self._joins.pop_all()
        kept = [join for join in joins if join.cursor is not None]
        new: dict[str | None, list[Join]] = {}
        for join in joins:
            if join.cursor is None:
                new.setdefault(join.start, []).append(join)
        if kept:
            oldest = min(kept, key=lambda join: int(join.cursor["position"]))
            async for item in _go_back(hub, kept, oldest.cursor["page"], None):
                yield item
        for start, group in new.items():
            page = None if start is not None else (await hub.inbox.page(END)).cursor
            async for item in _go_back(hub, group, page, start):
                yield item


async def _go_back(hub: Hub, joins: list[Join], page: str | None, since: str | None) -> AsyncIterator[Any]:
    only = frozenset(joins)
    try:
        # This request only checks that the cursor is still valid.
        await hub.inbox.page(page, limit=1)
    except CursorAheadError:
        page = None
        yield Joined(only, _BEGINNING, reset=True)
    else:
        yield Joined(only, {"page": page, "position": 0, "since": since})
    async for item in _replay(hub, page, since, only):
        yield item


async def _replay(
    hub: Hub, page: str | None, since: str | None, only: frozenset[Join] | None
) -> AsyncIterator[Any]:
    more = True
    while more:
        found = await hub.inbox.page(page, limit=_PAGE_SIZE, received_after=since)
        for item in _items(page, found.deliveries, only):
            yield item
        page, more = found.cursor, found.more


def _items(page: str | None, deliveries: list[Delivery], only: frozenset[Join] | None) -> list[StreamItem]:
    return [
        StreamItem(delivery, {"page": page, "position": delivery.position or 0}, only)
        for delivery in deliveries
    ]
