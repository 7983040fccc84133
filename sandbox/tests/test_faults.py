# SPDX-License-Identifier: Apache-2.0
"""Every fault, as a raw client sees it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.tables import each_row
from tests.support.waiting import wait_until
from webdata_sandbox.control import ControlError
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.state.faults import (
    CHECK_FAULTS,
    DELIVERY_FAULTS,
    JOB_FAULTS,
    KINDS,
    PAGE_FAULTS,
    PROVIDER_FAULTS,
)

from .conftest import reset_sandbox

USAGE = "/v2/team/credit-usage"


def not_json(response: httpx.Response) -> bool:
    try:
        response.json()
    except ValueError:
        return True
    return False


Seen = Callable[[httpx.Response], bool]

ROWS: list[tuple[str, dict[str, Any], type[Exception] | Seen, bool]] = [
    # kind, how, what the client sees, whether the monitor was made
    ("drop", {}, httpx.RemoteProtocolError, False),
    ("drop_before_work", {}, httpx.RemoteProtocolError, False),
    ("drop_after_work", {}, httpx.RemoteProtocolError, True),
    ("truncate", {}, httpx.RemoteProtocolError, True),
    ("garbage", {}, lambda r: r.status_code == 200 and not_json(r), True),
    ("html", {}, lambda r: r.status_code == 502 and r.text.startswith("<html>"), False),
    ("rate_limit", {}, lambda r: r.status_code == 429 and r.headers["retry-after"] == "60", False),
    ("rate_limit", {"seconds": 7}, lambda r: "retry after 7s" in r.json()["error"], False),
    ("status", {}, lambda r: r.status_code == 500 and r.json()["success"] is False, False),
    ("status", {"status": 503, "body": "busy"}, lambda r: r.status_code == 503 and r.text == "busy", False),
    ("status", {"status": 403, "body": {"error": "no"}}, lambda r: r.json() == {"error": "no"}, False),
    ("status", {"status": 200, "body": [1]}, lambda r: r.json() == [1], False),
    (
        "status",
        {"status": 307, "headers": {"Location": "https://elsewhere.example/"}},
        lambda r: r.is_redirect,
        False,
    ),
    ("delay", {"seconds": 0.01}, lambda r: r.status_code == 200, True),
]


@each_row("kind, how, seen, made", ROWS, before=reset_sandbox)
def test_fault(sandbox, api, kind: str, how: dict[str, Any], seen: Any, made: bool) -> None:
    sandbox.control.add_fault(kind, method="POST", path="/v2/monitor", **how)
    body = {
        "name": "m",
        "schedule": {"text": "hourly"},
        "targets": [{"type": "scrape", "urls": ["https://a.example"]}],
    }
    if isinstance(seen, type):
        with pytest.raises(seen):
            api.http.post("/v2/monitor", json=body)
    else:
        assert seen(api.http.post("/v2/monitor", json=body))
    assert len(sandbox.control.requests("/v2/monitor", "POST")) == 1
    assert len(sandbox.control.state()["monitors"]) == int(made)
    assert api.http.post("/v2/monitor", json=body).status_code == 200


def test_every_kind_is_tried() -> None:
    of_no_call = CHECK_FAULTS | JOB_FAULTS | PROVIDER_FAULTS | PAGE_FAULTS | DELIVERY_FAULTS
    assert {*(row[0] for row in ROWS), "hang"} >= KINDS.keys() - of_no_call


def test_a_server_that_hangs(sandbox, api) -> None:
    """It accepts the call, and the client gives up."""
    sandbox.control.add_fault("hang", path="/v2/scrape")
    body = {"url": "https://weather.example/levels"}
    before = api.balance()
    with pytest.raises(httpx.ReadTimeout):
        api.http.post("/v2/scrape", json=body, timeout=httpx.Timeout(30, read=0.1))
    [request] = sandbox.control.requests("/v2/scrape")
    assert (request["status"], api.balance()) == (None, before)
    assert api.http.post("/v2/scrape", json=body).status_code == 200


def test_a_server_that_hangs_can_be_stopped() -> None:
    with SandboxServer() as server:
        server.control.add_fault("hang", path="/v2/")
        with socket.create_connection(server.url.removeprefix("http://").split(":")) as client:
            client.sendall(b"GET /v2/team/credit-usage HTTP/1.1\r\nHost: x\r\n\r\n")
            assert wait_until(lambda: bool(server.control.requests()))
            server.stop()


@each_row("size", [1000, 3_000_000])
def test_truncated_body_of_any_size(sandbox, api, size: int) -> None:
    sandbox.control.configure(bulk=(1, size), compress=False)
    sandbox.control.add_fault("truncate", path="/v2/search")
    request = {"query": "x", "scrapeOptions": {"formats": ["markdown"]}}
    with api.http.stream("POST", "/v2/search", json=request) as response:
        assert response.status_code == 200
        parts: list[bytes] = []
        with pytest.raises(httpx.RemoteProtocolError):
            parts.extend(response.iter_raw())
    assert sum(map(len, parts)) == int(response.headers["content-length"]) // 2


def test_a_delay_goes_with_another_fault(sandbox, api) -> None:
    sandbox.control.add_fault("delay", path=USAGE, seconds=20)
    sandbox.control.add_fault("status", path=USAGE, status=418)
    with pytest.raises(httpx.ReadTimeout):
        api.http.get(USAGE, timeout=0.05)
    assert [fault["hits"] for fault in sandbox.control.faults()] == [1, 1]


@each_row(
    "method, path, hit",
    [
        (None, None, True),
        ("GET", None, True),
        ("get", None, True),
        ("POST", None, False),
        (None, "/v2/team", True),
        (None, "/v2/monitor", False),
        (None, "/v2/.*usage$", True),
        (None, "usage", False),
        ("GET", "/v2/(search|team)", True),
    ],
    before=reset_sandbox,
)
def test_matching(sandbox, api, method: str | None, path: str | None, hit: bool) -> None:
    sandbox.control.add_fault("status", method=method, path=path, status=418)
    assert (api.http.get(USAGE).status_code == 418) is hit


@each_row(
    "times, statuses",
    [(1, [418, 200, 200]), (2, [418, 418, 200]), (None, [418] * 3), (0, [200] * 3)],
    before=reset_sandbox,
)
def test_times(sandbox, api, times: int | None, statuses: list[int]) -> None:
    sandbox.control.add_fault("status", status=418, times=times)
    assert [api.http.get(USAGE).status_code for _ in range(3)] == statuses


def test_faults_come_in_order_and_can_be_cleared(sandbox, api) -> None:
    for status in (411, 412, 413):
        sandbox.control.add_fault("status", status=status)
    assert [api.http.get(USAGE).status_code for _ in range(2)] == [411, 412]
    sandbox.control.clear_faults()
    assert api.http.get(USAGE).status_code == 200


@each_row("fault", [{"kind": "explode"}, {"kind": "status", "path": "("}, {"kind": "status", "x": 1}])
def test_faults_are_checked(sandbox, fault: dict[str, Any]) -> None:
    with pytest.raises(ControlError, match="400"):
        sandbox.control.add_fault(**fault)
