# SPDX-License-Identifier: Apache-2.0
"""A proxy of PostgreSQL that can fall silent or close a connection at a chosen word."""

from __future__ import annotations

import contextlib
import socket
import threading


class PostgresProxy:
    """Forwards connections to a port on the loopback interface.

    `cut_after(word)` forwards the next message to the server that contains the word, drops the answer, and closes the
    connection. `silence()` forwards nothing more on the connections that are open now, without closing them.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lines: list[_Line] = []
        self._word = b""
        self.was_cut = threading.Event()

    def cut_after(self, word: bytes) -> None:
        self._word = word

    def silence(self) -> None:
        for line in self._lines:
            line.silent = True

    def __enter__(self) -> PostgresProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for line in self._lines:
            line.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                line = _Line(client, socket.create_connection(("127.0.0.1", self._target)))
                self._lines.append(line)
                threading.Thread(target=self._forward, args=(line,), daemon=True).start()
                threading.Thread(target=line.backward, daemon=True).start()

    def _forward(self, line: _Line) -> None:
        with contextlib.suppress(OSError):
            while data := line.client.recv(65536):
                if line.silent:
                    continue
                if self._word and self._word in data:
                    self._word = b""
                    line.mute_and_wait(data)
                    self.was_cut.set()
                    break
                line.server.sendall(data)
        if not line.silent:
            line.cut()


class _Line:
    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.silent = False
        self._muted = False
        self._answered = threading.Event()

    def mute_and_wait(self, data: bytes) -> None:
        """Let the server execute the message, and drop its answer."""
        self._muted = True
        self.server.sendall(data)
        self._answered.wait(10)

    def backward(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.server.recv(65536):
                if self._muted:
                    self._answered.set()
                elif not self.silent:
                    self.client.sendall(data)
        if not self.silent:
            self.cut()

    def cut(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
