# SPDX-License-Identifier: Apache-2.0
"""Blocking and asynchronous clients that call declared endpoints over httpx, each with its own connection pool.

The clients only transfer bytes. Both use `exchange` to build requests and interpret responses.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync

from airflow_provider_webdata.api import exchange
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.errors import TransportError, WebDataError
from airflow_provider_webdata.api.file_transfer import FileTransfer
from airflow_provider_webdata.api.http_clients import http_client
from airflow_provider_webdata.api.pools import AsyncPools
from airflow_provider_webdata.api.retry import Attempts
from airflow_provider_webdata.common.deadline import AsyncDeadline, Deadline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
    from airflow_provider_webdata.api.models import ParseUpload
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.api.multipart import Upload
    from airflow_provider_webdata.common.http_library import httpx

__all__ = ["AsyncWebDataClient", "ClientConfig", "WebDataClient"]


class WebDataClient:
    """Blocking client. Thread-safe; close it, or use it as a context manager.

    :param config: settings of the client.
    :param on_response: called with each response before its body is read.
    """

    def __init__(
        self, config: ClientConfig, on_response: Callable[[httpx.Response], None] | None = None
    ) -> None:
        self.config = config
        hooks = {"response": [on_response]} if on_response else {}
        self._http = http_client(**exchange.http_options(config), event_hooks=hooks)

    def call(
        self,
        endpoint: Endpoint[ResponseT],
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: RequestModel | None = None,
        extra_body: Mapping[str, Any] | None = None,
        upload: Upload | None = None,
        idempotency_key: str | None = None,
    ) -> ResponseT:
        """Call an endpoint and return the parsed response.

        :param endpoint: the endpoint to call.
        :param path: values of the path's placeholders.
        :param query: query parameters; None values are omitted.
        :param body: the request model.
        :param extra_body: merged into `body` unchanged and unchecked; its values take precedence.
        :param upload: a file; the body is then sent as its options.
        :param idempotency_key: value of the endpoint's `key_header`, if it has one.
        :raises InvalidRequestError: a path value is empty or not an identifier; nothing was sent.
        :raises UploadError: the file could not be read completely, or its size or type is wrong.
        :raises APIError: the service reports a failure; the subclass identifies its kind.
        :raises InvalidResponseError: the response does not match the service's documentation.
        :raises TransportError: no complete response was received.
        """
        prepared = exchange.prepare(
            self.config, endpoint, path, query, body, extra_body, upload, idempotency_key=idempotency_key
        )
        return self._execute(prepared)

    def send_file(self, target: ParseUpload, upload: Upload) -> None:
        """Upload a file to the storage from `PARSE_UPLOAD`, without the API key.

        :param target: the service's response to `PARSE_UPLOAD`.
        :param upload: the file; its size must be known.
        :raises UploadError: the storage rejected the file, or the file's size or type is wrong.
        :raises InvalidResponseError: the target is unusable.
        """
        FileTransfer(self.config, target, upload).send()

    def follow(self, endpoint: Endpoint[ResponseT], link: str) -> ResponseT:
        """Fetch the page behind a `next` link from this connection's origin, even if the link names another host.

        :param endpoint: the endpoint that returned the link.
        :param link: the link; only its path, starting at `/v2`, and its query are used.
        :raises InvalidResponseError: the link does not point to the service's API.
        """
        return self._execute(exchange.prepare_link(self.config, endpoint, link))

    def _execute(self, prepared: exchange.Prepared[ResponseT]) -> ResponseT:
        attempts = Attempts(
            self.config.retry_budget, prepared.can_be_sent, is_repeatable=prepared.is_repeatable
        )
        while True:
            try:
                return self._attempt(prepared)
            except WebDataError as error:
                pause = attempts.pause_after(error)
                if pause is None:
                    raise
            time.sleep(pause)

    def _attempt(self, prepared: exchange.Prepared[ResponseT]) -> ResponseT:
        deadline = Deadline(prepared.seconds)
        with (
            exchange.transport_errors(prepared, deadline),
            deadline,
            self._http.stream(**prepared.blocking()) as response,
        ):
            reader = exchange.Reader(prepared, response)
            for chunk in response.iter_bytes():
                if not reader.feed(chunk):
                    break
        return reader.finish()

    @property
    def is_closed(self) -> bool:
        """Whether all pooled connections are closed."""
        return self._http.is_closed

    def close(self) -> None:
        """Close all pooled connections."""
        self._http.close()

    def __enter__(self) -> WebDataClient:
        """Return the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()


class AsyncWebDataClient:
    """Asynchronous client with the methods of `WebDataClient`.

    :param config: settings of the client.
    :param in_thread: runs the function that parses a response in a thread; None: parse on the event loop.
    """

    def __init__(
        self, config: ClientConfig, in_thread: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None
    ) -> None:
        self.config = config
        self._in_thread = in_thread
        self._pools = AsyncPools(exchange.http_options(config), config.max_concurrency)

    async def call(
        self,
        endpoint: Endpoint[ResponseT],
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: RequestModel | None = None,
        extra_body: Mapping[str, Any] | None = None,
        upload: Upload | None = None,
        idempotency_key: str | None = None,
    ) -> ResponseT:
        """Call an endpoint; see `WebDataClient.call`."""
        prepared = exchange.prepare(
            self.config, endpoint, path, query, body, extra_body, upload, idempotency_key=idempotency_key
        )
        return await self._execute(prepared)

    async def send_file(self, target: ParseUpload, upload: Upload) -> None:
        """See `WebDataClient.send_file`."""
        await FileTransfer(self.config, target, upload).asend()

    async def follow(self, endpoint: Endpoint[ResponseT], link: str) -> ResponseT:
        """Fetch the page behind a `next` link; see `WebDataClient.follow`."""
        return await self._execute(exchange.prepare_link(self.config, endpoint, link))

    async def _execute(self, prepared: exchange.Prepared[ResponseT]) -> ResponseT:
        attempts = Attempts(
            self.config.retry_budget, prepared.can_be_sent, is_repeatable=prepared.is_repeatable
        )
        while True:
            try:
                return await self._attempt(prepared)
            except WebDataError as error:
                if isinstance(error, TransportError) and exchange.may_have_lost_alert(prepared, error):
                    await run_sync(exchange.check_certificate_alert, prepared)
                pause = attempts.pause_after(error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _attempt(self, prepared: exchange.Prepared[ResponseT]) -> ResponseT:
        deadline = AsyncDeadline(prepared.seconds)
        with exchange.transport_errors(prepared, deadline):
            async with (
                self._pools.client() as http,
                deadline,
                http.stream(**prepared.asynchronous(deadline)) as response,
            ):
                reader = exchange.Reader(prepared, response)
                received = 0
                async for chunk in response.aiter_bytes():
                    deadline.extend_by(response.num_bytes_downloaded - received)
                    received = response.num_bytes_downloaded
                    if not reader.feed(chunk):
                        break
        if self._in_thread is None:
            return reader.finish()
        parsed: ResponseT = await self._in_thread(reader.finish)
        return parsed

    @property
    def is_closed(self) -> bool:
        """Whether all pooled connections are closed."""
        return self._pools.is_closed

    async def aclose(self) -> None:
        """Close all pooled connections."""
        await self._pools.aclose()

    async def __aenter__(self) -> AsyncWebDataClient:
        """Return the client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.aclose()
