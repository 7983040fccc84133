# SPDX-License-Identifier: Apache-2.0
"""Backoff for unavailable servers, with notices at the start and end of an outage."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from airflow_provider_webdata.api.retry import FIRST_PAUSE_SECONDS, SILENT_PAUSE_SECONDS
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.waiting.mailbox import Notice

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PAUSE = 30.0
MAX_NAMED_PAUSE = 300.0
"""Maximum `Retry-After` in seconds."""


class Backoff:
    """Counts consecutive failures and computes the pause before the next attempt.

    :param name: the server's name in notices.
    :param notify: receives a notice at the start and end of an outage.
    :param meanwhile: the end of the notice at the start: what happens during the outage.
    """

    def __init__(self, name: str, notify: Callable[[Notice], None], meanwhile: str = "") -> None:
        self._name = name
        self._notify = notify
        self._meanwhile = meanwhile
        self._failures = 0
        self._since = 0.0
        self.notice: Notice | None = None

    def failed(self, error: Exception, *, at_once: bool = False, is_silent: bool = False) -> float:
        """Count a failure and return the seconds to pause.

        A single failure causes no notice unless it has a `retry_after`: an idle connection that was closed is not an
        outage.

        :param error: the exception; its `retry_after`, if any, determines the pause.
        :param at_once: notify on the first failure.
        :param is_silent: do not notify.
        """
        self._failures += 1
        if self._failures == 1:
            self._since = time.time()
        pause = self._pause(getattr(error, "retry_after", None))
        is_outage = at_once or self._failures > 1 or pause > SILENT_PAUSE_SECONDS
        if self.notice is None and is_outage and not is_silent:
            self.notice = Notice(
                f"{self._name}: {brief(error)}; the next attempt is in {pause:.1f} s, and retries continue until the "
                f"wait times out{self._meanwhile}"
            )
            self._notify(self.notice)
        return pause

    def _pause(self, named: float | None) -> float:
        if named is not None:
            return min(float(named), MAX_NAMED_PAUSE) + random.uniform(0, 1)  # noqa: S311
        ceiling = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 10), MAX_PAUSE)
        return random.uniform(ceiling / 2, ceiling)  # noqa: S311

    @property
    def seconds(self) -> float:
        """How long the current outage has lasted; 0 without one."""
        return time.time() - self._since if self._failures else 0.0

    def recovered(self) -> None:
        """Reset the failures, and notify if an outage has ended."""
        if self.notice is not None:
            self.notice = None
            seconds = time.time() - self._since
            self._notify(Notice(f"{self._name}: available again after {seconds:.0f} s", is_warning=False))
        self._failures = 0
