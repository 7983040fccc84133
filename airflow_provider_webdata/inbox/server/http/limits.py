"""Bounds on what unauthenticated callers can make the inbox do."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BODIES_AT_ONCE = 200
"""Most requests whose bodies are being read."""

BODY_BYTES_AT_ONCE = 128 * 2**20
"""Most bytes of bodies in memory that are not yet stored."""


class BusyError(Exception):
    """Too many requests are being served already.

    :param seconds: after which to try again.
    """

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__(f"too many requests at once; try again in {seconds:.0f} s")
        self.seconds = seconds


class TokenBucket:
    """A rate limit that allows for bursts.

    :param rate: per second.
    :param burst: most at once.
    :param clock: seconds of any monotonic clock.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left, self._since = burst, clock()

    def take(self) -> bool:
        """Take one token; return whether there was one."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class BodyBudget:
    """How many request bodies, and how many bytes of them, may be in memory.

    :param most: bodies at once.
    :param most_bytes: bytes of them all.
    """

    def __init__(self, most: int = BODIES_AT_ONCE, most_bytes: int = BODY_BYTES_AT_ONCE) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._count = self._bytes = 0

    @contextmanager
    def body(self) -> Iterator[BufferedBody]:
        """Account for one body as long as it is in memory.

        :raises BusyError: there are too many.
        """
        if self._count >= self._most:
            raise BusyError
        body = BufferedBody(self)
        self._count += 1
        try:
            yield body
        finally:
            self._count -= 1
            self._bytes -= body.size

    def grow(self, size: int) -> None:
        """Account for further bytes.

        :raises BusyError: there are too many.
        """
        if self._bytes + size > self._most_bytes:
            raise BusyError
        self._bytes += size


class BufferedBody:
    """One body as it arrives."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        """Add a further part.

        :raises BusyError: there are too many bytes in memory.
        """
        self._budget.grow(len(part))
        self.size += len(part)
        self._parts.append(part)

    def whole(self) -> bytes:
        """Return all that arrived."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
