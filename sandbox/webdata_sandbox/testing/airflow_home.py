# SPDX-License-Identifier: Apache-2.0
"""A temporary Airflow home for a pytest process."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_webdata import __version__

from .migrated_database import MigratedDatabase

if TYPE_CHECKING:
    from collections.abc import Callable

_NOT_WANTED = (
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST",
    # Another Airflow's database: its URLs, including the asynchronous one and those by command or secret, and its
    # driver's arguments.
    "AIRFLOW__DATABASE__",
    "AIRFLOW__CORE__SQL_ALCHEMY_",
    # Tasks would report to another Airflow.
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
    # A secrets backend takes precedence over the environment, so tests could call the real service.
    "AIRFLOW__SECRETS__",
    "AIRFLOW__WORKERS__SECRETS_BACKEND",
)
"""Prefixes of the environment variables that are removed."""


class AirflowHome:
    """A temporary folder for Airflow's settings, database, and logs.

    Environment variables that configure another Airflow's home, database, DAGs, or secrets are removed.

    :param dags: folder of the tested DAGs.
    :raises pytest.UsageError: the folder is missing, or Airflow was imported before.
    """

    def __init__(self, dags: Path) -> None:
        if not dags.is_dir():
            raise pytest.UsageError(f"webdata_dags_folder: folder {dags} does not exist")
        if "airflow" in sys.modules:
            raise pytest.UsageError(
                "webdata_dags_folder: another pytest plugin has already imported Airflow, which reads its home only "
                "once; disable that plugin (-p no:NAME), or remove the setting and set AIRFLOW_HOME yourself"
            )
        self.path = Path(tempfile.mkdtemp(prefix="webdata-airflow-"))
        self._environment = pytest.MonkeyPatch()
        for name in [name for name in os.environ if name.startswith(_NOT_WANTED)]:
            self._environment.delenv(name)
        for name, value in {
            "AIRFLOW_HOME": str(self.path),
            "AIRFLOW_CONFIG": str(self.path / "airflow.cfg"),
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.path / 'airflow.db'}",
        }.items():
            self._environment.setenv(name, value)

    def create_database(self, cache: Path | None, say: Callable[[str], None]) -> None:
        """Create the database. The first time takes several seconds.

        :param cache: folder that keeps the database for later runs; None: do not keep it.
        :param say: receives a message if the database must be created.
        :raises pytest.UsageError: Airflow could not create the database.
        """
        versions = f"{version('apache-airflow-core')}-{__version__}"
        database = MigratedDatabase((cache or self.path) / versions)
        if not database.exists:
            say("webdata: creating Airflow's database; pytest's cache keeps it")
        try:
            database.copy_to(self.path)
        except RuntimeError as error:
            raise pytest.UsageError(str(error)) from None

    def remove(self) -> None:
        """Delete the folder, and restore the environment."""
        self._environment.undo()
        shutil.rmtree(self.path, ignore_errors=True)
