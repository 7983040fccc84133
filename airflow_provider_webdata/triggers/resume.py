"""The trigger of a task whose wait is over, and which the service asked to come later for the result."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_webdata.triggers.base.announcement import Announcement
from airflow_provider_webdata.triggers.base.serialization import serialized

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_LONGEST_NAP = 60.0


class ResumeTrigger(BaseTrigger):
    """Ends at a moment, with the event that an earlier trigger ended with, so that nothing is waited for twice.

    :param when: seconds since the epoch.
    :param event: the event, JSON-able and without secrets.
    """

    def __init__(self, when: float, event: Mapping[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.when = when
        self.event = dict(event)

    serialize = serialized

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Sleep by the wall clock, then yield the event."""
        with Announcement(self.logger()) as announcement:
            what = "the time at which the service lets the result be read"
            announcement.announce(what, "by the clock", self.when)
            while (left := self.when - time.time()) > 0:
                await asyncio.sleep(min(left, _LONGEST_NAP))
        yield TriggerEvent(self.event)  # type: ignore[no-untyped-call]
