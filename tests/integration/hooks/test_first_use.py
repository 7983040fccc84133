# SPDX-License-Identifier: Apache-2.0
"""Concurrent first calls of a hook."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from airflow_provider_webdata.api import client as clients
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.once import Once
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from airflow_provider_webdata.waiting.hub import Hub
from tests.support.fault_server import API_KEY, FaultServer, answer

FIRST_CALLS = 50


class Service(FaultServer):
    """Answers searches, and counts concurrent requests and their connections."""

    def __init__(self, least: int) -> None:
        super().__init__([self._respond])
        self._least, self._full = least, threading.Event()
        self._counting = threading.Lock()
        self._now = self.most = 0
        self.ports: set[int] = set()

    def _respond(self, connection: Any) -> None:
        with self._counting:
            self.ports.add(connection.getpeername()[1])
            self._now += 1
            self.most = max(self.most, self._now)
            if self._now >= self._least:
                self._full.set()
        self._full.wait(30)
        with self._counting:
            self._now -= 1
        answer(body='{"success": true, "data": {"web": []}, "creditsUsed": 2}')(connection)


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Any:
    server = Service(request.param)
    yield server
    server.close()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All clients that are created."""
    found: list[Any] = []
    for kind in (clients.WebDataClient, clients.AsyncWebDataClient):

        def noting(self: Any, *arguments: Any, _init: Any = kind.__init__) -> None:
            found.append(self)
            _init(self, *arguments)

        monkeypatch.setattr(kind, "__init__", noting)
    return found


@pytest.mark.parametrize("service", [10], indirect=True)
async def test_fifty_first_calls_share_a_client(service: Service, connect: Any, made: list[Any]) -> None:
    """`max_concurrency` bounds them and their connections, and `close` closes all."""
    connect(service.url, API_KEY, max_concurrency=10)
    async with WebDataAsyncHook() as hook:
        found = await asyncio.gather(*(hook.search(query=f"q {n}") for n in range(FIRST_CALLS)))
    assert len(found) == FIRST_CALLS
    assert len(made) == 1
    assert made[0].is_closed
    assert (service.most, len(service.ports)) == (10, 10)


@pytest.mark.parametrize("service", [8], indirect=True)
def test_threads_share_a_client(service: Service, connect: Any, made: list[Any]) -> None:
    connect(service.url, API_KEY)
    together = threading.Barrier(8)

    def first_call(number: int) -> Any:
        together.wait(30)
        return hook.search(query=f"q {number}").success

    with WebDataHook() as hook, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(first_call, range(8))) == [True] * 8
    assert len(made) == 1
    assert made[0].is_closed


@pytest.mark.parametrize("service", [1], indirect=True)
async def test_the_first_caller_is_cancelled(service: Service, connect: Any, made: list[Any]) -> None:
    """The others get the connection that is being read."""
    connect(service.url, API_KEY)
    async with WebDataAsyncHook() as hook:
        calls = [asyncio.create_task(hook.search(query=f"q {n}")) for n in range(3)]
        await asyncio.sleep(0)
        calls[0].cancel()
        first, *others = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError)
    assert [found.success for found in others] == [True, True]
    assert len(made) == 1


@pytest.mark.parametrize("service", [1], indirect=True)
async def test_a_failed_read_is_not_kept(service: Service, connect: Any, made: list[Any]) -> None:
    """All waiting calls get its error; the next call reads the connection again."""
    connect(service.url, "Bearer key")
    async with WebDataAsyncHook() as hook:
        calls = (hook.credit_usage() for _ in range(3))
        failed = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in failed] == [ConfigurationError] * 3
        connect(service.url, API_KEY)
        assert (await hook.search(query="q")).success
    assert len(made) == 1


@pytest.mark.parametrize("service", [1], indirect=True)
async def test_a_call_while_the_hook_closes(service: Service, connect: Any) -> None:
    """It gets another client, which the next `close` closes."""
    connect(service.url, API_KEY)
    hook = WebDataAsyncHook()
    await hook.search(query="q")
    closing = asyncio.create_task(hook.close())
    await asyncio.sleep(0)
    assert (await hook.search(query="q")).success
    await closing
    client = await hook.get_conn()
    assert not client.is_closed
    await hook.close()
    assert client.is_closed


async def test_waits_share_a_hook(connect: Any) -> None:
    """All waits share one read of the connection."""
    connect("https://api.example", API_KEY)
    shared = Hub.of("webdata_default").connection
    first, *others = await asyncio.gather(*(shared.hook() for _ in range(FIRST_CALLS)))
    assert all(hook is first for hook in others)
    await shared.close()


async def test_a_value_without_callers_is_kept_for_the_next() -> None:
    begun = 0
    ready = asyncio.Event()

    async def make() -> object:
        nonlocal begun
        begun += 1
        await ready.wait()
        return object()

    once = Once(make)
    callers = [asyncio.create_task(once.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    ready.set()
    thing = await once.get()
    assert (once.made, once.reset(), begun) == (thing, thing, 1)
    assert await once.get() is not thing
