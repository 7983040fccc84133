"""A server that does not answer: how long to pause, and what the waiting tasks are told, once each way."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from airflow_provider_webdata.api.retry import FIRST_PAUSE_SECONDS
from airflow_provider_webdata.waiting.mailbox import Notice

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_PAUSE = 30.0
LONGEST_NAMED_PAUSE = 300.0
"""Seconds; whoever asks for a longer pause is asked again after this."""


class Backoff:
    """Whether something answers, and since when not.

    :param what: what the notices call it.
    :param tell: told when an outage begins and when it is over.
    """

    def __init__(self, what: str, tell: Callable[[Notice], None]) -> None:
        self._what = what
        self._tell = tell
        self._failures = 0
        self._since = 0.0
        self.notice: Notice | None = None

    def failed(self, error: Exception, *, at_once: bool = False) -> float:
        """Count a failure and return the seconds to pause.

        A single failure is not told: a connection that was closed while idle is no outage.

        :param error: what was raised; its `retry_after` counts, if it has one.
        :param at_once: tell the first failure already.
        """
        self._failures += 1
        if self._failures == 1:
            self._since = time.time()
        if self.notice is None and (at_once or self._failures > 1):
            self.notice = Notice(f"{self._what}: {error}; it is tried again until it works or time is up")
            self._tell(self.notice)
        named = getattr(error, "retry_after", None)
        if named is not None:
            return min(float(named), LONGEST_NAMED_PAUSE) + random.uniform(0, 1)  # noqa: S311
        ceiling = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 10), LONGEST_PAUSE)
        return random.uniform(ceiling / 2, ceiling)  # noqa: S311

    def recovered(self) -> None:
        """Note that it answers; the end of an outage is told."""
        if self.notice is not None:
            self.notice = None
            self._tell(
                Notice(f"{self._what}: works again after {time.time() - self._since:.0f} s", trouble=False)
            )
        self._failures = 0
