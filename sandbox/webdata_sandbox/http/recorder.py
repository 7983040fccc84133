# SPDX-License-Identifier: Apache-2.0
"""A log of received requests, for tests."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webdata_sandbox.reference.wire import Json

MAX_REQUESTS = 5000
"""Requests to keep; older requests are dropped."""


class Recorder:
    """Keeps the latest requests and redacts their Authorization headers."""

    def __init__(self) -> None:
        self._requests: deque[Json] = deque(maxlen=MAX_REQUESTS)
        self.total = 0

    def add(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: Any
    ) -> Json:
        """Record a request; its ``status`` is None until the response."""
        self.total += 1
        record: Json = {
            "number": self.total,
            "method": method,
            "path": path,
            "query": dict(query),
            "headers": {name.lower(): _redacted(name, value) for name, value in headers.items()},
            "body": body,
            "status": None,
        }
        self._requests.append(record)
        return record

    def select(self, path: str | None = None, method: str | None = None) -> list[Json]:
        """Return requests, oldest first; ``path`` is a regular expression, matched from the start."""
        return [
            record
            for record in self._requests
            if (path is None or re.match(path, record["path"])) and method in (None, record["method"])
        ]

    def clear(self) -> None:
        """Remove all requests."""
        self._requests.clear()
        self.total = 0


def _redacted(name: str, value: str) -> str:
    if name.lower() != "authorization":
        return value
    scheme, space, _ = value.partition(" ")
    return f"{scheme} ***" if space else "***"
