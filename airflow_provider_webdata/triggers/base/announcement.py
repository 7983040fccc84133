"""The first line in the log of a wait: a few at a time where many waits start together."""

from __future__ import annotations

import asyncio
import time
from typing import Any

AT_ONCE, PAUSE = 20, 0.5
"""So many lines are logged immediately, and from then on one after each pause in seconds.

Airflow's process that reads a triggerer's log also sends it its triggers, one thing at a time (3.3.2). Where some 200
lines are unread while it sends many triggers, both processes wait for each other, for ever; it adds a line of its own
for each trigger.
"""

_next_turn = float("-inf")


class Announcement:
    """Logs one line in its turn, and at the latest when the block of this context manager ends.

    After an exception it is not logged any more.

    :param log: of the trigger.
    """

    __slots__ = ("_line", "_log", "_turn")

    def __init__(self, log: Any) -> None:
        self._log = log
        self._line: str | None = None
        self._turn: asyncio.TimerHandle | None = None

    def announce(self, line: str) -> None:
        """Log a line in its turn."""
        global _next_turn
        self._line = line
        now = time.monotonic()
        turn = max(_next_turn, now - (AT_ONCE - 1) * PAUSE)
        _next_turn = turn + PAUSE
        if turn <= now:
            self._log_line()
        else:
            self._turn = asyncio.get_running_loop().call_later(turn - now, self._log_line)

    def _log_line(self) -> None:
        line, self._line, self._turn = self._line, None, None
        if line is not None:
            self._log.info(line)

    def __enter__(self) -> Announcement:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._turn is not None:
            self._turn.cancel()
        if kind is None:
            self._log_line()
