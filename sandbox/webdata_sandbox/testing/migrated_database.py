# SPDX-License-Identifier: Apache-2.0
"""A cached SQLite database, migrated by Airflow."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class MigratedDatabase:
    """Creates the database on first use.

    :param folder: the cache; processes may share it.
    """

    folder: Path

    @property
    def exists(self) -> bool:
        """Whether the database exists."""
        return self._done.exists()

    def copy_to(self, home: Path) -> None:
        """Create `airflow.db` in an Airflow home.

        :raises RuntimeError: Airflow could not migrate its database; the text is the end of its output.
        """
        with (
            contextlib.closing(sqlite3.connect(self._migrated())) as made,
            contextlib.closing(sqlite3.connect(home / "airflow.db")) as copy,
        ):
            made.backup(copy)

    @property
    def _home(self) -> Path:
        return self.folder / "migrated"

    @property
    def _done(self) -> Path:
        return self._home / "done"

    def _migrated(self) -> Path:
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.exists:
                self._migrate()
                self._done.touch()
        return self._home / "airflow.db"

    def _migrate(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        made = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env={**inherited, "AIRFLOW_HOME": str(self._home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if made.returncode:
            raise RuntimeError(f"Airflow's database could not be created.\n{made.stdout[-3000:]}")
