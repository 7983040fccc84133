# SPDX-License-Identifier: Apache-2.0
"""The reason of an error, without numbers of the operating system."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.common.plain_errors import plain_reason
from tests.support.ports import free_port


async def _get(url: str) -> None:
    async with httpx.AsyncClient() as client:
        await client.get(url)


def _sync_get(url: str) -> None:
    httpx.get(url)


def _error(call: Callable[[str], Awaitable[None] | None], url: str) -> Exception:
    try:
        if (answer := call(url)) is not None:
            asyncio.run(answer)  # type: ignore[arg-type]
    except httpx.HTTPError as error:
        return error
    raise AssertionError(url)


def test_the_network() -> None:
    refused = f"http://127.0.0.1:{free_port()}"
    for call in (_sync_get, _get):
        assert plain_reason(_error(call, refused)) == "connection refused: no server listens there"
        lost = plain_reason(_error(call, "http://no-such-host.invalid"))
        assert lost.startswith("the host name cannot be resolved: ")
        assert "rrno" not in lost


def test_files(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as raised:
        missing.read_text()
    expected = f"No such file or directory: '{missing}'"
    assert plain_reason(raised.value) == brief(raised.value) == expected


def test_other_errors() -> None:
    assert plain_reason(httpx.ReadError("")) == "ReadError"
    assert len(plain_reason(OSError("x" * 500))) == 200
    assert brief(ValueError("[Errno 1] of the user")) == "[Errno 1] of the user"
