"""A sandbox's monitors, and DAGs whose connection receives deliveries."""

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
        """Run a check and wait for its end, and that of its deliveries."""
        check_id = self.call("POST", f"/v2/monitor/{monitor_id}/run")["id"]
        self.control.settle()
        return check_id


@pytest.fixture
def service(sandbox: Any) -> Service:
    return Service(sandbox)


@pytest.fixture
def run_with_inbox(run_dag: Callable[..., Any], inbox: InboxServer) -> Callable[..., Any]:
    """Run the body of a DAG whose connection receives deliveries."""

    def run(body: str, **more: Any) -> Any:
        return run_dag(body, **{**inbox.extra, **more})

    return run
