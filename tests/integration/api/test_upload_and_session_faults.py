"""Parse, extract, agent and interact under every fault: which error, and how often the call reaches the server."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, errors, models
from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES
from airflow_provider_webdata.api.multipart import Source, Upload
from tests.fault_server import Caller, FaultServer, Step, answer, hang_up, never_answer, raw, reset

JOB = {"job_id": "j-1"}
SESSION = {"session_id": "s-1"}
SCRAPE = {"scrape_id": "p-1"}
CONTENT = b"%PDF-1.7 content"


def upload(file: Source | None = None, size: int | None = None) -> Upload:
    return Upload(
        "parse", io.BytesIO(CONTENT) if file is None else file, "a.pdf", size, max_bytes=MAX_FILE_BYTES
    )


@dataclass
class Operation:
    """A call, made up anew for each try of a test, and a good answer to it."""

    make: Callable[[], dict[str, Any]]
    good: str


def call(endpoint: Any, good: str, **arguments: Any) -> Operation:
    return Operation(lambda: {"endpoint": endpoint, **arguments}, good)


RAN = '{"success": true, "stdout": "1", "exitCode": 0, "killed": false}'
BILLING = {
    "parse": Operation(
        lambda: {"endpoint": endpoints.PARSE, "body": models.ParseOptions(timeout=1000), "upload": upload()},
        '{"success": true, "data": {"markdown": "x"}}',
    ),
    "start extract": call(
        endpoints.START_EXTRACT, '{"success": true, "id": "j"}', body=models.ExtractRequest(prompt="p")
    ),
    "start agent": call(
        endpoints.START_AGENT, '{"success": true, "id": "j"}', body=models.AgentRequest(prompt="p")
    ),
    "open session": call(
        endpoints.OPEN_SESSION, '{"success": true, "id": "s"}', body=models.InteractRequest(ttl=60)
    ),
    "execute": call(endpoints.EXECUTE, RAN, path=SESSION, body=models.ExecuteRequest(code="1", timeout=1)),
    "interact with scrape": call(
        endpoints.INTERACT_SCRAPE, RAN, path=SCRAPE, body=models.ScrapeInteractRequest(prompt="p")
    ),
}
HARMLESS = {
    "extract status": call(endpoints.EXTRACT_STATUS, '{"status": "processing", "data": []}', path=JOB),
    "agent status": call(endpoints.AGENT_STATUS, '{"status": "processing"}', path=JOB),
    "cancel agent": call(endpoints.CANCEL_AGENT, '{"success": true}', path=JOB),
    "list sessions": call(endpoints.LIST_SESSIONS, '{"success": true, "sessions": []}'),
    "close session": call(endpoints.CLOSE_SESSION, '{"success": true}', path=SESSION),
    "stop interaction": call(endpoints.STOP_SCRAPE_INTERACT, '{"success": true}', path=SCRAPE),
}


def failure(status: int, headers: dict[str, str] | None = None, **body: Any) -> Step:
    return answer(status, json.dumps({"success": False, **body}), headers=headers)


CHUNKED_CUT = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"
)
# The service may have done what it was asked and may not: nobody can tell.
AMBIGUOUS: dict[str, tuple[Step, type[errors.WebDataError]]] = {
    "closed without an answer": (hang_up, errors.TransportError),
    "reset": (reset, errors.TransportError),
    "cut inside the headers": (raw(b"HTTP/1.1 200 OK\r\ncontent-"), errors.TransportError),
    "cut inside the body": (answer(body='{"success": tr', length=500), errors.TransportError),
    "cut inside a chunk": (raw(CHUNKED_CUT), errors.TransportError),
    "not HTTP": (raw(b"SSH-2.0-OpenSSH_9\r\n\r\n"), errors.TransportError),
    "408": (failure(408, code="SCRAPE_TIMEOUT", error="slow"), errors.RequestTimeoutError),
    "500": (failure(500, code="UNKNOWN_ERROR", error="x"), errors.ServerError),
    "502 of a proxy": (answer(502, "<html>bad gateway</html>", "text/html"), errors.ServerError),
    "503": (failure(503, error="x"), errors.ServerError),
    "504": (answer(504, b""), errors.ServerError),
    "200 that is HTML": (answer(body="<html>", content_type="text/html"), errors.InvalidResponseError),
    "200 cut short": (answer(body='{"success": true, "da'), errors.InvalidResponseError),
    "200 that is a list": (answer(body="[]"), errors.InvalidResponseError),
    "200 that is not UTF-8": (answer(body=b'{"error": "\xff\xfe"}'), errors.InvalidResponseError),
    "redirect": (answer(302, headers={"location": "/v2/elsewhere"}), errors.InvalidResponseError),
}


@pytest.mark.parametrize("fault", AMBIGUOUS)
@pytest.mark.parametrize("name", BILLING)
async def test_what_bills_is_called_once(caller: Caller, serve: Any, name: str, fault: str) -> None:
    step, error = AMBIGUOUS[fault]
    server = serve(step, answer(body=BILLING[name].good))
    with pytest.raises(errors.WebDataError) as caught:
        await caller.call(server.url, **BILLING[name].make())
    assert type(caught.value) is error
    assert not isinstance(caught.value, errors.TransportError) or caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", BILLING)
async def test_what_bills_is_called_once_though_no_answer_comes(
    caller: Caller, serve: Any, name: str
) -> None:
    made = BILLING[name].make()
    # With the service's own time it would take minutes.
    made["endpoint"] = replace(made["endpoint"], service_seconds=None)
    caller.options["timeout"] = 0.3
    server = serve(never_answer, answer(body=BILLING[name].good))
    with pytest.raises(errors.TransportError, match=r"no answer from .* within 0\.3 s") as caught:
        await caller.call(server.url, **made)
    assert caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["closed without an answer", "cut inside the body", "500", "503"])
@pytest.mark.parametrize("name", HARMLESS)
async def test_what_does_no_harm_is_called_again(caller: Caller, serve: Any, name: str, fault: str) -> None:
    server = serve(AMBIGUOUS[fault][0], answer(body=HARMLESS[name].good))
    assert await caller.call(server.url, **HARMLESS[name].make())
    assert len(server.requests) == 2
    assert server.requests[0].target == server.requests[1].target


@pytest.mark.parametrize(
    "status, error",
    [
        (400, errors.BadRequestError),
        (401, errors.AuthenticationError),
        (402, errors.PaymentRequiredError),
        (403, errors.EntitlementError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (410, errors.ClientError),
        (413, errors.ClientError),
    ],
)
@pytest.mark.parametrize("name", [*BILLING, *HARMLESS])
async def test_a_refusal_is_final(
    caller: Caller, serve: Any, name: str, status: int, error: type[errors.APIError]
) -> None:
    operation = {**BILLING, **HARMLESS}[name]
    server = serve(failure(status, error="no", code="SOME_CODE"), answer(body=operation.good))
    with pytest.raises(errors.APIError, match="no") as caught:
        await caller.call(server.url, **operation.make())
    assert type(caught.value) is error
    assert caught.value.code == "SOME_CODE"
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", BILLING)
async def test_a_refusal_for_rate_is_repeated_with_the_same_body(
    caller: Caller, serve: Any, name: str
) -> None:
    server = serve(
        failure(429, {"Retry-After": "0"}, error="Rate limit exceeded"),
        failure(429, error="Concurrency limit reached"),
        answer(body=BILLING[name].good),
    )
    assert await caller.call(server.url, **BILLING[name].make())
    first, *others = server.requests
    assert len(others) == 2
    assert all(other.body == first.body and other.headers == first.headers for other in others)
    assert name != "parse" or CONTENT in first.body


@pytest.mark.parametrize(
    "name, body, state",
    [
        ("extract status", {"success": False, "status": "failed", "error": "no page", "data": []}, "failed"),
        ("extract status", {"success": True, "status": "cancelled", "data": []}, "cancelled"),
        ("agent status", {"success": True, "status": "failed", "error": "out of credits"}, "failed"),
        ("agent status", {"success": False, "status": "failed", "error": "x", "creditsUsed": 3}, "failed"),
        ("agent status", {"success": True, "status": "thinking hard"}, "thinking hard"),
    ],
)
async def test_jobs_are_judged_by_their_status(
    caller: Caller, serve: Any, name: str, body: dict[str, Any], state: str
) -> None:
    server = serve(answer(body=json.dumps(body)))
    status = await caller.call(server.url, **HARMLESS[name].make())
    assert (status.status, status.error) == (state, body.get("error"))


@pytest.mark.parametrize("name", ["execute", "interact with scrape"])
@pytest.mark.parametrize(
    "body, why",
    [
        ({"success": True, "stdout": "half", "exitCode": 1, "stderr": "boom"}, "exit code 1"),
        ({"success": False, "stdout": "half", "exitCode": None, "killed": True}, "timeout"),
        ({"success": False, "error": "NameError"}, "NameError"),
    ],
)
async def test_code_that_failed_keeps_what_it_wrote(
    caller: Caller, serve: Any, name: str, body: dict[str, Any], why: str
) -> None:
    server = serve(answer(body=json.dumps(body)))
    result = await caller.call(server.url, **BILLING[name].make())
    assert why in result.failure()
    assert result.stdout == body.get("stdout")
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", ["parse", "start extract", "start agent", "open session"])
async def test_success_false_with_200(caller: Caller, serve: Any, name: str) -> None:
    server = serve(failure(200, error="no such thing"), answer(body=BILLING[name].good))
    with pytest.raises(errors.UnsuccessfulError, match="no such thing"):
        await caller.call(server.url, **BILLING[name].make())
    assert len(server.requests) == 1


# Files.


def parse(file: Source | None = None, size: int | None = None) -> dict[str, Any]:
    return {"endpoint": endpoints.PARSE, "upload": upload(file, size)}


PARSED = answer(body=BILLING["parse"].good)


class Once:
    """A stream that can be read once."""

    def __init__(self, *blocks: bytes) -> None:
        self.blocks = list(blocks)

    def read(self, size: int) -> bytes:
        return self.blocks.pop(0) if self.blocks else b""


class Broken(Once):
    """A stream whose medium fails half-way."""

    def read(self, size: int) -> bytes:
        if not self.blocks:
            raise OSError("the disk is gone")
        return super().read(size)


async def test_a_file_of_unknown_size_goes_out_in_chunks(caller: Caller, serve: Any) -> None:
    server = serve(PARSED)
    await caller.call(server.url, **parse(Once(b"%PDF", b"-1.7", b" content")))
    (request,) = server.requests
    assert request.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in request.headers
    assert b'name="file"; filename="a.pdf"' in request.body
    assert CONTENT in request.body


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


async def test_without_options_there_is_no_part_for_them(caller: Caller, serve: Any) -> None:
    server = serve(PARSED)
    await caller.call(server.url, **parse())
    assert b"options" not in server.requests[0].body


async def test_a_stream_is_not_sent_twice(caller: Caller, serve: Any) -> None:
    """Where the service says to come again, half a file would be the second try."""
    server = serve(failure(429, {"Retry-After": "0"}, error="Rate limit exceeded"), PARSED)
    with pytest.raises(errors.RateLimitError):
        await caller.call(server.url, **parse(Once(CONTENT)))
    assert len(server.requests) == 1


async def test_a_stream_that_was_not_touched_is_sent(caller: Caller, serve: Any) -> None:
    """A refused connection has read nothing of it."""
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
    assert CONTENT in server.requests[0].body


def processing(seconds: int) -> Step:
    details = {"state": "processing_continues", "retryAfterSeconds": seconds, "documentPages": 900}
    return failure(408, code="SCRAPE_TIMEOUT", error="still working", details=details)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for large documents are long; here they only have to happen."""
    monkeypatch.setattr("airflow_provider_webdata.api.retry.pause", lambda state: 0.0)


