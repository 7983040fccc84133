"""The core that all parts of a sandbox share."""

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
    from airflow_provider_webdata.sandbox.config import SandboxConfig


class Core:
    """The state of one sandbox.

    :raises ValueError: when a setting is wrong.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self.quirks = Quirks(config.quirks)
        self.settings = Settings(config)
        self.store = Store(config.state)
        self.clock = Clock(config.speed, self._stored_time())
        self.agenda = Agenda(self.clock)
        self.faults = Faults()
        self.replica = Replica(self.quirks)
        self.credits = Credits(self.store, self.clock, self.quirks, config.credits)

    async def advance(self, seconds: float) -> None:
        """Move the clock forward and do all that falls due on the way."""
        await self.agenda.advance(seconds)
        self.keep_time()

    def keep_time(self) -> None:
        """Keep the present time, so that a restarted sandbox does not go back in it."""
        self.store.put("meta", "clock", {"now": self.clock.now()})

    async def reset(self) -> None:
        """Go back to the start: nothing stored or planned, no faults, all credits, the first quirks and settings."""
        self.agenda.clear()
        await self.agenda.close()
        self.store.clear()
        self.keep_time()
        self.credits.reset()
        self.faults.clear()
        self.quirks.set(self._config.quirks)
        self.settings.reset()

    def close(self) -> None:
        """Let go of the state."""
        self.keep_time()
        self.store.close()

    def _stored_time(self) -> float | None:
        """Return the time to begin at when the state comes from a sandbox whose clock was moved ahead."""
        stored = self.store.get("meta", "clock")
        return max(time.time(), stored["now"]) if stored else None
