# SPDX-License-Identifier: Apache-2.0
"""Rate-limited logging of the first line of each wait."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextvars import Context, copy_context
from functools import partial
from weakref import WeakKeyDictionary

from airflow_provider_webdata.common.coded_errors import traceback_of
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.waiting.target import waiting_for

log = logger(__name__)

AT_ONCE, PAUSE = 20, 0.5
"""A burst of `AT_ONCE` lines is logged immediately; further lines follow at intervals of `PAUSE` seconds.

The Airflow process that reads a triggerer's log also sends it its triggers, sequentially. If about 200 lines are unread
while it sends many triggers, both processes deadlock: docs/contributing/upstream/triggerer_log_deadlock.md. Airflow
itself logs one line for each trigger.
"""

_next_turn = float("-inf")
_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[Announcement]] = WeakKeyDictionary()


class Announcement:
    """Logs one line when the rate limit allows, and at the latest when this context manager exits.

    An exit with an exception discards the line. Ten thousand announcements may be pending, so they share one timer and
    format the line only when they log it.
    """

    __slots__ = ("_context", "_deadline", "_how", "_subject")

    def __init__(self) -> None:
        self._subject: object = None
        self._how = ""
        self._deadline: float | None = None
        self._context: Context | None = None

    def announce(self, subject: object, how: str, deadline: float | None) -> None:
        """Schedule the line; the arguments are those of `waiting_for`."""
        self._subject, self._how, self._deadline = subject, how, deadline
        # Airflow selects the trigger's log by a context variable.
        self._context = copy_context()
        queue = _queues.setdefault(asyncio.get_running_loop(), deque())
        queue.append(self)
        if len(queue) == 1:
            _log_due(queue)

    def log_line(self) -> bool:
        """Log the line unless it was already logged; return whether it was logged now."""
        context, self._context = self._context, None
        if context is None:
            return False
        context.run(partial(log.info, "%s", waiting_for(self._subject, self._how, self._deadline)))
        self._subject = None
        return True

    def __enter__(self) -> Announcement:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.log_line()
        self._context = self._subject = None


def _log_due(queue: deque[Announcement]) -> None:
    global _next_turn
    while queue:
        now = time.monotonic()
        turn = max(_next_turn, now - (AT_ONCE - 1) * PAUSE)
        if turn > now:
            asyncio.get_running_loop().call_later(turn - now, _log_due, queue)
            return
        try:
            if queue.popleft().log_line():
                _next_turn = turn + PAUSE
        except Exception as error:  # noqa: BLE001 - the next lines follow
            log.error("Could not log the first line of a wait%s", traceback_of(error))
