"""The trigger of a task that has what it waited for, and was asked to come back later for the rest."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_LONGEST_NAP = 60.0


class ResumeTrigger(BaseTrigger):
    """Ends at a moment, with the event that an earlier trigger ended with: nothing is waited for twice.

    :param when: seconds since the epoch.
    :param event: the event, JSON-able and without secrets.
    """

    def __init__(self, when: float, event: Mapping[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.when = when
        self.event = event

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class's path and its arguments."""
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        return path, {"when": self.when, "event": dict(self.event)}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Sleep by the wall clock, then hand the event back."""
        while (left := self.when - time.time()) > 0:
            await asyncio.sleep(min(left, _LONGEST_NAP))
        yield TriggerEvent(dict(self.event))  # type: ignore[no-untyped-call]
