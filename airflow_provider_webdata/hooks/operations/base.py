"""The part of a hook that the methods of a resource use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
    from airflow_provider_webdata.api.models import ParseUpload
    from airflow_provider_webdata.api.multipart import Upload
    from airflow_provider_webdata.hooks.calls import Call


class Operations:
    """Base of the methods, which await these of the hook and no others. See `hooks.blocking`."""

    async def _execute(self, call: Call[ResponseT]) -> ResponseT:
        raise NotImplementedError

    async def _send_file(self, target: ParseUpload, upload: Upload) -> None:
        raise NotImplementedError

    async def _follow(self, endpoint: Endpoint[ResponseT], link: str) -> ResponseT:
        raise NotImplementedError

    async def _mask(self, secrets: Iterable[str]) -> None:
        raise NotImplementedError
