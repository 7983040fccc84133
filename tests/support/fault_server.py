# SPDX-License-Identifier: Apache-2.0
"""A raw socket server that misbehaves on demand, and clients to point at it."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_webdata.api.client import AsyncWebDataClient, ClientConfig, WebDataClient

API_KEY = "wd-secret-key-0123456789"

Step = Callable[[socket.socket], None]


@dataclass
class SeenRequest:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class FaultServer:
    """Answers the n-th request with the n-th step; the last step serves all further requests.

    With `read_body` off, a step begins as soon as the headers have arrived, while the body is still in transit.
    """

    def __init__(
        self, steps: Sequence[Step], tls: ssl.SSLContext | None = None, *, read_body: bool = True
    ) -> None:
        self._tls = tls
        self._read_body = read_body
        self._steps = list(steps)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._open: list[socket.socket] = []
        self.requests: list[SeenRequest] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            while (seen := _read_request(connection, self._read_body)) is not None:
                with self._lock:
                    step = self._steps[min(len(self.requests), len(self._steps) - 1)]
                    self.requests.append(seen)
                step(connection)

    def count(self, wanted: int) -> int:
        """Return the number of requests once that many have arrived or 20 seconds have passed."""
        deadline = time.monotonic() + 20
        while len(self.requests) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        return len(self.requests)

    def close(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            # Closing alone leaves the port open for as long as accept() waits on it.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        # Half a request is none: it is not among those that the server has seen.
        raise ConnectionError("the client went away in the middle")
    return data


def _body(connection: socket.socket, start: bytes, headers: dict[str, str]) -> bytes:
    body = bytearray(start)
    while len(body) < int(headers.get("content-length", 0)):
        body += _more(connection)
    return bytes(body)


def _chunked_body(connection: socket.socket, start: bytes) -> bytes:
    data, body = bytearray(start), bytearray()
    while True:
        while b"\r\n" not in data:
            data += _more(connection)
        line, _, data = data.partition(b"\r\n")
        size = int(line, 16)
        while len(data) < size + 2:
            data += _more(connection)
        body += data[:size]
        del data[: size + 2]
        if size == 0:
            return bytes(body)


def _read_request(connection: socket.socket, read_body: bool) -> SeenRequest | None:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if read_body:
        chunked = headers.get("transfer-encoding") == "chunked"
        body = _chunked_body(connection, body) if chunked else _body(connection, body, headers)
    method, target, _ = first.split(" ")
    return SeenRequest(method, target, headers, body)


def answer(
    status: int = 200,
    body: bytes | str = b"{}",
    content_type: str = "application/json",
    headers: dict[str, str] | None = None,
    length: int | None = None,
) -> Step:
    """Send a whole response; `length` announces another size than the body has, and then hangs up."""
    raw = body.encode() if isinstance(body, str) else body
    lines = [
        f"HTTP/1.1 {status} X",
        f"content-type: {content_type}",
        f"content-length: {len(raw) if length is None else length}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    data = "\r\n".join(lines).encode() + b"\r\n\r\n" + raw

    def send(connection: socket.socket) -> None:
        connection.sendall(data)
        if length is not None:
            connection.close()

    return send


def raw(data: bytes) -> Step:
    """Send bytes unchanged and hang up."""

    def send(connection: socket.socket) -> None:
        connection.sendall(data)
        connection.close()

    return send


def hang_up(connection: socket.socket) -> None:
    """Close the connection without an answer."""
    connection.close()


def reset(connection: socket.socket) -> None:
    """Close with a TCP reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def drip(data: bytes, again: bytes = b"", *, size: int = 1, seconds: float = 0.02) -> Step:
    """Send `data` a few bytes at a time, and then `again` forever; without it, continue with the next request."""

    def send(connection: socket.socket) -> None:
        blocks = [data[start : start + size] for start in range(0, len(data), size)]
        for block in itertools.chain(blocks, itertools.repeat(again) if again else ()):
            connection.sendall(block)
            time.sleep(seconds)

    return send


def never_answer(connection: socket.socket) -> None:
    """Keep the connection open until the client gives up."""
    with contextlib.suppress(OSError):
        connection.recv(1)


@dataclass
class Caller:
    """Runs one call on a sync or an async client, so that each row of a table tries both."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)

    async def call(self, url: str, endpoint: Any, **arguments: Any) -> Any:
        options = {"timeout": 30.0, "retry_budget": 20.0, "declared": "hosted", **self.options}
        config = ClientConfig(url, API_KEY, **options)
        if self.kind == "sync":
            with WebDataClient(config) as client:
                return client.call(endpoint, **arguments)
        async with AsyncWebDataClient(config) as async_client:
            return await async_client.call(endpoint, **arguments)
