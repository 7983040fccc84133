"""How tests that run side by side share the machine."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests on one real Airflow run one after the other, and from the start; all others go to whoever is free."""
    from xdist.scheduler import LoadScopeScheduling

    class AirflowsFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            """What has the most tests is begun first, and one process runs all of it."""
            if not nodeid.startswith("tests/e2e/"):
                return nodeid
            if "[postgresql" in nodeid or nodeid.startswith("tests/e2e/test_demo.py"):
                return "the demo, then Airflow on PostgreSQL"
            return "Airflow on SQLite"

    return AirflowsFirst(config, log)
