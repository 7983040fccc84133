# SPDX-License-Identifier: Apache-2.0
"""Rate limits: calls per minute in each class."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import TYPE_CHECKING

from webdata_sandbox.config import RATE_CLASSES
from webdata_sandbox.reference.errors import ServiceError

if TYPE_CHECKING:
    from webdata_sandbox.state.clock import Clock
    from webdata_sandbox.state.quirks import Quirks

WINDOW = 60.0


class RateLimits:
    """Counters of the calls in the current window, by class.

    :param limits: calls per minute by class; absent classes are unlimited.
    """

    def __init__(self, clock: Clock, quirks: Quirks, limits: dict[str, int]) -> None:
        self._clock, self._quirks = clock, quirks
        self._windows: dict[str, tuple[float, int]] = {}
        self.set(limits)

    def set(self, limits: dict[str, int]) -> None:
        """Replace the limits and reset the counters.

        :raises ValueError: a class is unknown or a limit is negative.
        """
        for name, limit in limits.items():
            if name not in RATE_CLASSES or limit < 0:
                classes = ", ".join(RATE_CLASSES)
                raise ValueError(
                    f"invalid rate limit {name}={limit}: the limit must be at least 0, and the class one of {classes}"
                )
        self._limits = dict(limits)
        self._windows.clear()

    def count(self, rate_class: str) -> None:
        """Count one call.

        :raises ServiceError: 429: the limit is exceeded.
        """
        limit = self._limits.get(rate_class)
        if limit is None:
            return
        now = self._clock.now()
        start, used = self._windows.get(rate_class, (now, 0))
        if now >= start + WINDOW:
            start, used = now, 0
        self._windows[rate_class] = (start, used + 1)
        if used >= limit:
            raise rate_limit_error(self._quirks, used + 1, start + WINDOW - now, start + WINDOW)


def rate_limit_error(quirks: Quirks, consumed: int, wait: float, resets: float) -> ServiceError:
    """Return a 429 error with a retry after ``wait`` seconds, at epoch time ``resets``."""
    seconds = max(1, math.ceil(wait))
    moment = datetime.fromtimestamp(resets, timezone.utc)
    text = f"Rate limit exceeded. Consumed (req/min): {consumed}, Remaining (req/min): 0."
    if quirks.on("retry-after-date"):
        return ServiceError(429, text, headers={"Retry-After": format_datetime(moment, usegmt=True)})
    text += (
        " Upgrade your plan for increased rate limits or please retry after"
        f" {seconds}s, resets at {javascript_date(moment)}"
    )
    headers = {} if quirks.on("retry-after-absent") else {"Retry-After": str(seconds)}
    return ServiceError(429, text, headers=headers)


def javascript_date(moment: datetime) -> str:
    """Format a time like JavaScript's ``Date.toString``."""
    return moment.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)")
