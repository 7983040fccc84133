"""The asynchronous twin of the hook, for triggers and asynchronous tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk import log as airflow_log

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.client import AsyncWebDataClient
from airflow_provider_webdata.hooks import calls
from airflow_provider_webdata.hooks.connection import ConnectionSettings, settings_of

if TYPE_CHECKING:
    from types import TracebackType

    from pydantic import JsonValue

    from airflow_provider_webdata.api.endpoints import ResponseT
    from airflow_provider_webdata.inbox.reader import AsyncInboxReader

Body = Mapping[str, Any]


async def _mask(secrets: list[JsonValue]) -> None:
    # From within the event loop the blocking form cannot tell the supervisor; Airflow 3.2 has no other.
    amask_secret = getattr(airflow_log, "amask_secret", None)
    if amask_secret is None:
        airflow_log.mask_secret(secrets)
    else:
        await amask_secret(secrets)


class AsyncWebDataHook(BaseHook):
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
        self._settings: ConnectionSettings | None = None
        self._client: AsyncWebDataClient | None = None

    async def get_settings(self) -> ConnectionSettings:
        """Return the connection's settings, read once; Airflow's masker knows every secret in them."""
        if self._settings is None:
            settings = settings_of(await self.aget_connection(self.webdata_conn_id))
            await _mask(list(settings.secrets()))
            self._settings = settings
        return self._settings

    async def get_conn(self) -> AsyncWebDataClient:
        """Return the client of this hook, for calls that have no method of their own."""
        if self._client is None:
            self._client = AsyncWebDataClient((await self.get_settings()).client)
        return self._client

    async def close(self) -> None:
        """Close the client's connections; a later call opens new ones."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def __aenter__(self) -> AsyncWebDataHook:
        """Return the hook itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()

    async def _execute(self, call: calls.Call[ResponseT]) -> ResponseT:
        return await (await self.get_conn()).call(call.endpoint, **call.arguments())

    async def search(
        self, request: models.SearchRequest | Body, *, extra_body: Body | None = None
    ) -> models.SearchResponse:
        """See `WebDataHook.search`."""
        return await self._execute(calls.search(request, extra_body))

    async def create_monitor(
        self, request: models.MonitorCreateRequest | Body, *, extra_body: Body | None = None
    ) -> models.Monitor:
        """See `WebDataHook.create_monitor`."""
        return (await self._execute(calls.create_monitor(request, extra_body))).data

    async def list_monitors(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> list[models.Monitor]:
        """See `WebDataHook.list_monitors`."""
        return (await self._execute(calls.list_monitors(limit, offset))).data

    async def iter_monitors(self) -> AsyncIterator[models.Monitor]:
        """See `WebDataHook.iter_monitors`."""
        pages = calls.MonitorPages()
        while pages.query is not None:
            for monitor in pages.take(await self.list_monitors(**pages.query)):
                yield monitor

    async def get_monitor(self, monitor_id: str) -> models.Monitor:
        """See `WebDataHook.get_monitor`."""
        return (await self._execute(calls.of_monitor(endpoints.GET_MONITOR, monitor_id))).data

    async def update_monitor(
        self,
        monitor_id: str,
        request: models.MonitorUpdateRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
    ) -> models.Monitor:
        """See `WebDataHook.update_monitor`."""
        return (await self._execute(calls.update_monitor(monitor_id, request, extra_body))).data

    async def delete_monitor(self, monitor_id: str) -> models.DeleteResponse:
        """See `WebDataHook.delete_monitor`."""
        return await self._execute(calls.of_monitor(endpoints.DELETE_MONITOR, monitor_id))

    async def run_monitor(self, monitor_id: str) -> models.MonitorCheck:
        """See `WebDataHook.run_monitor`."""
        return calls.check_of_run(await self._execute(calls.of_monitor(endpoints.RUN_MONITOR, monitor_id)))

    async def list_monitor_checks(
        self,
        monitor_id: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        status: str | None = None,
    ) -> list[models.MonitorCheck]:
        """See `WebDataHook.list_monitor_checks`."""
        return (await self._execute(calls.list_monitor_checks(monitor_id, limit, offset, status))).data

    async def get_monitor_check(
        self,
        monitor_id: str,
        check_id: str,
        *,
        limit: int | None = None,
        skip: int | None = None,
        status: str | None = None,
    ) -> models.MonitorCheckDetail:
        """See `WebDataHook.get_monitor_check`."""
        return (await self._execute(calls.get_monitor_check(monitor_id, check_id, limit, skip, status))).data

    async def iter_monitor_check_pages(
        self, monitor_id: str, check_id: str, *, status: str | None = None
    ) -> AsyncIterator[models.MonitorCheckDetail]:
        """See `WebDataHook.iter_monitor_check_pages`."""
        pages = calls.CheckPages()
        call = calls.get_monitor_check(monitor_id, check_id, calls.PAGE_SIZE, None, status)
        answer = await self._execute(call)
        while True:
            yield pages.take(answer.data)
            link = pages.next_link(answer.next, answer.data.next)
            if link is None:
                return
            answer = await (await self.get_conn()).follow(call.endpoint, link)

    async def get_credit_usage(self) -> models.CreditUsage:
        """See `WebDataHook.get_credit_usage`."""
        return (await self._execute(calls.Call(endpoints.CREDIT_USAGE))).data

    async def inbox(self) -> AsyncInboxReader:
        """See `WebDataHook.inbox`."""
        from airflow_provider_webdata.hooks.inbox import inbox_address
        from airflow_provider_webdata.inbox.reader import AsyncInboxReader

        return AsyncInboxReader(inbox_address(await self.get_settings()))
