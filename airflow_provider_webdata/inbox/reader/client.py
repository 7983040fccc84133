"""The inbox as its readers see it, sync and async: the feed, searches in it, and single deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from . import protocol
from .address import client_options

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from .address import InboxAddress
    from .delivery import Delivery, Page


def _filters(
    keys: Iterable[str], job_ids: Iterable[str], monitor_ids: Iterable[str], events: Iterable[str]
) -> dict[str, Iterable[str]]:
    return {"key": keys, "job_id": job_ids, "monitor_id": monitor_ids, "event": events}


def _search(
    keys: Iterable[str],
    job_ids: Iterable[str],
    monitor_ids: Iterable[str],
    events: Iterable[str],
    received_after: str | None,
    after: str | None,
    limit: int | None,
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "keys": list(keys),
        "job_ids": list(job_ids),
        "monitor_ids": list(monitor_ids),
        "events": list(events),
        "received_after": received_after,
        "after": after,
    }
    return body if limit is None else {**body, "limit": limit}


class InboxReader:
    """The inbox over blocking HTTP. Thread-safe; close it, or use it as a context manager.

    Every method raises `InboxError`: `InboxUnreachableError` (try again), `InboxRefusedError` (another secret, or
    the connection is unknown there), `InboxMissingError` (no inbox at this address) and `InboxAnswerError`.

    :param address: where the inbox is and how to show that one may read it.
    """

    def __init__(self, address: InboxAddress) -> None:
        self.address = address
        self._http = httpx.Client(**client_options(address))

    def feed(
        self,
        after: str | None = None,
        wait: float = 0.0,
        *,
        limit: int | None = None,
        keys: Iterable[str] = (),
        job_ids: Iterable[str] = (),
        monitor_ids: Iterable[str] = (),
        events: Iterable[str] = (),
        received_after: str | None = None,
    ) -> Page:
        """Return the next deliveries in the order of the feed.

        A delivery matches if it has any of the given keys, job ids or monitor ids, and any of the given events (with or
        without the operation's prefix).

        :param after: cursor of an earlier page; `END`: only new deliveries; None: from the oldest kept.
        :param wait: seconds, 0 to 30, to wait for a delivery when there is none.
        :param limit: most deliveries, 1 to 1000; the inbox's default is 200.
        :param keys: correlation keys.
        :param job_ids: ids of jobs; for monitors, of checks.
        :param monitor_ids: ids of monitors.
        :param events: names of events.
        :param received_after: only deliveries that arrived then or later, ISO 8601.
        :raises CursorAheadError: the inbox was reset since the cursor was issued.
        """
        filters = _filters(keys, job_ids, monitor_ids, events)
        request = protocol.feed_request(self.address, after, wait, limit, filters, received_after)
        return protocol.page_of(self.address, self._send(request))

    def search(
        self,
        *,
        keys: Iterable[str] = (),
        job_ids: Iterable[str] = (),
        monitor_ids: Iterable[str] = (),
        events: Iterable[str] = (),
        received_after: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Page:
        """Return what `feed` would without waiting, for up to 1000 values in all.

        The parameters are those of `feed`.

        :raises CursorAheadError: the inbox was reset since the cursor was given.
        """
        body = _search(keys, job_ids, monitor_ids, events, received_after, after, limit)
        return protocol.page_of(self.address, self._send(protocol.search_request(self.address, body)))

    def fetch(self, delivery_id: int) -> Delivery:
        """Return one delivery with its body, however large.

        :param delivery_id: its id.
        :raises DeliveryGoneError: the inbox does not have it any more.
        """
        response = self._send(protocol.fetch_request(self.address, delivery_id))
        return protocol.delivery_of(self.address, response, delivery_id)

    def _send(self, request: dict[str, Any]) -> httpx.Response:
        try:
            return self._http.request(**request)
        except httpx.HTTPError as error:
            raise protocol.unreachable(self.address, error) from error

    def close(self) -> None:
        """Close all pooled connections."""
        self._http.close()

    def __enter__(self) -> InboxReader:
        """Return the reader itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the reader."""
        self.close()


class AsyncInboxReader:
    """The inbox over non-blocking HTTP, with the surface of `InboxReader`.

    :param address: where the inbox is and how to show that one may read it.
    """

    def __init__(self, address: InboxAddress) -> None:
        self.address = address
        self._http = httpx.AsyncClient(**client_options(address))

    async def feed(
        self,
        after: str | None = None,
        wait: float = 0.0,
        *,
        limit: int | None = None,
        keys: Iterable[str] = (),
        job_ids: Iterable[str] = (),
        monitor_ids: Iterable[str] = (),
        events: Iterable[str] = (),
        received_after: str | None = None,
    ) -> Page:
        """Return the next deliveries in the order of the feed; see `InboxReader.feed`."""
        filters = _filters(keys, job_ids, monitor_ids, events)
        request = protocol.feed_request(self.address, after, wait, limit, filters, received_after)
        return protocol.page_of(self.address, await self._send(request))

    async def search(
        self,
        *,
        keys: Iterable[str] = (),
        job_ids: Iterable[str] = (),
        monitor_ids: Iterable[str] = (),
        events: Iterable[str] = (),
        received_after: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Page:
        """Return what `feed` would without waiting; see `InboxReader.search`."""
        body = _search(keys, job_ids, monitor_ids, events, received_after, after, limit)
        return protocol.page_of(self.address, await self._send(protocol.search_request(self.address, body)))

    async def fetch(self, delivery_id: int) -> Delivery:
        """Return one delivery with its body; see `InboxReader.fetch`."""
        response = await self._send(protocol.fetch_request(self.address, delivery_id))
        return protocol.delivery_of(self.address, response, delivery_id)

    async def _send(self, request: dict[str, Any]) -> httpx.Response:
        try:
            return await self._http.request(**request)
        except httpx.HTTPError as error:
            raise protocol.unreachable(self.address, error) from error

    async def aclose(self) -> None:
        """Close all pooled connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncInboxReader:
        """Return the reader itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the reader."""
        await self.aclose()
