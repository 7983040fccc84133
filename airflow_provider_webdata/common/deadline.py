# SPDX-License-Identifier: Apache-2.0
"""A deadline for a whole attempt; an httpx timeout limits only a single read or write.

For blocking calls, the deadline shortens the timeout of each read and write. For asynchronous calls, it is a cancel
scope.
"""

from __future__ import annotations

import contextlib
import socket
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio

from airflow_provider_webdata.common.http_library import httpcore, httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable
    from contextvars import Token
    from types import TracebackType

LEAST_BYTES_PER_SECOND = 16 * 1024
"""Each time this many bytes are transferred, the deadline moves by one second. See docs/errors.md."""

_BLOCK_BYTES = 64 * 1024
_SHORTEST_SECONDS = 0.001

_of_this_attempt: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


class Deadline:
    """The deadline of a blocking attempt, for the connections used within its `with` block.

    It starts with the first network operation: waiting for a free connection does not count.

    :param seconds: time limit of the attempt, before extensions for transferred bytes.
    :ivar seconds: current time limit.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._start: float | None = None
        self._token: Token[Deadline | None] | None = None

    def left(self) -> float:
        """Return the remaining seconds."""
        now = time.monotonic()
        if self._start is None:
            self._start = now
        return self._start + self.seconds - now

    @property
    def is_over(self) -> bool:
        """Whether the attempt took too long."""
        return self.left() <= _SHORTEST_SECONDS

    def extend_by(self, count: int) -> None:
        """Allow for bytes that were sent or received."""
        self.seconds += count / LEAST_BYTES_PER_SECOND

    def __enter__(self) -> Deadline:
        self._token = _of_this_attempt.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _of_this_attempt.reset(self._token)


class AsyncDeadline:
    """The deadline of an asynchronous attempt, which starts when its `async with` block is entered.

    :param seconds: time limit of the attempt, before extensions for transferred bytes.
    :ivar seconds: current time limit.
    :raises httpx.ReadTimeout: at the end of the block, if the attempt took too long.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._scope = anyio.CancelScope()

    @property
    def is_over(self) -> bool:
        """Whether the attempt took too long."""
        return self._scope.cancelled_caught

    def extend_by(self, count: int) -> None:
        """Allow for bytes that were sent or received."""
        more = count / LEAST_BYTES_PER_SECOND
        self.seconds += more
        self._scope.deadline += more

    async def __aenter__(self) -> AsyncDeadline:
        self._scope.deadline = anyio.current_time() + self.seconds
        self._scope.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.__exit__(kind, error, trace)
        if self.is_over:
            raise httpx.ReadTimeout("the deadline has passed") from None


class BlockingTransport(httpx.HTTPTransport):
    """Transport of a blocking client, which enforces the current attempt's deadline on each read and write.

    It extends the transport of httpx, because tracing wraps that one's methods: see docs/metrics.md.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # httpx does not pass httpcore's public argument `network_backend` on.
        self._pool._network_backend = _Backend(self._pool._network_backend)


def _cut(timeout: float | None, error: type[httpcore.TimeoutException]) -> float | None:
    deadline = _of_this_attempt.get()
    if deadline is None:
        return timeout
    left = deadline.left()
    if left <= _SHORTEST_SECONDS:
        raise error("the deadline has passed")
    return left if timeout is None else min(timeout, left)


def _extend_by(count: int) -> None:
    if (deadline := _of_this_attempt.get()) is not None:
        deadline.extend_by(count)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        seconds = _cut(timeout, httpcore.ConnectTimeout)
        end = None if seconds is None else time.monotonic() + seconds

        def connected(address: str, left: int) -> httpcore.NetworkStream:
            share = None if end is None else max(end - time.monotonic(), _SHORTEST_SECONDS) / left
            return _Stream(self._backend.connect_tcp(address, port, share, local_address, socket_options))

        # Python's own loop would grant each of a host's addresses the whole time.
        *others, last = _addresses_of(host, port)
        for number, address in enumerate(others):
            with contextlib.suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return connected(address, len(others) + 1 - number)
        return connected(last, 1)


def _addresses_of(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore.ConnectError(str(error)) from error
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._stream.read(max_bytes, _cut(timeout, httpcore.ReadTimeout))
        _extend_by(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Write in blocks: the timeout of a large write would apply separately to each of its partial writes.
        view = memoryview(buffer)
        for start in range(0, len(view), _BLOCK_BYTES):
            block = view[start : start + _BLOCK_BYTES]
            self._stream.write(bytes(block), _cut(timeout, httpcore.WriteTimeout))
            _extend_by(len(block))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        timeout = _cut(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
