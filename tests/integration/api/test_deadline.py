# SPDX-License-Identifier: Apache-2.0
"""The deadline of an attempt: a dripping connection is cut off, a slow one that makes progress is not.

No test waits for a deadline: the clock leaps past it once the connection drips.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpcore
import pytest

from airflow_provider_webdata.api import endpoints, errors, exchange, file_transfer, models
from airflow_provider_webdata.api.client import AsyncWebDataClient, ClientConfig, WebDataClient
from airflow_provider_webdata.api.multipart import Upload
from airflow_provider_webdata.common import deadline
from tests.support.fault_server import API_KEY, Caller, FaultServer, Step, answer, drip
from tests.support.waiting import PATIENCE

LIST: dict[str, Any] = {"endpoint": endpoints.LIST_MONITORS}
SEARCH: dict[str, Any] = {"endpoint": endpoints.SEARCH, "extra_body": {"query": "q"}}
OK = answer(body='{"data": []}')
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
GZIP = gzip.compress(b'{"data": []}' + bytes(1000))

# The start of an answer, and the bytes that follow again and again.
DRIPS: dict[str, tuple[bytes, bytes]] = {
    "status line": (b"HTTP/1.1 200 ", b"O"),
    "headers": (HEAD + b"x: ", b"y"),
    "informational answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (HEAD + b"content-length: 1000000\r\n\r\n{", b" "),
    "chunks": (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "the size of a chunk": (HEAD + b"transfer-encoding: chunked\r\n\r\n1;", b"x"),
    # What follows the end of a compressed body is not read, and still has to end.
    "compressed body": (HEAD + b"content-encoding: gzip\r\ncontent-length: 1000000\r\n\r\n" + GZIP, b"\0"),
    "body of an error": (b"HTTP/1.1 400 X\r\ncontent-length: 1000000\r\n\r\n{", b" "),
}  # fmt: skip

DEADLINE_SECONDS = 10.0
# Past the deadline, and within the timeout of a single read.
LEAP_SECONDS = 15.0


class Clock:
    """The clock of deadlines, blocking and asynchronous."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def time(self) -> float:
        return time.monotonic() + self._ahead

    def leap(self, seconds: float = LEAP_SECONDS) -> None:
        self._ahead += seconds

    def drip(self, start: bytes, again: bytes) -> Step:
        """Return a step that drips forever, and leaps past the deadline once it does."""

        def send(connection: socket.socket) -> None:
            connection.sendall(start)
            drip(again * 5, size=len(again))(connection)
            self.leap()
            drip(b"", again)(connection)

        return send


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set a deadline that only a leap of the clock reaches."""
    clock = Clock()
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=clock.time))
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.time)
    monkeypatch.setattr(exchange.Prepared, "seconds", DEADLINE_SECONDS)
    return clock


@pytest.mark.parametrize(("start", "again"), DRIPS.values(), ids=DRIPS)
async def test_an_answer_that_drips(
    caller: Caller, serve: Any, clock: Clock, start: bytes, again: bytes
) -> None:
    server = serve(clock.drip(start, again))
    caller.options["retry_budget"] = 0
    with pytest.raises(errors.TransportError, match=r"no complete response from http\S+ within 10") as caught:
        await caller.call(server.url, **SEARCH)
    assert caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.parametrize("answering", [None, 2])
async def test_addresses_of_a_host_share_the_time_to_connect(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, answering: int | None
) -> None:
    """A firewall may drop the packets to each of them."""
    found = [(0, 0, 0, "", (f"127.0.0.{number}", 80)) for number in range(4)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    waited: dict[str, float] = {}

    class Network(httpcore.NetworkBackend):
        def connect_tcp(self, host: str, port: int, timeout: float | None = None, *_: Any) -> Any:
            assert timeout is not None
            waited[host] = timeout
            if host == f"127.0.0.{answering}":
                return httpcore.MockStream([])
            clock.leap(timeout)
            raise httpcore.ConnectTimeout

    network = deadline._Backend(Network())
    if answering is None:
        with pytest.raises(httpcore.ConnectTimeout):
            network.connect_tcp("four.example", 80, 8.0)
    else:
        network.connect_tcp("four.example", 80, 8.0)
    assert sum(waited.values()) == pytest.approx(8 if answering is None else 6, abs=0.1)
    assert len(waited) == (4 if answering is None else answering + 1)


@pytest.mark.parametrize("is_blocking", [True, False])
async def test_a_storage_that_drips(
    serve: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch, is_blocking: bool
) -> None:
    """An upload by reference has a deadline too."""
    monkeypatch.setattr(file_transfer, "_ANSWER_SECONDS", DEADLINE_SECONDS / 2)
    server = serve(clock.drip(*DRIPS["headers"]))
    config = ClientConfig(
        base_url=server.url, api_key=API_KEY, declared="hosted", timeout=DEADLINE_SECONDS / 2
    )
    target = models.ParseUpload(upload_url=server.url, upload_ref="r")
    file = file_transfer.FileTransfer(config, target, Upload("parse", io.BytesIO(b"x"), "a.pdf", max_bytes=9))
    with pytest.raises(errors.UploadError):
        file.send() if is_blocking else await file.asend()


async def test_a_slow_line_that_makes_progress(
    caller: Caller, serve: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer takes 54 times the deadline, and each second brings a little more than the least number of bytes."""
    monkeypatch.setattr(deadline, "LEAST_BYTES_PER_SECOND", 100)
    received = threading.Semaphore(0)

    class Watched(exchange.Reader[Any]):
        def feed(self, chunk: bytes) -> bool:
            clock.leap(0.9 * len(chunk) / 100)
            received.release()
            return super().feed(chunk)

    monkeypatch.setattr(exchange, "Reader", Watched)
    body = b'{"data": []' + b" " * 60_000 + b"}"

    def send(connection: socket.socket) -> None:
        connection.sendall(HEAD + f"content-length: {len(body)}\r\n\r\n".encode())
        for start in range(0, len(body), 2000):
            connection.sendall(body[start : start + 2000])
            received.acquire(timeout=PATIENCE)

    assert await caller.call(serve(send).url, **LIST)