@pytest.mark.usefixtures("quick")
async def test_a_large_document_is_asked_for_again_with_the_same_file(caller: Caller, serve: Any) -> None:
    server = serve(processing(5), processing(5), PARSED)
    await caller.call(server.url, **parse())
    assert len(server.requests) == 3
    assert len({request.body for request in server.requests}) == 1


@pytest.mark.usefixtures("quick")
async def test_a_large_document_from_a_stream_is_not(caller: Caller, serve: Any) -> None:
    server = serve(processing(5), PARSED)
    with pytest.raises(errors.ProcessingContinuesError):
        await caller.call(server.url, **parse(Once(CONTENT)))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "file, size, error, text",
    [
        (lambda: io.BytesIO(b"x" * 100), 101, errors.UploadError, "ended after 100 of the 101"),
        (lambda: Once(b"x" * 100, b"y"), 100, errors.UploadError, "more than the 100 bytes"),
        (lambda: Once(b"x" * 100, "text"), None, errors.UploadError, "gives str"),  # type: ignore[arg-type]
        (lambda: iter([]), None, errors.UploadError, "the file is empty"),
        (lambda: Broken(b"x" * 100), None, OSError, "the disk is gone"),
        (lambda: Broken(b"x" * 100), 200, OSError, "the disk is gone"),
    ],
)
async def test_a_file_that_breaks_off_is_never_a_whole_request(
    caller: Caller, serve: Any, file: Any, size: int | None, error: type[Exception], text: str
) -> None:
    server = serve(PARSED)
    with pytest.raises(error, match=text):
        await caller.call(server.url, **parse(file(), size))
    assert server.requests == []
    # And the client is none the worse for it.
    await caller.call(server.url, **parse())
    assert len(server.requests) == 1


