# SPDX-License-Identifier: Apache-2.0
"""A sandbox or a server with given answers, and a connection to it in the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from tests.support.fault_server import FaultServer, Step, answer
from tests.support.service import CONNECTION_ID, SANDBOX_KEY, connection_text
from webdata_sandbox.server import SandboxServer

# Both hooks share all decisions: tables of decisions need one of them.
one_hook = pytest.mark.parametrize("kind_of_hook", [WebDataHook], indirect=True, ids=["blocking"])


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def sandbox(shared_sandbox: SandboxServer) -> Iterator[SandboxServer]:
    yield shared_sandbox
    shared_sandbox.control.reset()


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the default connection: base URL, key, extras."""

    def set_connection(url: str, key: str = SANDBOX_KEY, **extra: object) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection_text(url, key, **extra))

    return set_connection


@pytest.fixture(params=[WebDataHook, WebDataAsyncHook], ids=["blocking", "async"])
def kind_of_hook(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def serve(connect: Any, kind_of_hook: Any) -> Iterator[Any]:
    """Start a server that gives these answers in order, and return it with a connected hook."""
    servers: list[FaultServer] = []

    def start(*steps: Step | dict[str, Any], **extra: Any) -> tuple[FaultServer, Any]:
        answers = [answer(body=json.dumps(step)) if isinstance(step, dict) else step for step in steps]
        servers.append(FaultServer(answers))
        connect(servers[-1].url, **extra)
        return servers[-1], kind_of_hook()

    yield start
    for server in servers:
        server.close()
