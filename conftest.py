# SPDX-License-Identifier: Apache-2.0
"""How tests that run side by side share the machine, and what they share besides."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.examples import load_profile
from tests.support.waiting import wait_until
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.testing.migrated_database import MigratedDatabase

# Each httpx client loads the certificates of the machine, which takes longer than most tests. These are few.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "tests" / "support" / "certificates.pem")

load_profile()

PACKAGES = ("airflow_provider_webdata", "webdata_sandbox")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test another installed copy, which programs that tests start would import.

    :raises UsageError: the environment has a copy elsewhere.
    """
    if hasattr(config, "workerinput"):
        return
    for package in PACKAGES:
        code = f"import {package} as package; print(package.__file__)"
        found = subprocess.run(
            [sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=False
        )
        place = found.stdout.strip()
        if not place or not Path(place).is_relative_to(config.rootpath):
            raise pytest.UsageError(
                f"this environment imports {package} from {place or 'nowhere'}, not from {config.rootpath}; "
                "run .venv/bin/python -m pytest of this clone"
            )


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect in one process first, so that the others find the bytecode of a fresh clone's tests and packages.

    No garbage is collected among the tests, which live until the end: that was a sixth of each process's start.
    """
    worker = getattr(session.config, "workerinput", {}).get("workerid")
    compiled = Path(session.config.option.basetemp).parent / "compiled" if worker else None
    if compiled is not None and worker != "gw0":
        wait_until(compiled.exists)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        if compiled is not None:
            compiled.touch()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give more time to tests that start programs with Airflow: a whole one takes minutes on a busy machine."""
    for item in items:
        is_long = "warm" in getattr(item, "fixturenames", ())
        if is_long and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


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
def warm(shared_folder: Path, request: pytest.FixtureRequest) -> Warm:
    """Start programs with Airflow already imported."""
    warm = Warm(shared_folder / "warm")
    # Not at the end of the last test: the process ends with its last user, and the time limit of a test is shorter.
    request.config.add_cleanup(warm.close)
    return warm


@dataclass(frozen=True)
class WarmDatabase(MigratedDatabase):
    """A database that is migrated with Airflow already imported."""

    warm: Warm

    def _migrate(self) -> None:
        done = self.warm.run(
            ["-m", "airflow", "db", "migrate"],
            env=airflow_environ(self._home, AIRFLOW__WEBDATA__INBOX="True"),
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture(scope="session")
def migrated_database(shared_folder: Path, warm: Warm) -> MigratedDatabase:
    return WarmDatabase(shared_folder, warm)
