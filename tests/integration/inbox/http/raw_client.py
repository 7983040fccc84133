# SPDX-License-Identifier: Apache-2.0
"""Raw HTTP requests, valid or not."""

from __future__ import annotations

import socket
from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    """One response.

    :param closed: whether the server closed the connection after it.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    closed: bool


class RawConnection:
    """One TCP connection; a context manager."""

    def __init__(self, port: int, timeout: float = 60.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._received = b""

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> bool:
        """Send the data and return whether the connection was still open."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def finish_sending(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def wait(self) -> None:
        """Wait for the first bytes of a response."""
        while not self._received and self._more():
            pass

    def reply(self) -> Reply | None:
        """Return the next response, None if the server closed the connection without one."""
        while b"\r\n\r\n" not in self._received:
            if not self._more():
                return None
        head, _, rest = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", "0"))
        self._received = rest
        while len(self._received) < size and self._more():
            pass
        body, self._received = self._received[:size], self._received[size:]
        closed = headers.get("connection") == "close" and self._ended()
        return Reply(int(first.split(" ")[1]), headers, body, closed)

    def _more(self) -> bool:
        try:
            part = self._socket.recv(65536)
        except ConnectionResetError:
            return False
        self._received += part
        return bool(part)

    def _ended(self) -> bool:
        while self._more():
            pass
        return True


def head(method: str, path: str, headers: dict[str, str]) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: inbox",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
