# SPDX-License-Identifier: Apache-2.0
"""A lagging read replica: missing or stale objects just after a write (sandbox/docs/service.md#late-reads)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

    from .quirks import Quirks


class Replica:
    """Returns missing or stale objects while the quirk ``late-replica`` is on."""

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks
        self._late: dict[str, tuple[int, Json | None]] = {}

    def note(self, key: str, before: Json | None) -> None:
        """Record a write. The next reads return ``before``, which is None for a new object."""
        reads = self._quirks.number("late-replica")
        if reads:
            self._late[key] = (reads, before)

    def see(self, key: str, now: Json | None) -> Json | None:
        """Return the object as a read shows it; ``now`` is its current state."""
        left, before = self._late.get(key, (0, None))
        if left < 1 or not self._quirks.on("late-replica"):
            self._late.pop(key, None)
            return now
        self._late[key] = (left - 1, before)
        return before