@pytest.fixture
def slow_reader(clock: Clock) -> Iterator[Callable[[], FaultServer]]:
    """Start a server that reads a few bytes at a time, and reads on once the deadline has passed."""
    servers: list[FaultServer] = []

    def sip(connection: socket.socket) -> None:
        for _ in range(5):
            connection.recv(256)
            time.sleep(0.02)
        clock.leap()
        while connection.recv(65536):
            pass

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
async def test_a_body_that_is_read_in_sips(
    caller: Caller, slow_reader: Any, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    monkeypatch.setattr(deadline, "LEAST_BYTES_PER_SECOND", 10**9)
    caller.options["retry_budget"] = 0
    with pytest.raises(errors.TransportError, match="no complete response"):
        await caller.call(slow_reader().url, **make())


async def test_a_handshake_that_drips(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
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
    # On a slow machine, the deadline of the whole call must not pass before the timeout of the connection.
    monkeypatch.setattr(exchange.Prepared, "seconds", PATIENCE)
    caller.options |= {"timeout": 0.2, "retry_budget": 0}
    with pytest.raises(errors.TransportError, match=r"no connection .* within 0\.2 s") as caught:
        await caller.call(f"https://127.0.0.1:{listener.getsockname()[1]}", **LIST)
    assert caught.value.sent is False
    # The client has hung up.
    thread.join()
    listener.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_connection_is_free_again_after_its_deadline(serve: Any, clock: Clock, kind: str) -> None:
    """With a single connection."""
    server = serve(clock.drip(*DRIPS["body"]), clock.drip(*DRIPS["headers"]), OK)
    config = ClientConfig(server.url, API_KEY, declared="hosted", max_concurrency=1, retry_budget=0)
    if kind == "sync":
        with WebDataClient(config) as client:
            for _ in range(2):
                with pytest.raises(errors.TransportError):
                    client.call(**LIST)
            assert client.call(**LIST)
    else:
        async with AsyncWebDataClient(config) as async_client:
            for _ in range(2):
                with pytest.raises(errors.TransportError):
                    await async_client.call(**LIST)
            assert await async_client.call(**LIST)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_drips(caller: Caller, serve: Any, clock: Clock, scheme: str) -> None:
    caller.options |= {"proxy": serve(clock.drip(*DRIPS["headers"])).url, "retry_budget": 0}
    with pytest.raises(errors.TransportError, match="no complete response"):
        await caller.call(f"{scheme}://service.example", **LIST)


async def test_a_cancelled_call_is_cancelled(serve: Any) -> None:
    """Its connection is free again."""
    server = serve(drip(*DRIPS["body"]), OK)
    config = ClientConfig(server.url, API_KEY, declared="hosted", max_concurrency=1)
    async with AsyncWebDataClient(config) as client:
        call = asyncio.create_task(client.call(**LIST))
        await asyncio.to_thread(server.count, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await client.call(**LIST)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_waiting_for_a_free_connection_does_not_count(
    serve: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nine calls hold all connections until the deadline of the tenth would have passed."""
    # The bytes that the nine have received extend their deadlines.
    monkeypatch.setattr(deadline, "LEAST_BYTES_PER_SECOND", 1)
    received = threading.Semaphore(0)
    go_on = threading.Event()

    class Watched(exchange.Reader[Any]):
        def feed(self, chunk: bytes) -> bool:
            received.release()
            return super().feed(chunk)

    monkeypatch.setattr(exchange, "Reader", Watched)

    def hold(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"content-length: 412\r\n\r\n" + b'{"data": []' + b" " * 400)
        go_on.wait(PATIENCE)
        connection.sendall(b"}")

    def let_go() -> int:
        for _ in range(9):
            received.acquire(timeout=PATIENCE)
        begun = len(server.requests)
        clock.leap()
        go_on.set()
        return begun

    server = serve(*[hold] * 9, OK)
    config = ClientConfig(server.url, API_KEY, declared="hosted", max_concurrency=9, retry_budget=0)
    if kind == "sync":
        with WebDataClient(config) as client, ThreadPoolExecutor(10) as threads:
            calls = [threads.submit(client.call, **LIST) for _ in range(10)]
            begun = let_go()
            found = [call.result() for call in calls]
    else:
        async with AsyncWebDataClient(config) as async_client:
            begun, *found = await asyncio.gather(
                asyncio.to_thread(let_go), *(async_client.call(**LIST) for _ in range(10))
            )
    assert begun == 9
    assert len(found) == 10
