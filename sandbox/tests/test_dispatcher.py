# SPDX-License-Identifier: Apache-2.0
"""How every call is treated: keys, paths, bodies, limits, and the form of the answer."""

from __future__ import annotations

import gzip
import json
import logging
import re
import socket
import time
import uuid
from typing import Any

import httpx
import pytest

from tests.support.tables import each_row
from webdata_sandbox.reference.timestamps import from_iso
from webdata_sandbox.server import SandboxServer

from .conftest import reset_sandbox

USAGE = "/v2/team/credit-usage"


@pytest.mark.rule("authentication", "status-401")
@each_row(
    "method, path, header, text",
    [
        ("GET", USAGE, None, "Unauthorized: Token missing"),
        ("POST", "/v2/search", None, "Unauthorized: Token missing"),
        ("POST", "/v2/search", "", "Unauthorized: Token missing"),
        ("GET", USAGE, "Bearer", "Unauthorized: Token missing"),
        ("GET", USAGE, "Basic d2Q6", "Unauthorized: Token missing"),
        ("GET", USAGE, "Bearer wrong", "Unauthorized: Invalid token"),
        ("POST", "/v2/search", "Bearer wd-sandbox-key-and-more", "Unauthorized: Invalid token"),
    ],
)
def test_keys_that_are_refused(sandbox, method: str, path: str, header: str | None, text: str) -> None:
    headers = {} if header is None else {"Authorization": header}
    response = httpx.request(
        method, sandbox.url + path, headers=headers, json={"query": "x"}, trust_env=False, verify=False
    )
    assert (response.status_code, response.json()) == (401, {"success": False, "error": text})


def test_the_scheme_is_read_in_any_case(sandbox) -> None:
    response = httpx.get(
        sandbox.url + USAGE,
        headers={"Authorization": f"bearer {sandbox.api_key}"},
        trust_env=False,
        verify=False,
    )
    assert response.status_code == 200


@pytest.mark.rule("unknown-paths")
@each_row(
    "method, path",
    [
        ("GET", "/"),
        ("GET", "/v2"),
        ("GET", "/v2/search"),
        ("POST", "/v1/search"),
        ("PUT", "/v2/monitor"),
        ("POST", "/v2/crawl/"),
        ("GET", "/v2/v2/monitor"),
        ("GET", "/v2/monitor/"),
        ("GET", "/v2/team/credit-usage/future"),
        ("GET", "/v2/batch/scrape"),
        ("PUT", "/v2/crawl/active"),
    ],
)
def test_unknown_paths(api, method: str, path: str) -> None:
    response = api.http.request(method, path)
    assert (response.status_code, response.json()) == (404, {"success": False, "error": "Not Found"})


@pytest.mark.rule("request-size")
@each_row(
    "raw",
    [
        b"{",
        b"query=river",
        b'{"query": "x"',
        b"\xff\xfe",
        b'{"query": NaN}',
        b"[" * 100_000,
        b"{'query': 'x'}",
    ],
)
def test_invalid_json(api, raw: bytes) -> None:
    response = api.http.post("/v2/search", content=raw)
    assert response.status_code == 400
    assert response.json()["code"] == "BAD_REQUEST_INVALID_JSON"


@pytest.mark.rule("request-size", "status-413")
@each_row("size, status", [(10 * 1024 * 1024, 400), (10 * 1024 * 1024 + 1, 413)])
def test_size_of_the_body(api, size: int, status: int) -> None:
    frame = b'{"query":""}'
    raw = frame[:-2] + b"x" * (size - len(frame)) + frame[-2:]
    assert len(raw) == size
    assert api.http.post("/v2/search", content=raw).status_code == status


@pytest.mark.rule("request-size")
def test_a_self_hosted_server_fails_on_a_large_body() -> None:
    with SandboxServer(profile="self-hosted") as server:
        answer = httpx.post(f"{server.url}/v2/search", content=b" " * (10 * 1024 * 1024 + 1))
        assert (answer.status_code, answer.json()["code"]) == (500, "UNKNOWN_ERROR")


