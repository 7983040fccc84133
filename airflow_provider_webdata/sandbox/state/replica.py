"""The read replica that lags behind: absent or stale reads just after a write (docs/service.md#late-reads)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.reference.wire import Json

    from .quirks import Quirks


class Replica:
    """Answers reads as a late replica would, while the quirk is on."""

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks
        self._late: dict[str, tuple[int, Json | None]] = {}

    def note(self, key: str, before: Json | None) -> None:
        """Record a write. Reads still show ``before``, which is None for a new object."""
        reads = self._quirks.number("late-replica")
        if reads:
            self._late[key] = (reads, before)

    def see(self, key: str, now: Json | None) -> Json | None:
        """Return the state that a read shows of an object whose current state is ``now``."""
        left, before = self._late.get(key, (0, None))
        if left < 1 or not self._quirks.on("late-replica"):
            self._late.pop(key, None)
            return now
        self._late[key] = (left - 1, before)
        return before
