# SPDX-License-Identifier: Apache-2.0
"""Trigger that resumes a task when the service makes a result available, after the wait itself has ended."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_webdata.triggers.base.announcement import Announcement
from airflow_provider_webdata.triggers.base.serialization import serialized

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_MAX_NAP = 60.0


class ResumeTrigger(BaseTrigger):
    """Emits the event of an earlier trigger again at a given time, so the wait is not repeated.

    :param when: seconds since the epoch.
    :param event: the event, a stored `WaitOutcome`.
    """

    def __init__(self, when: float, event: Mapping[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.when = when
        self.event = dict(event)

    serialize = serialized

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Sleep by the wall clock, then yield the event."""
        with Announcement() as announcement:
            subject = "the time from which the service returns the result"
            announcement.announce(subject, "by the clock", self.when)
            while (left := self.when - time.time()) > 0:
                await asyncio.sleep(min(left, _MAX_NAP))
        yield TriggerEvent(self.event)  # type: ignore[no-untyped-call]
