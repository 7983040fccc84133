# SPDX-License-Identifier: Apache-2.0
"""The sandbox's clock, which can run faster than real time and can be advanced."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from webdata_sandbox.reference.timestamps import iso


class Clock:
    """A clock of sandbox time.

    :param speed: sandbox seconds per real second, above 0.
    :param start: initial sandbox time in seconds since the epoch; None: real time.
    :raises ValueError: ``speed`` is not above 0.
    """

    def __init__(self, speed: float = 1.0, start: float | None = None) -> None:
        if speed <= 0:
            raise ValueError(f"speed must be above 0, not {speed}")
        self.speed = speed
        self._anchor_real = time.monotonic()
        self._anchor = time.time() if start is None else start

    def now(self) -> float:
        """Return the current sandbox time in seconds since the epoch."""
        return self._anchor + (time.monotonic() - self._anchor_real) * self.speed

    def datetime(self) -> datetime:
        """Return the current sandbox time as an aware datetime in UTC."""
        return datetime.fromtimestamp(self.now(), timezone.utc)

    def iso(self) -> str:
        """Return the current sandbox time in the service's time format."""
        return iso(self.datetime())

    def jump_to(self, when: float) -> None:
        """Advance the clock to ``when``; it never goes back."""
        real = time.monotonic()
        self._anchor = max(when, self.now())
        self._anchor_real = real
