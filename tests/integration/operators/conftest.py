"""A sandbox, and a real Airflow that runs DAGs against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support.dag_runner import Airflow, Outcome, dag_runner


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def run_dag(airflow: Airflow, sandbox: SandboxServer) -> Callable[..., Outcome]:
    """Run the body of a DAG against the sandbox; see `dag_runner`."""
    return dag_runner(airflow, sandbox)
