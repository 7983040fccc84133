"""A sandbox or a server with given answers, and a connection to it in the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook
from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support.fault_server import FaultServer, Step, answer
from tests.support.service import SANDBOX_KEY, connection_text


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the default connection: base URL, key, extras."""

    def set_connection(url: str, key: str = SANDBOX_KEY, **extra: object) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(url, key, **extra))

    return set_connection


@pytest.fixture(params=[WebDataHook, AsyncWebDataHook])
def kind_of_hook(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def serve(connect: Any, kind_of_hook: Any) -> Iterator[Any]:
    """Return a function from answers to a server that gives them in order, and a hook that is connected to it."""
    servers: list[FaultServer] = []

    def start(*steps: Step | dict[str, Any]) -> tuple[FaultServer, Any]:
        made = [answer(body=json.dumps(step)) if isinstance(step, dict) else step for step in steps]
        servers.append(FaultServer(made))
        connect(servers[-1].url)
        return servers[-1], kind_of_hook()

    yield start
    for server in servers:
        server.close()
