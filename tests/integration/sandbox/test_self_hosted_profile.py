"""The profile of a self-hosted server, compared with the recorded behavior of a real one.

`data/self_hosted_exchanges.json` has 172 requests to a self-hosted server of 2026-08-21 without database
authentication, model, search engine, and browser, each with the facts of its response: status, keys, code, and the code
and path of each issue. In a body, "<51 items>" stands for as many copies of the item before it, "<501 characters>" for
a text of that length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support.waiting import PATIENCE

DATA = Path(__file__).parent / "data"
EXCHANGES: list[dict[str, Any]] = json.loads((DATA / "self_hosted_exchanges.json").read_text())
SITE = "http://site.example.com:8085"
SLOW = {"map timeout 500": 501}
"""Latency in milliseconds, where the recorded server was slower than its timeout."""

EXCEPTIONS: dict[str, str] = {}
"""Requests whose response differs from the recorded one, with the reason."""


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(profile="self-hosted") as running:
        yield running


@pytest.fixture
def sandbox(server: SandboxServer) -> SandboxServer:
    server.control.reset()
    for number in range(1, 4):
        link = f'<a href="{SITE}/page/{number + 1}">next</a>'
        server.control.set_page(
            f"{SITE}/page/{number}", f"<h1>Page {number}</h1>{link}", title=f"Page {number}"
        )
    return server


@pytest.fixture
def http(server: SandboxServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
        yield client


def expanded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: expanded(item) for name, item in value.items()}
    if isinstance(value, list) and (count := re.fullmatch(r"<(\d+) items>", str(value[-1:] and value[-1]))):
        return [value[0]] * int(count[1])
    if isinstance(value, str) and (count := re.fullmatch(r"<(\d+) characters>", value)):
        return "x" * int(count[1])
    return value


def send(http: httpx.Client, exchange: dict[str, Any]) -> httpx.Response:
    headers = {"Authorization": "Bearer any", **exchange.get("headers", {})}
    headers = {name: value for name, value in headers.items() if value is not None}
    content = exchange.get("text")
    if "body" in exchange:
        content = json.dumps(expanded(exchange["body"]))
    if content is not None:
        headers.setdefault("Content-Type", "application/json")
    return http.request(exchange["method"], exchange["path"], headers=headers, content=content)


def facts(response: httpx.Response) -> dict[str, Any]:
    """Return the facts of a response in the form of an exchange."""
    found: dict[str, Any] = {"status": response.status_code}
    if response.headers["content-type"].startswith("text/html"):
        assert response.text.startswith("<!DOCTYPE html>")
        return {**found, "html": True}
    body = response.json()
    found["keys"] = sorted(body)
    if "code" in body:
        found["code"] = body["code"]
    if "details" in body:
        found["codes"] = sorted({issue["code"] for issue in body["details"]})
        found["paths"] = sorted({str(issue["path"]) for issue in body["details"]})
    if engines := re.search(r"Engines tried: (\[.*?\])", body.get("error", "")):
        found["engines"] = engines[1]
    return found


def recorded(exchange: dict[str, Any]) -> dict[str, Any]:
    found = {name: exchange[name] for name in ("status", "html", "code", "engines") if name in exchange}
    if "keys" in exchange:
        found["keys"] = sorted(exchange["keys"])
    if "details" in exchange:
        found["codes"] = sorted({issue["code"] for issue in exchange["details"]})
        if all("path" in issue for issue in exchange["details"]):  # else a long response was recorded in part
            found["paths"] = sorted({str(issue["path"]) for issue in exchange["details"]})
    return found


def test_responds_to_each_recorded_request_like_the_server(
    sandbox: SandboxServer, http: httpx.Client
) -> None:
    different = {}
    for exchange in EXCHANGES:
        label = exchange["label"]
        sandbox.control.configure(latency_ms=SLOW.get(label, 0))
        found, expected = facts(send(http, exchange)), recorded(exchange)
        if "paths" not in expected:
            found.pop("paths", None)
        if found != expected:
            different[label] = (found, expected)
    assert len(EXCHANGES) == 172
    assert {label: pair for label, pair in different.items() if label not in EXCEPTIONS} == {}
    assert different.keys() == EXCEPTIONS.keys()
