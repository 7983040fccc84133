"""A connection that is read once for all waits that use it, and again when its key or secret is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.hooks.once import Once
from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.connection import ConnectionSettings


class SharedConnection:
    """The hook of one connection in one event loop.

    Triggers that each read the connection would queue up at the triggerer's supervisor.

    :param conn_id: id of the connection.
    """

    def __init__(self, conn_id: str) -> None:
        self.conn_id = conn_id
        self._hook = Once(self._read)

    async def hook(self) -> AsyncWebDataHook:
        """Return the hook, its connection read.

        :raises ConfigurationError: the connection cannot work.
        :raises AirflowNotFoundException: there is no such connection.
        """
        return await self._hook.get()

    async def _read(self) -> AsyncWebDataHook:
        hook = AsyncWebDataHook(self.conn_id)
        await hook.get_settings()
        return hook

    async def settings(self) -> ConnectionSettings:
        """Return the connection's settings."""
        return await (await self.hook()).get_settings()

    async def renew(self, refused: AsyncWebDataHook) -> AsyncWebDataHook:
        """Read the connection again, unless that was done since.

        :param refused: the hook whose key or secret was refused.
        """
        if self._hook.made is refused and (hook := self.take()) is not None:
            await hook.close()
        return await self.hook()

    def take(self) -> AsyncWebDataHook | None:
        """Return the hook if the connection was read, and forget it: the next call reads it again."""
        return self._hook.take()
