# SPDX-License-Identifier: Apache-2.0
"""Clients to point at a server that misbehaves."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator

import pytest

from tests.support.fault_server import Caller, FaultServer, Step


@pytest.fixture(params=["sync", "async"])
def caller(request: pytest.FixtureRequest) -> Caller:
    return Caller(request.param)


@pytest.fixture
def serve() -> Iterator[Callable[..., FaultServer]]:
    servers: list[FaultServer] = []

    def start(*steps: Step, tls: ssl.SSLContext | None = None) -> FaultServer:
        servers.append(FaultServer(steps, tls))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the client's own pauses; waits that the service names stay as they are."""
    monkeypatch.setattr("airflow_provider_webdata.api.retry.FIRST_PAUSE_SECONDS", 0.002)
