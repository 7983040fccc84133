"""Bounds on what unauthenticated callers can make the inbox do."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BODIES_AT_ONCE = 200
"""Most requests whose bodies are being read."""

BODY_BYTES_AT_ONCE = 128 * 2**20
"""Most bytes of bodies in memory that are not yet stored."""


class BusyError(Exception):
    """Too many requests are being served already."""


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
    """Limits on the number of request bodies in memory, and on their bytes.

    When there are too many, the connection that uses the most makes room: of its bodies that are still arriving, the
    oldest gives way.

    :param within_connection: whether a body also gives way to one of the same connection: for senders that are not
        authenticated yet.
    """

    def __init__(
        self,
        most: int = BODIES_AT_ONCE,
        most_bytes: int = BODY_BYTES_AT_ONCE,
        *,
        within_connection: bool = False,
    ) -> None:
        self._most, self._most_bytes, self._within_connection = most, most_bytes, within_connection
        # The one that began first comes first.
        self._bodies: dict[BufferedBody, None] = {}

    @property
    def count(self) -> int:
        """How many bodies are in memory."""
        return len(self._bodies)

    @property
    def size(self) -> int:
        """How many bytes of bodies are in memory."""
        return sum(body.size for body in self._bodies)

    @contextmanager
    def body(self, conn_id: str) -> Iterator[BufferedBody]:
        """Account for one body while it is in memory.

        :raises BusyError: there are too many.
        """
        body = BufferedBody(self, conn_id)
        while self.count >= self._most:
            self._make_room(body, lambda _: 1)
        self._bodies[body] = None
        try:
            yield body
        finally:
            self._bodies.pop(body, None)

    def grow(self, body: BufferedBody, size: int) -> None:
        """Account for further bytes.

        :raises BusyError: there are too many.
        """
        while self.size + size > self._most_bytes:
            self._make_room(body, lambda other: other.size)

    def _make_room(self, needed_by: BufferedBody, weight: Callable[[BufferedBody], int]) -> None:
        held: Counter[str] = Counter()
        for body in self._bodies:
            held[body.conn_id] += weight(body)
        most = max(held.values(), default=0)
        for body in self._bodies:
            own = body.conn_id == needed_by.conn_id
            may_give_way = self._within_connection or (not own and most > held[needed_by.conn_id])
            if may_give_way and body.is_arriving and weight(body) and held[body.conn_id] == most:
                del self._bodies[body]
                body.give_way()
                break
        else:
            raise BusyError
        if body is needed_by:
            raise BusyError


class BufferedBody:
    """One body as it arrives."""

    def __init__(self, budget: BodyBudget, conn_id: str) -> None:
        self._budget, self.conn_id = budget, conn_id
        self._parts: list[bytes] = []
        self._arriving: anyio.CancelScope | None = None
        self._gave_way = False
        self.size = 0

    @property
    def is_arriving(self) -> bool:
        """Whether more of it is being waited for."""
        return self._arriving is not None

    @contextmanager
    def arriving(self, seconds: float) -> Iterator[None]:
        """Wait for the body in here.

        :raises BusyError: it gave way to others.
        :raises TimeoutError: it took longer.
        """
        try:
            with anyio.move_on_after(seconds) as self._arriving:
                yield
        finally:
            scope, self._arriving = self._arriving, None
        if self._gave_way:
            raise BusyError
        if scope.cancelled_caught:
            raise TimeoutError

    def give_way(self) -> None:
        """Wait no longer for the rest."""
        self._gave_way = True
        if self._arriving is not None:
            self._arriving.cancel()

    def add(self, part: bytes) -> None:
        """Add a further part.

        :raises BusyError: there are too many bytes in memory.
        """
        self._budget.grow(self, len(part))
        self.size += len(part)
        self._parts.append(part)

    def whole(self) -> bytes:
        """Return all that arrived."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
