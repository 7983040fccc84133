# SPDX-License-Identifier: Apache-2.0
"""Limits on the resources that unauthenticated callers can consume."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BODIES_AT_ONCE = 200
"""Maximum number of request bodies being read."""

BODY_BYTES_AT_ONCE = 128 * 2**20
"""Maximum bytes of unstored bodies in memory."""


class BusyError(Exception):
    """Too many requests are in progress."""


class TokenBucket:
    """A rate limit that allows bursts.

    :param rate: tokens per second.
    :param burst: maximum burst.
    :param clock: returns monotonic seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left, self._since = burst, clock()

    def consume(self) -> bool:
        """Consume a token; return False if none is available."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class BodyBudget:
    """Limits on the number and total bytes of request bodies in memory.

    Over a limit, the connection that uses the most makes room: its oldest body that is still arriving is aborted.

    :param within_connection: True if a body may also displace one of the same connection: for senders that are not
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
        # Oldest first.
        self._bodies: dict[BufferedBody, None] = {}

    @property
    def count(self) -> int:
        """Number of bodies in memory."""
        return len(self._bodies)

    @property
    def size(self) -> int:
        """Total bytes of bodies in memory."""
        return sum(body.size for body in self._bodies)

    @contextmanager
    def body(self, conn_id: str) -> Iterator[BufferedBody]:
        """Account for one body while it is in memory.

        :raises BusyError: too many bodies are in memory.
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

        :raises BusyError: too many bytes are in memory.
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
        """True while the rest is awaited."""
        return self._arriving is not None

    @contextmanager
    def arriving(self, seconds: float) -> Iterator[None]:
        """Wait for the body within this block.

        :raises BusyError: the body was displaced.
        :raises TimeoutError: the body took too long.
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
        """Stop waiting for the rest."""
        self._gave_way = True
        if self._arriving is not None:
            self._arriving.cancel()

    def add(self, part: bytes) -> None:
        """Add a chunk.

        :raises BusyError: too many bytes are in memory.
        """
        self._budget.grow(self, len(part))
        self.size += len(part)
        self._parts.append(part)

    def whole(self) -> bytes:
        """Return the received bytes."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
