# SPDX-License-Identifier: Apache-2.0
"""The Airflow for the faults. Like a supervisor, it restarts components that die."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sqlalchemy

from demo.pairs import OTHER_CONNECTION, TRIGGERERS, PairedStack
from tests.support.airflow_settings import DATABASE_URL
from tests.support.service import CONNECTION_ID
from tests.support.stack import Component
from tests.support.waiting import PATIENCE

COMPLETED = "event = 'batch_scrape.completed'"
_UNREGISTERED = f"""
SELECT 1 FROM webdata_asset_event WHERE state = 'queued'
UNION ALL
SELECT 1 FROM webdata_inbox_delivery WHERE {COMPLETED} AND (
    position IS NULL OR position > (SELECT last_position FROM webdata_inbox_counter WHERE id = 2)
) LIMIT 1
"""


@dataclass
class ChaosStack(PairedStack):
    """Two API servers, two triggerers, and a scheduler that runs tasks itself; on SQLite, one triggerer.

    :ivar down: components that must not be restarted during a fault.
    """

    down: set[str] = field(default_factory=set)

    @property
    def components(self) -> Mapping[str, Component]:
        """The components. On SQLite, all but the API servers wait longer for its lock."""
        if self.database_url:
            return super().components
        patient = {DATABASE_URL: f"{self._environment[DATABASE_URL]}?timeout={PATIENCE}"}
        return {
            name: component if name.startswith("api-server") else Component(component.argv, patient)
            for name, component in super().components.items()
            if name != TRIGGERERS[1]
        }

    def query(self, statement: str) -> list[sqlalchemy.Row[Any]]:
        """Return the rows of a query on Airflow's database."""
        with self._engine.connect() as connection:
            return list(connection.execute(sqlalchemy.text(statement)))

    def has_unregistered_events(self) -> bool:
        """Return whether the asset event of any committed delivery is unregistered."""
        return bool(self.query(_UNREGISTERED))

    @cached_property
    def _engine(self) -> sqlalchemy.Engine:
        if self.database_url:
            return sqlalchemy.create_engine(
                self.database_url, isolation_level="AUTOCOMMIT", pool_pre_ping=True
            )
        url = f"sqlite:///{self.home}/airflow.db"
        return sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT", connect_args={"timeout": PATIENCE})

    @property
    def inboxes(self) -> dict[str, str]:
        """The inbox URL of each connection."""
        return {CONNECTION_ID: self.airflow_url, OTHER_CONNECTION: self.other_url}

    def revive(self) -> list[str]:
        """Restart dead components, except those that a fault keeps down; return their names."""
        dead = [name for name in self.components if name not in self.down and not self.runs(name)]
        for name in dead:
            # Its children may still be running.
            self.kill(name)
            self.launch(name)
        return dead
