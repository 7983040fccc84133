# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.support.waiting import PATIENCE
from webdata_sandbox.server import SandboxServer


class Api:
    """A raw client of the service: no retries, no models, errors as they come."""

    def __init__(self, sandbox: SandboxServer) -> None:
        self.sandbox = sandbox
        self.http = httpx.Client(
            base_url=sandbox.url,
            headers={"Authorization": f"Bearer {sandbox.api_key}"},
            timeout=PATIENCE,
            trust_env=False,
            verify=False,  # nothing here speaks TLS, and loading the certificates takes longer than most tests
        )

    def search(self, query: str = "river", **body: Any) -> httpx.Response:
        return self.http.post("/v2/search", json={"query": query, **body})

    def web(self, query: str, **body: Any) -> list[str]:
        """Search the web and return the addresses without ``https://``."""
        response = self.search(query, **{"limit": 100, **body})
        assert response.status_code == 200, response.text
        return [item["url"].removeprefix("https://") for item in response.json()["data"]["web"]]

    def create(self, **body: Any) -> dict[str, Any]:
        """Create a monitor of one page that runs in 11 to 12 hours, or what the fields say."""
        hour = int(self.sandbox.control.state()["now"][11:13])
        given = {
            "name": "gauge",
            "schedule": {"cron": f"0 {(hour + 12) % 24} * * *"},
            "targets": [{"type": "scrape", "urls": ["https://weather.example/levels"]}],
            **body,
        }
        response = self.http.post("/v2/monitor", json=given)
        assert response.status_code == 200, response.text
        return response.json()["data"]

    def get(self, monitor_id: str) -> dict[str, Any]:
        response = self.http.get(f"/v2/monitor/{monitor_id}")
        assert response.status_code == 200, response.text
        return response.json()["data"]

    def patch(self, monitor_id: str, **body: Any) -> httpx.Response:
        return self.http.patch(f"/v2/monitor/{monitor_id}", json=body)

    def run(self, monitor_id: str) -> dict[str, Any]:
        """Run a monitor now and return the finished check with its pages."""
        started = self.http.post(f"/v2/monitor/{monitor_id}/run")
        assert started.status_code == 200, started.text
        self.sandbox.control.settle()
        return self.check(monitor_id, started.json()["id"])

    def check(self, monitor_id: str, check_id: str) -> dict[str, Any]:
        response = self.http.get(f"/v2/monitor/{monitor_id}/checks/{check_id}?limit=100")
        assert response.status_code == 200, response.text
        return response.json()["data"]

    def checks(self, monitor_id: str) -> list[dict[str, Any]]:
        return self.http.get(f"/v2/monitor/{monitor_id}/checks").json()["data"]

    def balance(self) -> int:
        return self.http.get("/v2/team/credit-usage").json()["data"]["remainingCredits"]


def pass_the_half_hour(sandbox: SandboxServer) -> None:
    """Move the clock just past the next full or half hour, so that none strikes in the middle of the test."""
    now = datetime.fromisoformat(sandbox.control.state()["now"].replace("Z", "+00:00"))
    sandbox.control.advance(1801 - (now.minute * 60 + now.second) % 1800)


@pytest.fixture(scope="package")
def _shared() -> Iterator[SandboxServer]:
    with SandboxServer(webhook_timeout=PATIENCE) as server:
        yield server


@pytest.fixture
def sandbox(_shared: SandboxServer) -> SandboxServer:
    """A sandbox as good as new: the process is shared, the state is not."""
    _shared.control.reset()
    return _shared


def reset_sandbox(api: Api | None = None, sandbox: SandboxServer | None = None, **_: object) -> None:
    """Discard what a row of a table left in the sandbox; see `each_row`."""
    found = sandbox or (api and api.sandbox)
    assert found
    found.control.reset()


@pytest.fixture
def api(sandbox: SandboxServer) -> Iterator[Api]:
    client = Api(sandbox)
    with client.http:
        yield client


@pytest.fixture
def gauges(sandbox: SandboxServer) -> list[str]:
    """Two pages that state their level, one that states it as text, one that fails."""
    urls = [f"https://gauges.example/{name}" for name in ("a", "b", "text", "broken")]
    for url, level in zip(urls, ("412", "398", '"high"', "1"), strict=True):
        linked = f'<script type="application/ld+json">{{"level": {level}}}</script>'
        error = {"error": "SCRAPE_SITE_ERROR"} if url.endswith("broken") else {}
        sandbox.control.set_page(url, f"<h1>Gauge</h1>{linked}", title=f"Gauge {url[-1]}", **error)
    return urls
