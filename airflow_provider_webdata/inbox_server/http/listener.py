"""The listener of the standalone inbox, with a limit on idle connections.

Anyone may open a connection. Uvicorn limits neither the number of connections nor the time until a request. This
listener never exhausts the process's file descriptors: it closes the connection that has been idle the longest.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .limits import TokenBucket

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

log = logging.getLogger(__name__)

HEADER_SECONDS = 10.0
"""Timeout in seconds for the TLS handshake and the request headers; the service has the same."""

SEND_SECONDS = 60.0
"""Timeout in seconds for sending a response to a client that does not read it."""

HEADER_BYTES = 64 * 1024
"""Maximum size of a request's URL and headers, and of its trailers."""

MAX_CONNECTIONS = 2000
RESERVED_FILES = 128
"""File descriptors reserved for the database, logs, and files."""

_PAUSE = 0.1
_LOG_LINES_PER_SECOND, _LOG_LINES_AT_ONCE = 1 / 60, 1.0


def most_connections() -> int:
    """Return the connection limit: from the limit of open files, at most `MAX_CONNECTIONS`."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(files - RESERVED_FILES, files // 2))


class BoundedServer(uvicorn.Server):
    """Uvicorn with `Listener` in front; requires listening sockets and the configuration `http="h11"`."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections."""
        await super().startup([])
        options = {
            "config": self.config,
            "server_state": self.server_state,
            "app_state": self.lifespan.state,
        }
        self._accepting = [
            asyncio.create_task(Listener(listening, self.config.ssl, **options).accept())
            for listening in sockets or []
        ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and wait for the requests in flight."""
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)


class Listener:
    """Accepts the connections of a socket.

    :param context: TLS context; None for plain HTTP.
    """

    def __init__(self, listening: socket.socket, context: ssl.SSLContext | None, **options: Any) -> None:
        self._listening, self._context, self._options = listening, context, options
        self._most = most_connections()
        self.open: set[_Connection] = set()
        # Idle connections, the longest idle first.
        self.waiting: dict[_Connection, None] = {}
        self._log_lines = TokenBucket(_LOG_LINES_PER_SECOND, _LOG_LINES_AT_ONCE)

    async def accept(self) -> None:
        """Accept connections until canceled."""
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        try:
            while True:
                try:
                    accepted, _ = await loop.sock_accept(self._listening)
                except OSError as error:
                    self._complain("Failed to accept a connection (%s)", error.strerror)
                    self._close_longest_waiting()
                    await asyncio.sleep(_PAUSE)
                    continue
                if len(self.open) < self._most or self._close_longest_waiting():
                    _Connection(self, accepted, self._context, **self._options)
                else:
                    accepted.close()
        finally:
            for connection in [*self.waiting]:
                # Uvicorn closes the connections that it knows.
                connection.handshake.cancel()

    def _close_longest_waiting(self) -> bool:
        self._complain("The limit of open connections is reached")
        connection = next(iter(self.waiting), None)
        if connection is None:
            return False
        del self.waiting[connection]
        connection.abort()
        return True

    def _complain(self, words: str, *values: object) -> None:
        if self._log_lines.consume():
            log.warning(
                words + ": %d are open, %d of them idle; closing the oldest idle one. "
                "Put a proxy in front, or raise the limit of open files (ulimit -n)",
                *values,
                len(self.open),
                len(self.waiting),
            )


class _Connection(H11Protocol):
    """One connection, from its first byte on."""

    def __init__(
        self, listener: Listener, accepted: socket.socket, context: ssl.SSLContext | None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._listener, self._accepted = listener, accepted
        self._to_ask = _Deadline(HEADER_SECONDS, self.abort)
        self._to_read = _Deadline(SEND_SECONDS, self.abort)
        listener.open.add(self)
        listener.waiting[self] = None
        self._to_ask.start()
        self.handshake = self.loop.create_task(
            self.loop.connect_accepted_socket(lambda: self, accepted, ssl=context)
        )
        self.handshake.add_done_callback(self._handshake_ended)

    def abort(self) -> None:
        """Close the connection immediately."""
        if self.handshake.done():
            self.transport.abort()
        else:
            self.handshake.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except h11.LocalProtocolError:
            # The data after the request is not HTTP, and the response has already started.
            self.transport.abort()
        if self._has_request():
            self._listener.waiting.pop(self, None)
            self._to_ask.stop()
        else:
            self._to_ask.start()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._has_request():
            self._listener.waiting[self] = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._to_read.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._to_read.stop()

    def _has_request(self) -> bool:
        return bool(self.cycle and not self.cycle.response_complete)

    def _handshake_ended(self, handshake: asyncio.Task[Any]) -> None:
        if handshake.cancelled() or handshake.exception():
            self._accepted.close()
            self._forget()

    def _forget(self) -> None:
        self._listener.open.discard(self)
        self._listener.waiting.pop(self, None)
        self._to_ask.stop()
        self._to_read.stop()


class _Deadline:
    """A timer that calls back unless stopped."""

    def __init__(self, seconds: float, passed: Callable[[], None]) -> None:
        self._seconds, self._passed = seconds, passed
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer if it is not running."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._passed)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
