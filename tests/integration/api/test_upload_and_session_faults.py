# SPDX-License-Identifier: Apache-2.0
"""Faults of jobs, code, and file uploads: the result or error, and how often the call reaches the server."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, errors, models
from airflow_provider_webdata.api.multipart import FileSource
from tests.integration.api.calls import BILLING, CONTENT, HARMLESS, PAGE, failure, upload
from tests.support.fault_server import Caller, FaultServer, Step, answer, hang_up, reset


@pytest.mark.rule("ok-but-failed-job", "agent-status")
@pytest.mark.parametrize(
    "name, body",
    [
        ("crawl_status", {"success": False, "status": "failed", "error": "no page", "data": []}),
        ("crawl_status", {"success": True, "status": "cancelled", "data": []}),
        ("agent_status", {"success": False, "status": "failed", "error": "x", "creditsUsed": 3}),
        ("agent_status", {"success": True, "status": "thinking hard"}),
    ],
    ids=["failed crawl", "cancelled crawl", "failed agent", "unknown status"],
)
async def test_jobs_are_judged_by_their_status(serve: Any, name: str, body: dict[str, Any]) -> None:
    server = serve(answer(body=json.dumps(body)))
    status = await Caller("sync").call(server.url, **HARMLESS[name].make())
    assert (status.status, status.error) == (body["status"], body.get("error"))


@pytest.mark.rule("ok-but-failed-code", "code-result")
@pytest.mark.parametrize(
    "name, body, why",
    [
        (
            "execute",
            {"success": True, "stdout": "half", "exitCode": 1, "stderr": "boom"},
            "exited with code 1",
        ),
        ("execute", {"success": False, "stdout": "half", "exitCode": None, "killed": True}, "timeout"),
        ("interact_with_scrape", {"success": False, "error": "NameError"}, "NameError"),
    ],
    ids=["exit code", "killed", "exception"],
)
async def test_code_that_failed_keeps_its_output(
    serve: Any, name: str, body: dict[str, Any], why: str
) -> None:
    server = serve(answer(body=json.dumps(body)))
    result = await Caller("sync").call(server.url, **BILLING[name].make())
    assert why in result.failure()
    assert result.stdout == body.get("stdout")
    assert len(server.requests) == 1


# Files.


def parse(file: FileSource | None = None, size: int | None = None) -> dict[str, Any]:
    return {"endpoint": endpoints.PARSE, "upload": upload(file, size)}


PARSED = answer(body=PAGE)


class Once:
    """A stream that can be read only once."""

    def __init__(self, *blocks: bytes) -> None:
        self.blocks = list(blocks)

    def read(self, size: int) -> bytes:
        return self.blocks.pop(0) if self.blocks else b""


class Broken(Once):
    """A stream that fails after its blocks."""

    def read(self, size: int) -> bytes:
        if not self.blocks:
            raise OSError("the disk is gone")
        return super().read(size)


@pytest.mark.rule("parse-file", "parse-options-part")
async def test_what_an_upload_looks_like(caller: Caller, serve: Any) -> None:
    server = serve(PARSED)
    options = models.ParseOptions(formats=["markdown"], headers={"Cookie": "ä"})
    await caller.call(server.url, body=options, extra_body={"new": {"a": None}}, **parse())
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v2/parse")
    assert int(request.headers["content-length"]) == len(request.body)
    kind, _, boundary = request.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    parts = request.body.split(b"--" + boundary.encode())
    assert parts[0] == b""
    head, _, text = parts[1].partition(b"\r\n\r\n")
    assert head == b'\r\nContent-Disposition: form-data; name="options"'
    assert json.loads(text) == {"formats": ["markdown"], "headers": {"Cookie": "ä"}, "new": {"a": None}}
    head, _, content = parts[2].partition(b"\r\n\r\n")
    assert head.decode().split("\r\n") == [
        "",
        'Content-Disposition: form-data; name="file"; filename="a.pdf"',
        "Content-Type: application/octet-stream",
    ]
    assert content == CONTENT + b"\r\n"
    assert parts[3] == b"--\r\n"
    key = request.headers["authorization"].removeprefix("Bearer ")
    assert key.encode() not in request.body


async def test_a_stream_is_not_sent_twice(caller: Caller, serve: Any) -> None:
    """A second attempt would send what is left of it."""
    server = serve(failure(429, {"Retry-After": "0"}, error="Rate limit exceeded"), PARSED)
    with pytest.raises(errors.RateLimitError):
        await caller.call(server.url, **parse(Once(CONTENT)))
    assert len(server.requests) == 1


async def test_a_stream_that_was_not_read_is_sent(caller: Caller, serve: Any) -> None:
    """A refused connection reads nothing of it."""
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    found = upload(Once(CONTENT))
    caller.options["retry_budget"] = 0.05
    with pytest.raises(errors.TransportError) as caught:
        await caller.call(f"http://127.0.0.1:{port}", endpoints.PARSE, upload=found)
    assert caught.value.sent is False
    server = serve(PARSED)
    await caller.call(server.url, endpoints.PARSE, upload=found)
    (request,) = server.requests
    assert request.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in request.headers
    assert CONTENT in request.body
    assert b"options" not in request.body


def processing(seconds: int) -> Step:
    details = {"state": "processing_continues", "retryAfterSeconds": seconds, "documentPages": 900}
    return failure(408, code="SCRAPE_TIMEOUT", error="still working", details=details)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the waits for large documents."""
    monkeypatch.setattr("airflow_provider_webdata.api.retry.pause_between", lambda error, failed: 0.0)


