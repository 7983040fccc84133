"""A SQLite database that Airflow has migrated, made once for all processes of a test run and copied from there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.errors import StackError


@dataclass(frozen=True)
class MigratedDatabase:
    """Makes the database in `folder`, which all processes of the run share, when it is asked for the first time."""

    folder: Path

    def copy_to(self, home: Path) -> None:
        """Make `airflow.db` in an Airflow home."""
        with (
            contextlib.closing(sqlite3.connect(self._made())) as made,
            contextlib.closing(sqlite3.connect(home / "airflow.db")) as copy,
        ):
            made.backup(copy)

    def _made(self) -> Path:
        home = self.folder / "migrated"
        home.mkdir(exist_ok=True)
        done = home / "done"
        with (home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                self._migrate(home)
                done.touch()
        return home / "airflow.db"

    @staticmethod
    def _migrate(home: Path) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        made = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env={**inherited, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if made.returncode:
            raise StackError(f"Airflow's database could not be made.\n{made.stdout[-3000:]}")
