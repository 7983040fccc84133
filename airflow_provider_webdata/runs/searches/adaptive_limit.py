"""An adaptive concurrency limit, based on the service's 429s."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


class AdaptiveLimit:
    """A limit that halves after a 429 and grows by one per round of successful calls (AIMD).

    Calls that were in flight when the limit fell are not new evidence: neither their 429s nor their successes count.
    All tasks of the team share the service's limit, so it is not known in advance.

    :param most: initial and maximum limit; at least 1.
    :param clock: returns monotonic seconds.
    :ivar limit: current maximum of calls in flight, from 1 to `most`.
    :ivar paused: total seconds of pauses since the last successful call.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._cuts = 0
        self._went_well = 0
        self._in_a_row = 0
        self._until = 0.0
        self.limit = most
        self.paused = 0.0

    @property
    def ticket(self) -> int:
        """A call's start marker, to pass back when it ends: the number of times the limit has fallen."""
        return self._cuts

    @property
    def pause(self) -> float:
        """Seconds until the next call may start; 0: now."""
        return max(self._until - self._clock(), 0.0)

    def succeeded(self, ticket: int) -> None:
        """Record that the call with this ticket succeeded."""
        self.paused = 0.0
        if ticket != self._cuts:
            return
        self._in_a_row = 0
        self._went_well += 1
        if self._went_well >= self.limit:
            self._went_well = 0
            self.limit = min(self.limit + 1, self._most)

    def slow_down(self, ticket: int, wait: float | None) -> None:
        """Record that the call with this ticket received a 429 or could not reach the service.

        :param wait: seconds that the service asks to wait, or None.
        """
        if ticket == self._cuts:
            self._cuts += 1
            self._went_well = 0
            self.limit = max(self.limit // 2, 1)
            self._in_a_row += 1
        elif wait is None:
            return
        if wait is None:
            ceiling = min(_FIRST_PAUSE_SECONDS * 2.0 ** (self._in_a_row - 1), _LONGEST_PAUSE_SECONDS)
            wait = random.uniform(ceiling / 2, ceiling)  # noqa: S311
        before = self.pause
        self._until = max(self._until, self._clock() + wait)
        self.paused += self.pause - before