@pytest.mark.rule("large-documents-again", "parse-time")
@pytest.mark.usefixtures("no_pauses")
async def test_a_large_document_is_requested_again_with_the_same_file(caller: Caller, serve: Any) -> None:
    server = serve(processing(5), processing(5), PARSED)
    await caller.call(server.url, **parse())
    assert len(server.requests) == 3
    assert len({request.body for request in server.requests}) == 1


@pytest.mark.usefixtures("no_pauses")
async def test_a_large_document_from_a_stream_is_not(serve: Any) -> None:
    server = serve(processing(5), PARSED)
    with pytest.raises(errors.ProcessingContinuesError):
        await Caller("sync").call(server.url, **parse(Once(CONTENT)))
    assert len(server.requests) == 1


async def test_a_file_that_breaks_off_is_never_a_whole_request(caller: Caller, serve: Any) -> None:
    server = serve(PARSED)
    with pytest.raises(OSError, match="the disk is gone"):
        await caller.call(server.url, **parse(Broken(b"x" * 100)))
    assert server.requests == []


@pytest.fixture
def eager() -> Iterator[Callable[[Step], FaultServer]]:
    """Start a server that answers before it has read the body."""
    servers: list[FaultServer] = []

    def start(step: Step) -> FaultServer:
        servers.append(FaultServer([step], read_body=False))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


LARGE = bytes(30 * 2**20)


def early(status: int, body: dict[str, Any]) -> Step:
    """Answer immediately, then read and discard the rest of the body, as well-behaved servers do."""

    def send(connection: socket.socket) -> None:
        answer(status, json.dumps(body), headers={"connection": "close"})(connection)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(2**20):
            pass

    return send


async def test_a_refusal_in_the_middle_of_a_file_is_read(caller: Caller, eager: Any) -> None:
    server = eager(early(401, {"success": False, "error": "Unauthorized"}))
    with pytest.raises(errors.AuthenticationError, match="Unauthorized"):
        await caller.call(server.url, **parse(io.BytesIO(LARGE)))
    assert len(server.requests) == 1


@pytest.mark.parametrize("step", [hang_up, reset])
async def test_a_connection_lost_in_the_middle_of_a_file(caller: Caller, eager: Any, step: Step) -> None:
    server = eager(step)
    with pytest.raises(errors.TransportError) as caught:
        await caller.call(server.url, **parse(io.BytesIO(LARGE)))
    assert caught.value.sent
    assert len(server.requests) == 1


async def test_a_server_that_takes_no_more(caller: Caller, eager: Any) -> None:
    over = threading.Event()

    def ignore(connection: socket.socket) -> None:
        over.wait(30)
        connection.close()

    server = eager(ignore)
    caller.options["timeout"] = 0.3
    with pytest.raises(errors.TransportError, match=r"accepted no more of the body for 0\.3 s") as caught:
        await caller.call(server.url, **parse(io.BytesIO(LARGE)))
    over.set()
    assert caught.value.sent
    assert server.count(1) == 1
