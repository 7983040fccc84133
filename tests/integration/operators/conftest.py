# SPDX-License-Identifier: Apache-2.0
"""One sandbox per file, and connections for operators that are executed in the process of the test."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.hooks import optional
from tests.support.dag_runner import connection
from webdata_sandbox.server import SandboxServer


@pytest.fixture(autouse=True)
def forgets_failed_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process does not repeat an optional read for minutes, but the next test has another service."""
    monkeypatch.setattr(optional, "_failed", {})


# A file may move the clock forward, which a reset leaves as it is.
@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def sandbox(running_sandbox: SandboxServer) -> SandboxServer:
    """Return a sandbox without traces of other tests, except for its clock."""
    running_sandbox.control.reset()
    return running_sandbox


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that points the default connection to a server, with extras."""
    # Triggers run in this process: no worker lingers behind a deferred task.
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "0")

    def set_connection(server: Any, /, **extra: Any) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection(server, **extra))

    return set_connection


@pytest.fixture
def here(sandbox: SandboxServer, connect: Callable[..., None]) -> SandboxServer:
    """Point the default connection of this process to the sandbox."""
    connect(sandbox)
    return sandbox


@pytest.fixture
def log(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """Return a function that returns everything that was logged in this process so far, but by servers."""
    caplog.set_level(logging.INFO)
    parts: list[str] = []

    def text() -> str:
        parts.extend(capfd.readouterr())
        captured = "".join(parts)
        # A message may have reached both.
        others = [
            caplog.handler.format(found) for found in caplog.records if found.getMessage() not in captured
        ]
        lines = "\n".join([captured, *others]).splitlines(keepends=True)
        return "".join(line for line in lines if "uvicorn" not in line and "webdata.sandbox" not in line)

    return text
