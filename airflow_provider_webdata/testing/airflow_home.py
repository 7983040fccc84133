"""The Airflow home of one pytest process."""

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
    # Another Airflow's database: its addresses, also the asynchronous one and those by command or by secret, and the
    # arguments of its driver.
    "AIRFLOW__DATABASE__",
    "AIRFLOW__CORE__SQL_ALCHEMY_",
    # Tasks would report to another Airflow.
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
    # A backend goes before the environment: it would lead to the service itself where it knows the connection.
    "AIRFLOW__SECRETS__",
    "AIRFLOW__WORKERS__SECRETS_BACKEND",
)
"""Beginnings of the names of variables."""


class AirflowHome:
    """A new folder, in which Airflow keeps its settings, its database and its logs until the tests are over.

    Nothing that the environment says of another Airflow's home, configuration, database, DAGs or secrets counts.

    :param dags: folder of the DAGs that are tested.
    :raises pytest.UsageError: there is no such folder, or Airflow has been imported already.
    """

    def __init__(self, dags: Path) -> None:
        if not dags.is_dir():
            raise pytest.UsageError(f"webdata_dags_folder: there is no folder {dags}")
        if "airflow" in sys.modules:
            raise pytest.UsageError(
                "webdata_dags_folder: another plugin of pytest has imported Airflow already, which reads its home "
                "once; leave that plugin out (-p no:NAME), or remove the setting and set AIRFLOW_HOME yourself"
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

    def make_database(self, cache: Path | None, say: Callable[[str], None]) -> None:
        """Create the database, which takes Airflow a while at the first time.

        :param cache: where to keep it for later runs; None: it is not kept.
        :param say: receives a message if it must be created.
        :raises pytest.UsageError: Airflow could not create it.
        """
        versions = f"{version('apache-airflow-core')}-{__version__}"
        database = MigratedDatabase((cache or self.path) / versions)
        if not database.is_made:
            say("webdata: Airflow makes its database, which pytest's cache then keeps")
        try:
            database.copy_to(self.path)
        except RuntimeError as error:
            raise pytest.UsageError(str(error)) from None

    def remove(self) -> None:
        """Delete the folder, and set the environment back."""
        self._environment.undo()
        shutil.rmtree(self.path, ignore_errors=True)
