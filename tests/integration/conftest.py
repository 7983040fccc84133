# SPDX-License-Identifier: Apache-2.0
"""What integration tests share: a real Airflow that runs DAGs, a sandbox, an inbox, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.dag_runner import Airflow, Outcome, dag_runner
from tests.support.inbox_server import InboxServer
from tests.support.postgres import Postgres
from tests.support.warm import Warm
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase


@pytest.fixture(scope="session")
def airflow(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> Iterator[Airflow]:
    worker = Airflow(tmp_path_factory.mktemp("airflow"), migrated_database, warm)
    yield worker
    worker.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server that runs in every test; the inbox has a fixture for tests that stop it."""
    with Postgres() as server:
        yield server


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[InboxServer]:
    with InboxServer(tmp_path) as server:
        yield server


@pytest.fixture
def run_dag(airflow: Airflow, sandbox: SandboxServer) -> Callable[..., Outcome]:
    """Run the body of a DAG against the sandbox; see `dag_runner`."""
    return dag_runner(airflow, sandbox)
