# SPDX-License-Identifier: Apache-2.0
"""The state that all parts of a sandbox share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .agenda import Agenda
from .clock import Clock
from .credits import Credits
from .faults import Faults
from .quirks import Quirks
from .replica import Replica
from .settings import Settings
from .store import Store

if TYPE_CHECKING:
    from webdata_sandbox.config import SandboxConfig


class Core:
    """The state of one sandbox.

    :ivar ended: whether the emulated server has ended. Only the control API still responds.
    :raises ValueError: a setting is invalid.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self.quirks = Quirks(config.quirks)
        self.settings = Settings(config)
        self.store = Store(config.state)
        self.clock = Clock(config.speed, self._stored_time())
        self.agenda = Agenda(self.clock)
        self.faults = Faults()
        self.ended = False
        self.replica = Replica(self.quirks)
        self.credits = Credits(self.store, self.clock, self.quirks, self.settings, config.credits)

    async def advance(self, seconds: float) -> None:
        """Advance the clock, and run the actions that become due."""
        await self.agenda.advance(seconds)
        self.keep_time()

    def keep_time(self) -> None:
        """Store the current time, so that the clock of a restarted sandbox does not go back."""
        self.store.put("meta", "clock", {"now": self.clock.now()})

    async def reset(self) -> None:
        """Remove all objects, actions, and faults, and restore the initial credits, quirks, and settings."""
        self.agenda.clear()
        await self.agenda.close()
        self.store.clear()
        self.keep_time()
        self.credits.reset()
        self.faults.clear()
        self.quirks.set(self._config.quirks)
        self.settings.reset()
        self.ended = False

    def end(self) -> None:
        """End the server: pending work never happens, and calls get no response until a reset."""
        self.ended = True
        self.agenda.clear()

    def close(self) -> None:
        """Store the time and close the store."""
        self.keep_time()
        self.store.close()

    def _stored_time(self) -> float | None:
        """Return the initial time for the state of an earlier sandbox, whose clock may be ahead of real time."""
        stored = self.store.get("meta", "clock")
        return max(time.time(), stored["now"]) if stored else None
