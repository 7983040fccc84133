# SPDX-License-Identifier: Apache-2.0
"""A scheduler of actions by the sandbox's clock."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .clock import Clock

Action = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)

MAX_ADVANCE = 400 * 86_400.0
"""Maximum seconds of one call of :meth:`Agenda.advance`."""

_LONGEST_NAP = 3600.0


class Agenda:
    """Actions by the sandbox time at which they are due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Action]] = []
        self._order = itertools.count()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def at(self, when: float, action: Action) -> None:
        """Run ``action`` when the clock reaches ``when``; immediately if that time has passed."""
        heapq.heappush(self._heap, (when, next(self._order), action))
        self._wake.set()

    def after(self, seconds: float, action: Action) -> None:
        """Run ``action`` after ``seconds`` of sandbox time."""
        self.at(self._clock.now() + seconds, action)

    def clear(self) -> None:
        """Remove the actions that are not yet due."""
        self._heap.clear()

    async def run(self) -> None:
        """Start due actions, forever."""
        while True:
            self._wake.clear()
            while self._heap and self._heap[0][0] <= self._clock.now():
                self._start(heapq.heappop(self._heap)[2])
            nap = _LONGEST_NAP
            if self._heap:
                nap = min(nap, max(0.0, self._heap[0][0] - self._clock.now()) / self._clock.speed)
            try:
                await asyncio.wait_for(self._wake.wait(), timeout=nap)
            except asyncio.TimeoutError:
                continue

    async def advance(self, seconds: float) -> None:
        """Advance the clock; return when all actions that became due have ended.

        :raises ValueError: ``seconds`` is out of range.
        """
        if not 0 <= seconds <= MAX_ADVANCE:
            raise ValueError(f"seconds must be between 0 and {MAX_ADVANCE:.0f}, not {seconds}")
        goal = self._clock.now() + seconds
        await self.settle()
        while self._heap and self._heap[0][0] <= goal:
            when, _, action = heapq.heappop(self._heap)
            self._clock.jump_to(when)
            self._start(action)
            await self._drain()
        self._clock.jump_to(goal)
        await self.settle()

    async def settle(self) -> None:
        """Wait until all due actions have ended."""
        while True:
            await self._drain()
            if not self._heap or self._heap[0][0] > self._clock.now():
                return
            self._start(heapq.heappop(self._heap)[2])

    async def close(self) -> None:
        """Stop the running actions."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, action: Action) -> None:
        task = asyncio.ensure_future(self._guarded(action))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self) -> None:
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    @staticmethod
    async def _guarded(action: Action) -> None:
        try:
            await action()
        except Exception:  # a failed action must not stop the others
            log.exception("A scheduled action of the sandbox failed")
