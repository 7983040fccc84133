"""Rate limits: calls per minute in each class."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.config import RATE_CLASSES
from airflow_provider_webdata.sandbox.reference.errors import ServiceError

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.state.clock import Clock
    from airflow_provider_webdata.sandbox.state.quirks import Quirks

WINDOW = 60.0


class RateLimits:
    """Counters of the calls in the present window, by class.

    :param limits: calls per minute by class; a class that is absent is not limited.
    """

    def __init__(self, clock: Clock, quirks: Quirks, limits: dict[str, int]) -> None:
        self._clock, self._quirks = clock, quirks
        self._windows: dict[str, tuple[float, int]] = {}
        self.set(limits)

    def set(self, limits: dict[str, int]) -> None:
        """Replace the limits and start counting anew.

        :raises ValueError: when a class is unknown or a limit is under 0.
        """
        for name, limit in limits.items():
            if name not in RATE_CLASSES or limit < 0:
                raise ValueError(f"a rate limit is CLASS=N with CLASS one of {', '.join(RATE_CLASSES)}")
        self._limits = dict(limits)
        self._windows.clear()

    def count(self, rate_class: str) -> None:
        """Count one call.

        :raises ServiceError: 429 when the window is full.
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
            raise too_many(self._quirks, used + 1, start + WINDOW - now, start + WINDOW)


def too_many(quirks: Quirks, consumed: int, wait: float, resets: float) -> ServiceError:
    """Return the 429 that asks to wait ``wait`` seconds, until the epoch time ``resets``."""
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
    """Write a time as JavaScript's Date does, which is not ISO."""
    return moment.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)")
