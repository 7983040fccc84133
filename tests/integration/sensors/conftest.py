# SPDX-License-Identifier: Apache-2.0
"""Monitors of a sandbox, and a connection that can receive deliveries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.support.inbox_server import InboxServer
from tests.support.service import NEVER

PAGE = "https://watched.example/"
SHOP = [PAGE, "https://watched.example/two"]
AGO = "2020-01-01T00:00:00Z"

MODES: dict[str, dict[str, Any]] = {
    "poke": {"deferrable": False},
    "reschedule": {"deferrable": False, "mode": "reschedule"},
    "defer": {"deferrable": True},
}
"""Arguments of a sensor for each way to wait."""


def task(operator: str, task_id: str, **arguments: Any) -> str:
    """Return the line of a DAG that creates a task."""
    given = "".join(f", {name}={value!r}" for name, value in arguments.items())
    return f"{operator}(task_id={task_id!r}{given})"


class Service:
    """The monitors of a sandbox, over its own interface."""

    def __init__(self, sandbox: Any) -> None:
        self.sandbox, self.control = sandbox, sandbox.control

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.sandbox.api_key}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        with urlopen(Request(self.sandbox.url + path, data, headers, method=method)) as answer:
            return json.loads(answer.read())

    def monitor(self, urls: list[str] = SHOP, **fields: Any) -> str:
        for url in urls:
            self.control.set_page(url, "<p>one euro</p>", title=url)
        body = {
            "name": "watched",
            "schedule": NEVER,
            "targets": [{"type": "scrape", "urls": urls}],
            **fields,
        }
        return self.call("POST", "/v2/monitor", body)["data"]["id"]

    def check(self, monitor_id: str) -> str:
        """Run a check, and return its id once it has ended and its deliveries are sent."""
        check_id = self.call("POST", f"/v2/monitor/{monitor_id}/run")["id"]
        self.control.settle()
        return check_id


@pytest.fixture
def no_worker_lingers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a deferred task resume immediately: no worker has deferred it."""
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "0")


@pytest.fixture
def service(sandbox: Any) -> Service:
    return Service(sandbox)


@pytest.fixture
def run_with_inbox(run_dag: Callable[..., Any], inbox: InboxServer) -> Callable[..., Any]:
    """Run the body of a DAG whose connection can receive deliveries."""

    def run(body: str, **more: Any) -> Any:
        return run_dag(body, **{**inbox.extra, **more})

    return run