@pytest.mark.rule("request-unknown-keys")
@each_row("method, path", [("POST", "/v2/search"), ("POST", "/v2/monitor")])
def test_unknown_top_level_keys(api, method: str, path: str) -> None:
    answer = api.http.request(method, path, json={"query": "x", "colour": 1, "name": "x"}).json()
    assert answer["code"] == "BAD_REQUEST"
    assert answer["error"].startswith("Unrecognized key in body")
    assert "colour" in answer["details"][0]["message"]


@pytest.mark.rule("error-details", "search-refusal")
def test_shape_of_a_search_that_is_refused(api) -> None:
    answer = api.search(includeDomains=["a.example"], excludeDomains=["b.example"]).json()
    assert answer.keys() == {"success", "error", "details"}
    assert answer["error"] == "Invalid request body"
    assert answer["details"][0]["message"] == "includeDomains and excludeDomains cannot both be specified"


@pytest.mark.rule("error-body", "error-details")
def test_shape_of_a_monitor_that_is_refused(api) -> None:
    answer = api.http.post("/v2/monitor", json={"name": ""}).json()
    assert answer.keys() == {"success", "code", "error", "details"}
    assert answer["code"] == "BAD_REQUEST"


@each_row("text", ["ü", "日本", "😀", "\ud83d", "\x00", '"\\'])
def test_any_text_comes_back_as_it_was(api, text: str) -> None:
    raw = json.dumps(
        {
            "name": text,
            "schedule": {"text": "hourly"},
            "targets": [{"type": "scrape", "urls": ["https://a.example"]}],
        }
    )
    created = api.http.post("/v2/monitor", content=raw)
    assert created.status_code == 200
    assert (
        json.loads(api.http.get(f"/v2/monitor/{created.json()['data']['id']}").content)["data"]["name"]
        == text
    )


@pytest.mark.rule("transport")
@each_row(
    "accept, compress, encoded", [("gzip", True, True), ("identity", True, False), ("gzip", False, False)]
)
def test_gzip(sandbox, api, accept: str, compress: bool, encoded: bool) -> None:
    sandbox.control.configure(compress=compress)
    request = {"query": "river", "scrapeOptions": {"formats": ["rawHtml"]}}
    with api.http.stream("POST", "/v2/search", json=request, headers={"Accept-Encoding": accept}) as response:
        raw = b"".join(response.iter_raw())
    assert (response.headers.get("content-encoding") == "gzip") is encoded
    assert int(response.headers["content-length"]) == len(raw)
    assert len(json.loads(gzip.decompress(raw) if encoded else raw)["data"]["web"]) == 10


@pytest.mark.rule("rate-classes")
@each_row(
    "rate_class, calls",
    [
        ("search", ["POST /v2/search"]),
        ("crawl", ["POST /v2/monitor", "PATCH /v2/monitor/ID", "POST /v2/monitor/ID/run"]),
        (
            "crawl-status",
            ["GET /v2/monitor", "GET /v2/monitor/ID", "GET /v2/monitor/ID/checks", "DELETE /v2/monitor/ID"],
        ),
        ("account", ["GET /v2/team/credit-usage"]),
    ],
    before=reset_sandbox,
)
def test_rate_limits_by_class(sandbox, api, rate_class: str, calls: list[str]) -> None:
    monitor = api.create()["id"]
    others = {"search", "crawl", "crawl-status", "account"} - {rate_class}
    for call in calls:
        method, path = call.replace("ID", monitor).split()
        for limits, limited in (({rate_class: 0}, True), (dict.fromkeys(others, 0), False)):
            sandbox.control.configure(rate_limits=limits)
            response = api.http.request(method, path, json={"query": "x"})
            assert (response.status_code == 429) is limited, call


