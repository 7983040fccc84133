# SPDX-License-Identifier: Apache-2.0
"""The databases of the benchmarks, each empty and with its default settings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.postgres import Postgres


@contextlib.contextmanager
def _sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder}/airflow.db"


@contextlib.contextmanager
def _postgres(_folder: Path) -> Iterator[str]:
    with Postgres() as server:
        yield server.create_database("airflow")


DATABASES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "SQLite": _sqlite,
    "PostgreSQL": _postgres,
}
"""Context managers by database: each accepts a folder for files and yields a SQLAlchemy URL."""
