"""How tests that run side by side share the machine, and what they share besides."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.testing.migrated_database import MigratedDatabase
from tests.support.examples import load_profile
from tests.support.warm import Warm, airflow_environ

# Each httpx client loads the certificates of the machine, which takes longer than most tests. These are few.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "support" / "certificates.pem")

load_profile()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests on one real Airflow run one after the other, and from the start; all others go to whoever is free."""
    from xdist.scheduler import LoadScopeScheduling

    # In the order of the folders, not of the number of tests in a file.
    config.option.loadscopereorder = False

    class AirflowsFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            """Each file is run by one process."""
            if not nodeid.startswith("tests/e2e/"):
                return nodeid.split("::")[0]
            if "[postgresql" in nodeid or nodeid.startswith("tests/e2e/test_demo.py"):
                return "the demo, then Airflow on PostgreSQL"
            return "Airflow on SQLite"

    return AirflowsFirst(config, log)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of this run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def warm(shared_folder: Path) -> Iterator[Warm]:
    """Start programs with Airflow already imported."""
    warm = Warm(shared_folder / "warm")
    yield warm
    warm.close()


@dataclass(frozen=True)
class WarmDatabase(MigratedDatabase):
    """A database that is migrated with Airflow already imported."""

    warm: Warm

    def _migrate(self) -> None:
        done = self.warm.run(["-m", "airflow", "db", "migrate"], env=airflow_environ(self._home))
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture(scope="session")
def migrated_database(shared_folder: Path, warm: Warm) -> MigratedDatabase:
    return WarmDatabase(shared_folder, warm)