@pytest.mark.rule("rate-classes")
def test_a_limit_is_for_a_minute(sandbox, api) -> None:
    sandbox.control.configure(rate_limits={"search": 2})
    assert [api.search().status_code for _ in range(3)] == [200, 200, 429]
    sandbox.control.advance(61)
    assert api.search().status_code == 200


@pytest.mark.rule("rate-limit-text", "retry-after")
def test_text_of_a_429(sandbox, api) -> None:
    sandbox.control.configure(rate_limits={"search": 0})
    response = api.search()
    match = re.search(
        r"Consumed \(req/min\): 1, Remaining \(req/min\): 0\. .* retry after (\d+)s, resets at "
        r"\w{3} \w{3} \d{2} \d{4} \d\d:\d\d:\d\d GMT\+0000 \(Coordinated Universal Time\)$",
        response.json()["error"],
    )
    assert match
    assert response.headers["retry-after"] == match[1]
    assert 0 < int(match[1]) <= 60


@each_row("path", [USAGE, "/v2/monitor"])
def test_latency(sandbox, api, path: str) -> None:
    sandbox.control.configure(latency_ms=20_000)
    with pytest.raises(httpx.ReadTimeout):
        api.http.get(path, timeout=0.05)


@pytest.mark.rule("status-402")
def test_no_credits(sandbox, api) -> None:
    sandbox.control.configure(credits=0)
    response = api.search()
    assert response.status_code == 402
    assert response.json()["error"].startswith("Insufficient credits")
    assert api.http.get(USAGE).json()["data"]["remainingCredits"] == 0


@pytest.mark.rule("team-credits")
def test_credit_usage(api) -> None:
    answer = api.http.get(USAGE).json()
    assert answer["success"] is True
    assert answer["data"].keys() == {
        "remainingCredits",
        "planCredits",
        "billingPeriodStart",
        "billingPeriodEnd",
    }


def test_log_lines_hold_no_secret(sandbox, api, caplog) -> None:
    # Paths of its own: a request that an earlier test gave up may be logged meanwhile.
    paths = [f"/v2/monitor/{uuid.uuid4()}" for _ in range(2)]
    # The command line sets a level of its own for the sandbox's logger.
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "webdata_sandbox"):
        api.http.get(paths[0], headers={"X-Secret": "hush"})
        httpx.get(
            sandbox.url + paths[1],
            headers={"Authorization": "Bearer another-secret"},
            trust_env=False,
            verify=False,
        )
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("webdata_sandbox")]
    starts = [" ".join(line.split()[:3]) for line in lines]
    assert [start for start in starts if start.endswith((f"{paths[0]} 404", f"{paths[1]} 401"))] == [
        f"GET {paths[0]} 404",
        f"GET {paths[1]} 401",
    ]
    assert not re.search(f"{sandbox.api_key}|another-secret|hush|Bearer", "\n".join(lines))


@pytest.mark.rule("transport")
def test_many_calls_over_one_connection(sandbox) -> None:
    request = (
        f"GET {USAGE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {sandbox.api_key}\r\n\r\n".encode() * 20
    )
    host, port = sandbox.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request)
        received = b""
        while received.count(b"remainingCredits") < 20:
            part = connection.recv(65536)
            assert part, "the connection ended early"
            received += part
    assert received.count(b"HTTP/1.1 200 OK") == 20


@each_row(
    "settings", [{"quirks": ("nonsense",)}, {"speed": 0}, {"pages": "/nonexistent"}, {"entitlements": ("x",)}]
)
def test_a_sandbox_that_cannot_start_says_so(settings: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match="did not start"), SandboxServer(**settings):
        pass


def test_speed() -> None:
    with SandboxServer(speed=1_000_000) as server:
        first = from_iso(server.control.state()["now"])
        time.sleep(0.01)
        passed = from_iso(server.control.state()["now"]) - first
        assert passed.total_seconds() >= 10_000
        assert server.control.state()["speed"] == 1_000_000
