"""How tests that run side by side share the machine."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests on a real Airflow run one after the other, and from the start; all others go to whoever is free."""
    from xdist.scheduler import LoadScopeScheduling

    class OneAirflow(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "tests/e2e" if nodeid.startswith("tests/e2e/") else nodeid

    return OneAirflow(config, log)
