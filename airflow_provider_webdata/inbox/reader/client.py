# SPDX-License-Identifier: Apache-2.0
"""Sync and async clients of the inbox: the feed, searches, and single deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.http_clients import async_http_client, http_client

from . import protocol

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Unpack

    from airflow_provider_webdata.common.http_library import httpx

    from .delivery import Delivery, DeliveryPage
    from .protocol import InboxAddress, Query


class InboxReader:
    """The inbox over blocking HTTP. Thread-safe; close it, or use it as a context manager.

    Every method raises `InboxError`: `InboxUnreachableError` (retry), `InboxRefusedError` (the secret differs, or the
    server does not know the connection), `InboxMissingError` (no inbox at this address), and `InboxAnswerError`.
    """

    def __init__(self, address: InboxAddress) -> None:
        self.address = address
        self._http = http_client(**protocol.client_options(address))

    def check(self) -> None:
        """Return if the inbox answers and accepts the connection's token; takes at most `CHECK_SECONDS`."""
        protocol.page_of(self.address, self._send(protocol.check_request(self.address)))

    def feed(self, after: str | None = None, wait: float = 0.0, **query: Unpack[Query]) -> DeliveryPage:
        """Return the next deliveries in the order of the feed.

        :param after: cursor of an earlier page; `END`: only new deliveries; None: from the oldest stored.
        :param wait: seconds, 0 to 30, to wait for a delivery if the page is empty.
        :raises CursorAheadError: the inbox was reset after it issued the cursor.
        """
        request = protocol.feed_request(self.address, after, wait, query)
        return protocol.page_of(self.address, self._send(request))

    def search(self, *, after: str | None = None, **query: Unpack[Query]) -> DeliveryPage:
        """Return a page like `feed` without waiting, for up to 1000 values in total.

        :raises CursorAheadError: the inbox was reset after it issued the cursor.
        """
        return protocol.page_of(self.address, self._send(protocol.search_request(self.address, after, query)))

    def fetch(self, delivery_id: int) -> Delivery:
        """Return one delivery with its body of any size.

        :raises DeliveryGoneError: the inbox no longer has the delivery.
        """
        response = self._send(protocol.fetch_request(self.address, delivery_id))
        return protocol.delivery_of(self.address, response, delivery_id)

    def _send(self, request: dict[str, Any]) -> httpx.Response:
        try:
            return self._http.request(**request)
        except protocol.NO_RESPONSE as error:
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
    """The inbox over non-blocking HTTP, with the interface of `InboxReader`."""

    def __init__(self, address: InboxAddress) -> None:
        self.address = address
        self._http = async_http_client(**protocol.client_options(address))

    async def feed(self, after: str | None = None, wait: float = 0.0, **query: Unpack[Query]) -> DeliveryPage:
        """Return the next deliveries in the order of the feed; see `InboxReader.feed`."""
        request = protocol.feed_request(self.address, after, wait, query)
        return protocol.page_of(self.address, await self._send(request))

    async def search(self, *, after: str | None = None, **query: Unpack[Query]) -> DeliveryPage:
        """Return a page like `feed` without waiting; see `InboxReader.search`."""
        return protocol.page_of(
            self.address, await self._send(protocol.search_request(self.address, after, query))
        )

    async def fetch(self, delivery_id: int) -> Delivery:
        """Return one delivery with its body; see `InboxReader.fetch`."""
        response = await self._send(protocol.fetch_request(self.address, delivery_id))
        return protocol.delivery_of(self.address, response, delivery_id)

    async def _send(self, request: dict[str, Any]) -> httpx.Response:
        try:
            return await self._http.request(**request)
        except protocol.NO_RESPONSE as error:
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
