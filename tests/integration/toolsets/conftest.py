# SPDX-License-Identifier: Apache-2.0
"""A sandbox, a connection to it, and agents that do what they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.service import connection_text
from webdata_sandbox.server import SandboxServer

collect_ignore_glob: list[str] = []
try:
    import pydantic_ai  # noqa: F401
except ImportError:
    # Airflow's provider of agents knows no Python 3.10.
    collect_ignore_glob.append("test_*.py")


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url, server.api_key))
        yield server


@pytest.fixture
def obey() -> Callable[..., str]:
    """Run an agent that obeys; return all that it has seen."""
    from pydantic_ai import Agent

    from tests.support.obedient_model import obedient_model

    def run(prompt: str, *toolsets: Any) -> str:
        return str(Agent(obedient_model(), toolsets=toolsets, retries=99).run_sync(prompt).output)

    return run
