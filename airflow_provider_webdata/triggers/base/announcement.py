"""The first line in the log of a wait: a few at a time where many waits start together."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AT_ONCE, PAUSE = 20, 0.5
"""So many lines are logged immediately, and from then on one after each pause in seconds.

Airflow's process that reads a triggerer's log also sends it its triggers, one thing at a time (3.3.2). Where some 200
lines are unread while it sends many triggers, both processes wait for each other, for ever; it adds a line of its own
for each trigger.
"""

_next_turn = float("-inf")


@contextmanager
def announcing(log: Any) -> Iterator[Callable[[str], None]]:
    """Yield a function that logs a line in its turn, and at the latest when the block ends.

    After an exception the line is not logged any more.

    :param log: of the trigger.
    """
    lines: list[str] = []
    turns: list[asyncio.TimerHandle] = []

    def log_line() -> None:
        while lines:
            log.info(lines.pop())

    def announce(line: str) -> None:
        global _next_turn
        lines.append(line)
        now = time.monotonic()
        turn = max(_next_turn, now - (AT_ONCE - 1) * PAUSE)
        _next_turn = turn + PAUSE
        if turn <= now:
            log_line()
        else:
            turns.append(asyncio.get_running_loop().call_later(turn - now, log_line))

    try:
        yield announce
        log_line()
    finally:
        for turn in turns:
            turn.cancel()
