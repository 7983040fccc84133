# SPDX-License-Identifier: Apache-2.0
"""A sandbox, and the home of an Airflow whose database is migrated and holds no connection."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.warm import airflow_environ
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, migrated_database: MigratedDatabase) -> Path:
    migrated_database.copy_to(tmp_path)
    return tmp_path


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    """What the commands of that Airflow run in."""
    environ = airflow_environ(home, AIRFLOW__CORE__DAGS_FOLDER=str(home / "dags"))
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ["PATH"]])
    return {name: value for name, value in environ.items() if not name.startswith("WEBDATA")}
