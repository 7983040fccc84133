# SPDX-License-Identifier: Apache-2.0
"""Free ports for programs that need theirs as a setting."""

from __future__ import annotations

import contextlib
import secrets
import socket


def free_port() -> int:
    """A port that is free now and that the system does not assign to programs that request any port."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
