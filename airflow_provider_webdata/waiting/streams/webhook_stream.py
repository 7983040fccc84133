# SPDX-License-Identifier: Apache-2.0
"""The deliveries of a connection, as a stream for an asset watcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.inbox.reader import END, CursorAheadError
from airflow_provider_webdata.waiting.inbox_source import FeedPage
from airflow_provider_webdata.waiting.mailbox import Notice
from airflow_provider_webdata.waiting.streams.stream import Stream, StreamItem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from airflow_provider_webdata.inbox.reader import Delivery
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox

log = logger(__name__)

_PAGE_SIZE = 200


class WebhookStream(Stream):
    """Every delivery of a connection, in the order of the inbox.

    A cursor is `{"after": ...}`: the inbox's cursor after the last delivery seen.
    """

    async def _read(self, hub: Hub, mailbox: Mailbox, cursor: Any) -> AsyncGenerator[StreamItem, None]:
        hub.inbox.watch(mailbox)
        try:
            if cursor is None:
                is_now = self._start is None
                cursor = {"after": (await hub.inbox.page(END)).cursor if is_now else "0"}
            while True:
                yield StreamItem(None, cursor, at_once=True)
                try:
                    async for item in self._after(hub, mailbox, int(cursor["after"])):
                        yield item
                except CursorAheadError:
                    # The inbox was reset.
                    cursor = {"after": "0"}
        finally:
            hub.inbox.unwatch(mailbox)

    async def _after(self, hub: Hub, mailbox: Mailbox, position: int) -> AsyncGenerator[StreamItem, None]:
        more = True
        while more:
            page = await hub.inbox.page(str(position), limit=_PAGE_SIZE, received_after=self._start)
            for delivery in page.deliveries:
                yield StreamItem(delivery, cursor_at(delivery))
            position, more = int(page.cursor), page.more
        while True:
            received = await mailbox.get()
            if isinstance(received, Notice):
                received.log_to(log)
                continue
            # The first live deliveries may be among the stored ones.
            for delivery in received.deliveries if isinstance(received, FeedPage) else ():
                if (delivery.position or 0) > position:
                    yield StreamItem(delivery, cursor_at(delivery))


def cursor_at(delivery: Delivery) -> dict[str, str]:
    """Return the cursor after a delivery: a position is a cursor of the inbox."""
    return {"after": str(delivery.position)}
