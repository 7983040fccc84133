"""A server that does not answer: how long to pause, and a notice when an outage begins and when it ends."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from airflow_provider_webdata.api.retry import FIRST_PAUSE_SECONDS, SILENT_PAUSE_SECONDS
from airflow_provider_webdata.waiting.mailbox import Notice

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_PAUSE = 30.0
LONGEST_NAMED_PAUSE = 300.0
"""Seconds; the longest `Retry-After` that is honoured."""


class Backoff:
    """Counts failures in a row, and computes the pause before the next attempt.

    :param name: the server's name in notices.
    :param notify: gets a notice when an outage begins and when it is over.
    """

    def __init__(self, name: str, notify: Callable[[Notice], None]) -> None:
        self._name = name
        self._notify = notify
        self._failures = 0
        self._since = 0.0
        self.notice: Notice | None = None

    def failed(self, error: Exception, *, at_once: bool = False) -> float:
        """Count a failure and return the seconds to pause.

        A single failure makes no notice, unless it names a time to come back: a connection that was closed while idle
        is no outage.

        :param error: what was raised; its `retry_after` counts, if it has one.
        :param at_once: make a notice of the first failure already.
        """
        self._failures += 1
        if self._failures == 1:
            self._since = time.time()
        pause = self._pause(getattr(error, "retry_after", None))
        if self.notice is None and (at_once or self._failures > 1 or pause > SILENT_PAUSE_SECONDS):
            self.notice = Notice(
                f"{self._name}: {error}; the next attempt is in {pause:.1f} s, retrying until it works or the wait "
                "times out"
            )
            self._notify(self.notice)
        return pause

    def _pause(self, named: float | None) -> float:
        if named is not None:
            return min(float(named), LONGEST_NAMED_PAUSE) + random.uniform(0, 1)  # noqa: S311
        ceiling = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 10), LONGEST_PAUSE)
        return random.uniform(ceiling / 2, ceiling)  # noqa: S311

    def recovered(self) -> None:
        """Note that the server answers; the end of an outage makes a notice."""
        if self.notice is not None:
            self.notice = None
            seconds = time.time() - self._since
            self._notify(Notice(f"{self._name}: works again after {seconds:.0f} s", is_warning=False))
        self._failures = 0
