"""Ports for programs that have to be told theirs."""

from __future__ import annotations

import contextlib
import secrets
import socket


def free_port() -> int:
    """A port that nothing uses just now, and that the system gives to nobody who asks for any."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
