"""A real Airflow that runs DAGs, for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_webdata.testing.migrated_database import MigratedDatabase
from tests.support.dag_runner import Airflow
from tests.support.warm import Warm


@pytest.fixture(scope="session")
def airflow(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> Iterator[Airflow]:
    worker = Airflow(tmp_path_factory.mktemp("airflow"), migrated_database, warm)
    yield worker
    worker.stop()
