"""Accepts connections where the inbox is served alone, and closes those that keep it from others.

Anybody may open a connection. Uvicorn bounds neither how many there are nor how long one may take to ask for something;
here the descriptors of the process are never used up, and who has waited longest without a request gives way.
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
"""For how long TLS and the headers of a request may arrive: the service itself gives up then."""

SEND_SECONDS = 60.0
"""For how long a response may be under way to somebody who does not read it."""

HEADER_BYTES = 64 * 1024
"""Largest URL and headers of a request; trailers and the like of its body, too."""

MOST_CONNECTIONS = 2000
RESERVED_FILES = 128
"""Descriptors that are left for the database, logs and files."""

_PAUSE = 0.1
_LOG_LINES_PER_SECOND, _LOG_LINES_AT_ONCE = 1 / 60, 1.0


def most_connections() -> int:
    """Return how many connections may be open: what the limit of open files allows, at most `MOST_CONNECTIONS`."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(files - RESERVED_FILES, files // 2))


class BoundedServer(uvicorn.Server):
    """Uvicorn with `Listener` in front; it takes sockets that listen, and the configuration `http="h11"`."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
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
        """Accept no more connections, and wait for the requests that are under way."""
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)


class Listener:
    """Accepts the connections of a socket.

    :param context: of TLS; None for plain HTTP.
    """

    def __init__(self, listening: socket.socket, context: ssl.SSLContext | None, **options: Any) -> None:
        self._listening, self._context, self._options = listening, context, options
        self._most = most_connections()
        self.open: set[_Connection] = set()
        # Those without a request, the one that has waited longest first.
        self.waiting: dict[_Connection, None] = {}
        self._log_lines = TokenBucket(_LOG_LINES_PER_SECOND, _LOG_LINES_AT_ONCE)

    async def accept(self) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        try:
            while True:
                try:
                    accepted, _ = await loop.sock_accept(self._listening)
                except OSError as error:
                    self._complain("A connection could not be accepted (%s)", error.strerror)
                    self._close_longest_waiting()
                    await asyncio.sleep(_PAUSE)
                    continue
                if len(self.open) < self._most or self._close_longest_waiting():
                    _Connection(self, accepted, self._context, **self._options)
                else:
                    accepted.close()
        finally:
            for connection in [*self.waiting]:
                # Uvicorn closes those that it knows.
                connection.handshake.cancel()

    def _close_longest_waiting(self) -> bool:
        self._complain("As many connections are open as this process may have")
        connection = next(iter(self.waiting), None)
        if connection is None:
            return False
        del self.waiting[connection]
        connection.abort()
        return True

    def _complain(self, words: str, *values: object) -> None:
        if self._log_lines.take():
            log.warning(
                words + ": %d are open, %d of them without a request, of which the oldest gives way. "
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
        """Close the connection at once."""
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
            # What followed the request is no HTTP, and the response has begun: there is nothing left to say.
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
    """Calls back unless it is stopped in time."""

    def __init__(self, seconds: float, passed: Callable[[], None]) -> None:
        self._seconds, self._passed = seconds, passed
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to count, unless it does already."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._passed)

    def stop(self) -> None:
        """Count no further."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
