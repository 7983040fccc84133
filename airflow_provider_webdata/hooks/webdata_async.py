"""The asynchronous twin of the hook, for triggers and asynchronous tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from airflow_provider_webdata.api.client import AsyncWebDataClient
from airflow_provider_webdata.hooks.connection import ConnectionSettings, settings_of
from airflow_provider_webdata.hooks.masking import amask
from airflow_provider_webdata.hooks.once import Once
from airflow_provider_webdata.hooks.operations.files import AsyncFileOperations
from airflow_provider_webdata.hooks.operations.jobs import AsyncJobOperations
from airflow_provider_webdata.hooks.operations.monitors import AsyncMonitorOperations
from airflow_provider_webdata.hooks.operations.pages import AsyncPageOperations
from airflow_provider_webdata.hooks.operations.sessions import AsyncSessionOperations
from airflow_provider_webdata.hooks.operations.team import AsyncTeamOperations

if TYPE_CHECKING:
    from types import TracebackType

    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
    from airflow_provider_webdata.hooks.calls import Call
    from airflow_provider_webdata.inbox.reader import AsyncInboxReader


class AsyncWebDataHook(
    AsyncPageOperations,
    AsyncJobOperations,
    AsyncFileOperations,
    AsyncSessionOperations,
    AsyncMonitorOperations,
    AsyncTeamOperations,
    BaseHook,
):
    """The web data service through an Airflow connection, without blocking; see `WebDataHook`.

    :param webdata_conn_id: id of a connection of type `webdata`.
    """

    conn_name_attr = "webdata_conn_id"
    default_conn_name = "webdata_default"
    conn_type = "webdata"
    hook_name = "Web Data"

    def __init__(self, webdata_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.webdata_conn_id = webdata_conn_id
        self._settings = Once(self._read_settings)
        self._client: AsyncWebDataClient | None = None

    @classmethod
    def of(
        cls,
        settings: ConnectionSettings,
        *,
        retry_budget: float | None = None,
        max_concurrency: int | None = None,
    ) -> AsyncWebDataHook:
        """Return a hook of a connection that was read before; Airflow is not asked again.

        :param settings: what the connection says.
        :param retry_budget: seconds that a call may spend on repetitions, in place of the connection's.
        :param max_concurrency: most requests in flight at once, in place of the connection's.
        """
        own = {"retry_budget": retry_budget, "max_concurrency": max_concurrency}
        given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
        hook = cls(settings.conn_id)
        hook._settings.made = replace(settings, client=replace(settings.client, **given))
        return hook

    async def get_settings(self) -> ConnectionSettings:
        """Return the connection's settings, read once; Airflow's masker knows every secret in them."""
        return await self._settings.get()

    async def _read_settings(self) -> ConnectionSettings:
        settings = settings_of(await self.aget_connection(self.webdata_conn_id))
        await amask(settings.secrets())
        return settings

    async def get_conn(self) -> AsyncWebDataClient:
        """Return the client of this hook, for calls that have no method of their own."""
        if self._client is None:
            settings = await self.get_settings()
            # Nothing is awaited from here on: callers that come at once share one client.
            self._client = self._client or AsyncWebDataClient(settings.client)
        return self._client

    async def close(self) -> None:
        """Close the client's connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> AsyncWebDataHook:
        """Return the hook itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()

    async def _execute(self, call: Call[ResponseT]) -> ResponseT:
        return await (await self.get_conn()).call(call.endpoint, **call.arguments())

    async def _follow(self, endpoint: Endpoint[ResponseT], link: str) -> ResponseT:
        return await (await self.get_conn()).follow(endpoint, link)

    async def inbox(self) -> AsyncInboxReader:
        """See `WebDataHook.inbox`."""
        from airflow_provider_webdata.hooks.inbox import inbox_address
        from airflow_provider_webdata.inbox.reader import AsyncInboxReader

        return AsyncInboxReader(inbox_address(await self.get_settings()))
