"""The Airflow under faults: a component that dies is started again, as a supervisor would."""

from __future__ import annotations

from dataclasses import dataclass, field

from demo.pairs import OTHER_CONNECTION, PairedStack
from tests.support.service import CONNECTION_ID


@dataclass
class ChaosStack(PairedStack):
    """Two API servers, two triggerers and a scheduler that runs tasks itself.

    :ivar down: the components that a fault keeps down.
    """

    down: set[str] = field(default_factory=set)

    @property
    def inboxes(self) -> dict[str, str]:
        """The address of each connection's inbox."""
        return {CONNECTION_ID: self.airflow_url, OTHER_CONNECTION: self.other_url}

    def revive(self) -> list[str]:
        """Restart components that have died by themselves; return their names."""
        dead = [name for name in self.components if name not in self.down and not self.runs(name)]
        for name in dead:
            # Its children may still be there.
            self.kill(name)
            self.launch(name)
        return dead
