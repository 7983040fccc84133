# SPDX-License-Identifier: Apache-2.0
"""Errors of the network and the operating system as text, without their numbers."""

from __future__ import annotations

import re
import socket

REFUSED = "connection refused"

_NUMBER = r"\[Errno -?\d+\] "
_MAX_LENGTH = 200


def plain_reason(error: BaseException) -> str:
    """Return the reason of an error, such as `connection refused: no server listens there`.

    :param error: an error of a file, a socket, or httpx, whose cause has the reason.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return f"{REFUSED}: no server listens there"
        if isinstance(cause, socket.gaierror):
            return f"the host name cannot be resolved: {cause.strerror}"
        cause = cause.__cause__ or cause.__context__
    text = re.sub(_NUMBER, "", str(error)) or type(error).__name__
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
