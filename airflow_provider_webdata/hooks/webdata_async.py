# SPDX-License-Identifier: Apache-2.0
"""The asynchronous hook, for triggers and asynchronous tasks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_webdata.api.client import AsyncWebDataClient
from airflow_provider_webdata.api.errors import CallRefusedError
from airflow_provider_webdata.api.servers import UNKNOWN
from airflow_provider_webdata.hooks.connection import ConnectionSettings, existing, settings_of
from airflow_provider_webdata.hooks.masking import amask
from airflow_provider_webdata.hooks.once import Once
from airflow_provider_webdata.hooks.operations.files import FileOperations
from airflow_provider_webdata.hooks.operations.indexes import IndexOperations
from airflow_provider_webdata.hooks.operations.jobs import JobOperations
from airflow_provider_webdata.hooks.operations.monitors import MonitorOperations
from airflow_provider_webdata.hooks.operations.pages import PageOperations
from airflow_provider_webdata.hooks.operations.providers import ProviderOperations
from airflow_provider_webdata.hooks.operations.requests import RequestOperations
from airflow_provider_webdata.hooks.operations.sessions import SessionOperations
from airflow_provider_webdata.hooks.operations.team import TeamOperations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from types import TracebackType

    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
    from airflow_provider_webdata.api.models import ParseUpload
    from airflow_provider_webdata.api.multipart import Upload
    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.hooks.call_guard import CallGuard
    from airflow_provider_webdata.hooks.calls import Call
    from airflow_provider_webdata.inbox.reader import AsyncInboxReader


class WebDataAsyncHook(
    PageOperations,
    ProviderOperations,
    IndexOperations,
    JobOperations,
    FileOperations,
    SessionOperations,
    MonitorOperations,
    TeamOperations,
    RequestOperations,
    BaseHook,
):
    """The web data service through an Airflow connection, without blocking; see `WebDataHook`.

    :param webdata_conn_id: id of a connection of type `webdata`.
    """

    conn_name_attr = "webdata_conn_id"
    default_conn_name = "webdata_default"
    conn_type = "webdata"
    hook_name = "Web Data"

    _in_thread: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None

    def __init__(self, webdata_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.webdata_conn_id = webdata_conn_id
        self._settings: Once[ConnectionSettings] = Once(self._read_settings)
        self._client: AsyncWebDataClient | None = None
        self._guard: CallGuard | None = None

    @classmethod
    def of(
        cls,
        settings: ConnectionSettings,
        *,
        retry_budget: float | None = None,
        max_concurrency: int | None = None,
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None,
    ) -> WebDataAsyncHook:
        """Return a hook for settings that were read before, without looking up the connection again.

        :param settings: settings of the connection.
        :param retry_budget: seconds that a call may spend on retries. Default: the connection's.
        :param max_concurrency: maximum number of concurrent requests. Default: the connection's.
        :param in_thread: runs the function that parses a response in a thread. None: parse on the event loop.
        """
        own = {"retry_budget": retry_budget, "max_concurrency": max_concurrency}
        given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
        hook = cls(settings.conn_id)
        hook._settings.made = (
            replace(settings, client=replace(settings.client, **given)) if given else settings
        )
        hook._in_thread = in_thread
        return hook

    async def get_settings(self) -> ConnectionSettings:
        """Return the connection's settings, read once. Airflow masks every secret in them."""
        return await self._settings.get()

    async def _read_settings(self) -> ConnectionSettings:
        try:
            connection = await self.aget_connection(self.webdata_conn_id)
        except AirflowNotFoundException:
            # `airflow dags test` runs triggers where only the blocking lookup reaches Airflow's database:
            # docs/contributing/upstream/dags_test_connections.md
            connection = await asyncio.to_thread(existing, self.get_connection, self.webdata_conn_id)
        settings = settings_of(connection)
        await amask(settings.secrets())
        return settings

    async def get_conn(self) -> AsyncWebDataClient:
        """Return the client of this hook, for calls without a separate method.

        :raises CallRefusedError: the hook is guarded. The client would not enforce its limits.
        """
        if self._guard is not None:
            raise CallRefusedError("a guarded hook does not expose its client; call the hook's methods")
        return await self._connected()

    async def _connected(self) -> AsyncWebDataClient:
        if self._client is None:
            settings = await self.get_settings()
            # No await below this line: concurrent callers share one client.
            self._client = self._client or AsyncWebDataClient(settings.client, self._in_thread)
        return self._client

    async def close(self) -> None:
        """Close the client's connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> WebDataAsyncHook:
        """Return the hook itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()

    def _server(self) -> Server:
        settings = self._settings.made
        return UNKNOWN if settings is None else settings.client.server

    async def _execute(self, call: Call[ResponseT]) -> ResponseT:
        client = await self._connected()
        if self._guard is None:
            return await client.call(call.endpoint, **call.arguments())
        # The DNS lookup and the task state store block.
        call, reservation = await asyncio.to_thread(self._guard.admit, call)
        try:
            answer = await client.call(call.endpoint, **call.arguments())
        except BaseException as error:
            await asyncio.to_thread(self._guard.failed, call, reservation, error)
            raise
        await asyncio.to_thread(self._guard.answered, call, reservation, answer)
        return answer

    async def _check(self, call: Call[Any]) -> None:
        if self._guard is not None:
            # The ledger needs to know whether the server bills.
            await self._connected()
            await asyncio.to_thread(self._guard.check, call)

    async def _send_file(self, target: ParseUpload, upload: Upload) -> None:
        await (await self._connected()).send_file(target, upload)

    async def _follow(self, endpoint: Endpoint[ResponseT], link: str) -> ResponseT:
        return await (await self._connected()).follow(endpoint, link)

    async def _mask(self, secrets: Iterable[str]) -> None:
        await amask(secrets)

    async def inbox(self) -> AsyncInboxReader:
        """See `WebDataHook.inbox`."""
        # Only waits by webhook need these modules, which would slow down the import of the hook by a tenth.
        from airflow_provider_webdata.hooks.webhooks import inbox_address
        from airflow_provider_webdata.inbox.reader import AsyncInboxReader

        return AsyncInboxReader(inbox_address(await self.get_settings()))
