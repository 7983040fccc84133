"""A sandbox, and a real Airflow that runs DAGs against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer
from airflow_provider_webdata.testing.migrated_database import MigratedDatabase
from tests.support.dag_runner import Airflow, Outcome, dag_runner


@pytest.fixture(scope="session")
def airflow(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase
) -> Iterator[Airflow]:
    worker = Airflow(tmp_path_factory.mktemp("airflow"), migrated_database)
    yield worker
    worker.stop()


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def run_dag(airflow: Airflow, sandbox: SandboxServer) -> Callable[..., Outcome]:
    """Run the body of a DAG against the sandbox; see `dag_runner`."""
    return dag_runner(airflow, sandbox)
