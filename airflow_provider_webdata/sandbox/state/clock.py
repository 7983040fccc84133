"""The sandbox's own time: it can run faster than real time and can be moved forward by hand."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from airflow_provider_webdata.sandbox.reference.timestamps import iso


class Clock:
    """Seconds since the epoch, as the sandbox sees them.

    :param speed: sandbox seconds per real second, above 0.
    :param start: sandbox time to begin at; real time when absent.
    """

    def __init__(self, speed: float = 1.0, start: float | None = None) -> None:
        if speed <= 0:
            raise ValueError(f"speed must be above 0, not {speed}")
        self.speed = speed
        self._anchor_real = time.monotonic()
        self._anchor = time.time() if start is None else start

    def now(self) -> float:
        """Return the present sandbox time in seconds since the epoch."""
        return self._anchor + (time.monotonic() - self._anchor_real) * self.speed

    def datetime(self) -> datetime:
        """Return the present sandbox time as an aware datetime in UTC."""
        return datetime.fromtimestamp(self.now(), timezone.utc)

    def iso(self) -> str:
        """Return the present sandbox time as the service writes times."""
        return iso(self.datetime())

    def jump_to(self, when: float) -> None:
        """Move the clock to ``when``; it never moves back."""
        real = time.monotonic()
        self._anchor = max(when, self.now())
        self._anchor_real = real
