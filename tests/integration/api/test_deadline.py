"""A call ends in time, however slowly the bytes come and go, and a line that is slow but alive is not cut off."""

from __future__ import annotations

import asyncio
import gzip
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from airflow_provider_webdata.api import deadline, endpoints, errors, exchange, models
from airflow_provider_webdata.api.client import AsyncWebDataClient, ClientConfig, WebDataClient
from airflow_provider_webdata.api.multipart import Upload
from tests.support.fault_server import API_KEY, Caller, FaultServer, Step, answer, drip
from tests.support.waiting import PATIENCE

LIST: dict[str, Any] = {"endpoint": endpoints.LIST_MONITORS}
SEARCH: dict[str, Any] = {"endpoint": endpoints.SEARCH, "body": models.SearchRequest(query="q")}
OK = answer(body='{"data": []}')
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
GZIP = gzip.compress(b'{"data": []}' + bytes(1000))

DRIPS: dict[str, Step] = {
    "status line": drip(b"HTTP/1.1 200 ", b"O"),
    "headers": drip(HEAD + b"x: ", b"y"),
    "many headers": drip(HEAD, b"a: b\r\n"),
    "informational answers": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": drip(HEAD + b"content-length: 1000000\r\n\r\n{", b" "),
    "chunks": drip(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "the size of a chunk": drip(HEAD + b"transfer-encoding: chunked\r\n\r\n1;", b"x"),
    "until it is closed": drip(HEAD + b"connection: close\r\n\r\n", b" "),
    "compressed body": drip(
        HEAD + b"content-encoding: gzip\r\ncontent-length: 1000000\r\n\r\n" + GZIP[:20], b"\0"
    ),
    "body of an error": drip(b"HTTP/1.1 400 X\r\ncontent-length: 1000000\r\n\r\n{", b" "),
}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline that is soon over, while no single read takes too long."""
    monkeypatch.setattr(exchange.Prepared, "seconds", 0.5)


@pytest.mark.parametrize("step", DRIPS.values(), ids=DRIPS.keys())
async def test_an_answer_that_drips(caller: Caller, serve: Any, short: None, step: Step) -> None:
    """The drip never ends by itself."""
    server = serve(step)
    caller.options["retry_budget"] = 0
    with pytest.raises(errors.TransportError, match=r"no whole answer from http\S+ within 0\.5") as caught:
        await caller.call(server.url, **SEARCH)
    assert caught.value.sent
    # It may read what was sent after the client has given up.
    assert server.count(1) == 1


@pytest.mark.parametrize(
    ("call", "least", "most"),
    [
        (LIST, 60, 60),
        ({**SEARCH, "body": models.SearchRequest(query="q", timeout=120_000)}, 150, 180),
        ({"endpoint": endpoints.SCRAPE, "body": models.ScrapeRequest(url="a.example", timeout=1000)}, 60, 60),
    ],
    ids=["the connection's timeout", "the request's own", "the longer of both"],
)
def test_how_long_an_attempt_may_take(call: dict[str, Any], least: float, most: float) -> None:
    config = ClientConfig("https://host", API_KEY, timeout=30)
    prepared = exchange.prepare(config, call["endpoint"], None, None, call.get("body"), None)
    assert least <= prepared.seconds <= most


async def test_a_slow_line_that_is_alive(
    caller: Caller, serve: Any, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes three times the deadline; each of its blocks adds 20 seconds."""
    monkeypatch.setattr(deadline, "LEAST_BYTES_PER_SECOND", 100)
    body = b'{"data": []' + b" " * 60_000 + b"}"
    server = serve(
        drip(HEAD + f"content-length: {len(body)}\r\n\r\n".encode() + body, size=2000, seconds=0.05)
    )
    assert await caller.call(server.url, **LIST)


@pytest.fixture
def slow_reader() -> Iterator[Callable[[], FaultServer]]:
    servers: list[FaultServer] = []

    def sip(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        while connection.recv(256):
            time.sleep(0.02)

    def start() -> FaultServer:
        servers.append(FaultServer([sip], read_body=False))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def large_bodies() -> dict[str, Callable[[], dict[str, Any]]]:
    size = 24 * 2**20

    def upload() -> dict[str, Any]:
        file = Upload("parse", io.BytesIO(bytes(size)), "a.pdf", max_bytes=2 * size)
        return {"endpoint": endpoints.PARSE, "body": models.ParseOptions(timeout=1000), "upload": file}

    return {"JSON": lambda: {**SEARCH, "extra_body": {"x": "x" * size}}, "file": upload}


@pytest.mark.parametrize("make", large_bodies().values(), ids=large_bodies().keys())
async def test_a_body_that_is_taken_in_sips(
    caller: Caller, slow_reader: Any, short: None, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    monkeypatch.setattr(deadline, "LEAST_BYTES_PER_SECOND", 10**9)
    caller.options["retry_budget"] = 0
    with pytest.raises(errors.TransportError, match="no whole answer"):
        await caller.call(slow_reader().url, **make())


async def test_a_handshake_that_drips(caller: Caller) -> None:
    """A TLS record that is announced and never complete."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            try:
                drip(b"\x16\x03\x03\x40\x00", b"\0")(connection)
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    caller.options |= {"timeout": 0.5, "retry_budget": 0}
    with pytest.raises(errors.TransportError, match=r"no connection .* within 0\.5 s"):
        await caller.call(f"https://127.0.0.1:{listener.getsockname()[1]}", **LIST)
    # The client hung up.
    thread.join()
    listener.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_no_connection_is_lost_to_a_deadline(
    serve: Any, short: None, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The only connection there may be is free again each time."""
    server = serve(DRIPS["body"], DRIPS["headers"], OK)
    config = ClientConfig(server.url, API_KEY, max_concurrency=1, retry_budget=0)
    if kind == "sync":
        with WebDataClient(config) as client:
            for _ in range(2):
                with pytest.raises(errors.TransportError):
                    client.call(**LIST)
            monkeypatch.setattr(exchange.Prepared, "seconds", PATIENCE)
            assert client.call(**LIST)
    else:
        async with AsyncWebDataClient(config) as async_client:
            for _ in range(2):
                with pytest.raises(errors.TransportError):
                    await async_client.call(**LIST)
            monkeypatch.setattr(exchange.Prepared, "seconds", PATIENCE)
            assert await async_client.call(**LIST)


@pytest.mark.parametrize("service", ["http://service.example", "https://service.example"])
async def test_a_proxy_that_drips(caller: Caller, serve: Any, short: None, service: str) -> None:
    caller.options |= {"proxy": serve(DRIPS["headers"]).url, "retry_budget": 0}
    with pytest.raises(errors.TransportError, match="no whole answer"):
        await caller.call(service, **LIST)


async def test_a_cancelled_call_is_cancelled(serve: Any) -> None:
    """Whoever cancels it, not the deadline, ends it; its connection is free again."""
    server = serve(DRIPS["body"], OK)
    config = ClientConfig(server.url, API_KEY, max_concurrency=1)
    async with AsyncWebDataClient(config) as client:
        call = asyncio.create_task(client.call(**LIST))
        await asyncio.to_thread(server.count, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await client.call(**LIST)


def slowly(body: bytes, seconds: float) -> Step:
    whole = HEAD + f"content-length: {len(body)}\r\n\r\n".encode() + body
    # What counts is the body, of which the first part has some.
    return drip(whole, size=len(whole) // 5, seconds=seconds / 5)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_waiting_for_a_free_connection_is_no_part_of_it(
    serve: Any, short: None, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nine calls hold all the connections for longer than the tenth may take."""
    monkeypatch.setattr(deadline, "LEAST_BYTES_PER_SECOND", 1)
    server = serve(*[slowly(b'{"data": []' + b" " * 400 + b"}", 1.5)] * 9, OK)
    config = ClientConfig(server.url, API_KEY, max_concurrency=9, retry_budget=0)
    if kind == "sync":
        with WebDataClient(config) as client, ThreadPoolExecutor(10) as threads:
            found = [call.result() for call in [threads.submit(client.call, **LIST) for _ in range(10)]]
    else:
        async with AsyncWebDataClient(config) as async_client:
            found = await asyncio.gather(*(async_client.call(**LIST) for _ in range(10)))
    assert len(found) == 10
