"""The limit of concurrent calls, learned from the service's 429s."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


class AdaptiveLimit:
    """A limit that is halved at a 429 and grows by one for each round of calls that went well.

    Calls in flight when the limit fell are no new evidence: neither their 429s nor their successes count. All tasks of
    the team share the number that may be in flight, so it is unknown beforehand.

    :param most: the limit never exceeds this, and begins there; at least 1.
    :param clock: returns seconds that only grow.
    :ivar limit: how many calls may be in flight now, from 1 to `most`.
    :ivar paused: seconds of the pauses that were requested since the last successful call.
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
        """What a call is given when it begins, and hands back when it ends: how often the limit had fallen."""
        return self._cuts

    @property
    def pause(self) -> float:
        """Seconds for which no call may begin; 0: begin."""
        return max(self._until - self._clock(), 0.0)

    def succeeded(self, ticket: int) -> None:
        """Take note that the call with this ticket went well."""
        self.paused = 0.0
        if ticket != self._cuts:
            return
        self._in_a_row = 0
        self._went_well += 1
        if self._went_well >= self.limit:
            self._went_well = 0
            self.limit = min(self.limit + 1, self._most)

    def slow_down(self, ticket: int, wait: float | None) -> None:
        """Take note that the call with this ticket was answered with a 429, or could not reach the service.

        :param wait: seconds that the service asks to wait, where it says so.
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
