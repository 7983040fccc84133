# SPDX-License-Identifier: Apache-2.0
"""The profile of a gateway to the hosted service, compared with the recorded behavior of a real one.

`data/gateway_exchanges.json` has requests to firecrawl-lb 0.1.0b2 in front of this sandbox, with its responses. "<job>"
stands for the id of a job that the gateway started, "<any>" for a value that differs from run to run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.waiting import PATIENCE
from webdata_sandbox.server import SandboxServer

EXCHANGES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "gateway_exchanges.json").read_text()
)
PAGE = "https://weather.example/levels"


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(profile="gateway") as running:
        yield running


@pytest.fixture
def sandbox(server: SandboxServer) -> SandboxServer:
    server.control.reset()
    return server


@pytest.fixture
def http(server: SandboxServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
        yield client


def matches(found: Any, recorded: Any) -> bool:
    if isinstance(recorded, dict) and isinstance(found, dict):
        return found.keys() == recorded.keys() and all(matches(found[name], recorded[name]) for name in found)
    return recorded == "<any>" or found == recorded


@pytest.mark.rule("gateway-routes", "gateway-jobs")
def test_responds_to_each_recorded_request_like_the_gateway(
    sandbox: SandboxServer, http: httpx.Client
) -> None:
    job = http.post("/v2/crawl", json={"url": PAGE, "limit": 1}).json()["id"]
    sandbox.control.settle()
    different = {}
    for exchange in EXCHANGES:
        path = exchange["path"].replace("<job>", job)
        found = http.request(exchange["method"], path, json=exchange.get("body"))
        if (found.status_code, True) != (exchange["status"], matches(found.json(), exchange["answer"])):
            different[f"{exchange['method']} {exchange['path']}"] = (found.status_code, found.json())
    assert different == {}
    assert {exchange["status"] for exchange in EXCHANGES} == {200, 400, 404, 405, 409}


@pytest.mark.rule("gateway-headers")
def test_it_drops_the_idempotency_key_and_checks_no_key(sandbox: SandboxServer, http: httpx.Client) -> None:
    before = sandbox.control.state()["credits"]
    start = {"json": {"url": PAGE, "limit": 1}, "headers": {"x-idempotency-key": str(uuid.uuid4())}}
    jobs = {http.post("/v2/crawl", **start).json()["id"] for _ in range(2)}
    sandbox.control.settle()
    assert len(jobs) == 2
    assert sandbox.control.state()["credits"] == before - 2
    sandbox.control.configure(profile="hosted")
    headers = {**start["headers"], "Authorization": f"Bearer {sandbox.api_key}"}
    assert [http.post("/v2/crawl", **{**start, "headers": headers}).status_code for _ in range(2)] == [
        200,
        409,
    ]


@pytest.mark.rule("gateway-query")
def test_each_part_of_a_job_is_the_first_one(sandbox: SandboxServer, http: httpx.Client) -> None:
    sandbox.control.set_site("big.example", pages=150, size=10)
    start = http.post("/v2/crawl", json={"url": "https://big.example/", "limit": 150}).json()
    sandbox.control.settle()
    first = http.get(f"/v2/crawl/{start['id']}").json()
    second = http.get(f"/v2/crawl/{start['id']}?skip=100").json()
    assert (len(first["data"]), first["completed"], second) == (100, 150, first)
    # The service's links have its own host.
    assert not start["url"].startswith(sandbox.url)
    assert first["next"].partition("/v2/")[::2] == (
        start["url"].partition("/v2/")[0],
        f"crawl/{start['id']}?skip=100",
    )


@pytest.mark.rule("gateway-headers")
def test_a_refused_call_does_not_say_when_to_repeat_it(sandbox: SandboxServer, http: httpx.Client) -> None:
    sandbox.control.add_fault("rate_limit", times=None)
    refused = http.post("/v2/scrape", json={"url": PAGE})
    assert (refused.status_code, "retry-after" in refused.headers) == (429, False)
    sandbox.control.configure(profile="hosted")
    assert "retry-after" in http.post("/v2/scrape", json={"url": PAGE}).headers


@pytest.mark.usefixtures("sandbox")
def test_a_body_that_is_not_json(http: httpx.Client) -> None:
    """Recorded: the gateway itself fails."""
    headers = {"Content-Type": "application/json"}
    response = http.post("/v2/scrape", content=b"{not json", headers=headers)
    error = {"message": "Internal server error", "type": "server_error", "code": "server_error"}
    assert (response.status_code, response.json()) == (500, {"error": error})


def test_it_bills_and_passes_on_what_the_service_refuses(sandbox: SandboxServer, http: httpx.Client) -> None:
    assert http.post("/v2/scrape", json={"url": PAGE}).json()["data"]["metadata"]["creditsUsed"] == 1
    sandbox.control.configure(credits=0)
    assert http.post("/v2/scrape", json={"url": "https://river.example/"}).status_code == 402


def test_the_hosted_service_serves_what_the_gateway_refuses(
    sandbox: SandboxServer, http: httpx.Client
) -> None:
    """Each refusal is the gateway's own."""
    sandbox.control.configure(profile="hosted")
    http.headers["Authorization"] = f"Bearer {sandbox.api_key}"
    for path in ("/v2/team/credit-usage", "/v2/crawl/active", "/v2/monitor", "/v2/concurrency-check"):
        assert http.get(path).status_code == 200, path