async def test_a_stream_over_the_limit_is_given_up(caller: Caller, serve: Any) -> None:
    server = serve(PARSED)
    block = bytes(2**20)
    fitting = [block] * 50
    await caller.call(server.url, **parse(fitting))
    with pytest.raises(errors.UploadTooLargeError) as caught:
        await caller.call(server.url, **parse([*fitting, b"x"]))
    assert caught.value.verdict == "never"
    assert len(server.requests) == 1


async def test_asynchronous_files_need_the_asynchronous_client(caller: Caller, serve: Any) -> None:
    async def blocks() -> AsyncIterator[bytes]:
        yield CONTENT

    server = serve(PARSED)
    if caller.kind == "async":
        await caller.call(server.url, **parse(blocks()))
        assert CONTENT in server.requests[0].body
        return
    with pytest.raises(errors.InvalidRequestError, match="asynchronous client"):
        await caller.call(server.url, **parse(blocks()))
    assert server.requests == []


@pytest.fixture
def eager() -> Iterator[Callable[[Step], FaultServer]]:
    """Serve before the body is there."""
    servers: list[FaultServer] = []

    def start(step: Step) -> FaultServer:
        servers.append(FaultServer([step], read_body=False))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


LARGE = bytes(30 * 2**20)


def early(status: int, body: dict[str, Any]) -> Step:
    """Answer at once, take the rest of the body and throw it away, as servers with manners do."""

    def send(connection: socket.socket) -> None:
        answer(status, json.dumps(body), headers={"connection": "close"})(connection)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(2**20):
            pass

    return send


async def test_a_refusal_before_the_file_is_through_is_heard(caller: Caller, eager: Any) -> None:
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
    with pytest.raises(errors.TransportError, match=r"took no more of the body for 0\.3 s") as caught:
        await caller.call(server.url, **parse(io.BytesIO(LARGE)))
    over.set()
    assert caught.value.sent
    assert len(server.requests) == 1
