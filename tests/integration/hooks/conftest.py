"""A sandbox, and a connection to it in the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the default connection: base URL, key, extras."""

    def set_connection(url: str, key: str = "wd-sandbox-key", **extra: object) -> None:
        value = {"conn_type": "webdata", "host": url, "password": key, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", json.dumps(value))

    return set_connection
