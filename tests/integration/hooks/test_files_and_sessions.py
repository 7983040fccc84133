"""Both hooks over real HTTP: files, extract, agent and browser sessions; what is sent, given back and kept secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from airflow.sdk._shared.secrets_masker import redact

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.errors import (
    ClientError,
    InvalidRequestError,
    NotFoundError,
    ServerError,
    UnsuccessfulError,
    UploadError,
)
from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook
from tests.support.fault_server import FaultServer, Step, answer
from tests.support.waiting import settled

HOOKS = [WebDataHook, AsyncWebDataHook]
Start = Callable[..., FaultServer]


@pytest.fixture
def serve(connect: Callable[..., None]) -> Iterator[Start]:
    """Start a server with these answers, and point the default connection at it."""
    servers: list[FaultServer] = []

    def start(*steps: Step) -> FaultServer:
        servers.append(FaultServer(steps))
        connect(servers[-1].url, "wd-hook-key-0123456789", retry_budget=0)
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(params=HOOKS)
async def hook(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    made = request.param()
    yield made
    await settled(made.close())


def ok(**body: Any) -> Step:
    return answer(body=json.dumps({"success": True, **body}))


def failure(status: int, **body: Any) -> Step:
    return answer(status, json.dumps({"success": False, **body}))


SECRET = "hush-session"
BROWSER = {
    "cdpUrl": f"wss://browser.example/{SECRET}-cdp",
    "liveViewUrl": "https://live.example/view",
    "interactiveLiveViewUrl": f"https://live.example/{SECRET}-control",
}

# Method, arguments, answer, what arrives (method, path with query, body), and what the caller gets of it.
Row = tuple[
    str, tuple[Any, ...], dict[str, Any], dict[str, Any], tuple[str, str, Any], Callable[[Any], Any], Any
]
ROWS: dict[str, Row] = {
    "start_extract": (
        "start_extract",
        ({"urls": ["a.example/*"], "enable_web_search": "true"},),
        {"extra_body": {"limit": 3}},
        {"id": "j", "invalidURLs": ["nope"]},
        ("POST", "/v2/extract", {"urls": ["a.example/*"], "enableWebSearch": True, "limit": 3}),
        lambda found: (found.id, found.invalid_urls),
        ("j", ["nope"]),
    ),
    "start_agent": (
        "start_agent",
        (models.AgentRequest(prompt="p", max_credits=5),),
        {"extra_body": {"mode": "extract"}},
        {"id": "j", "threadId": "t"},
        ("POST", "/v2/agent", {"prompt": "p", "maxCredits": 5, "mode": "extract"}),
        lambda found: found.id,
        "j",
    ),
    "extract status": (
        "job_status",
        ("extract", "j"),
        {},
        {"status": "completed", "data": {"a": 1}, "tokensUsed": 30},
        ("GET", "/v2/extract/j", None),
        lambda found: (found.status, found.data, found.tokens_used),
        ("completed", {"a": 1}, 30),
    ),
    "agent status": (
        "job_status",
        ("agent", "j"),
        {},
        {"status": "failed", "error": "out of credits"},
        ("GET", "/v2/agent/j", None),
        lambda found: (found.status, found.error, found.data),
        ("failed", "out of credits", None),
    ),
    "cancel agent": (
        "cancel_job",
        ("agent", "j"),
        {},
        {},
        ("DELETE", "/v2/agent/j", None),
        lambda found: found,
        True,
    ),
    "open_session": (
        "open_session",
        ({"ttl": "60", "activity_ttl": 30, "profile": {"name": "p"}},),
        {"extra_body": {"location": {"country": "DE"}}},
        {"id": "s", "expiresAt": "2026-11-21T10:00:00Z"},
        (
            "POST",
            "/v2/interact",
            {"ttl": 60, "activityTtl": 30, "profile": {"name": "p"}, "location": {"country": "DE"}},
        ),
        lambda found: (found.id, found.expires_at),
        ("s", "2026-11-21T10:00:00Z"),
    ),
    "open_session with nothing given": (
        "open_session",
        ({},),
        {},
        {"id": "s"},
        ("POST", "/v2/interact", {}),
        lambda found: found.id,
        "s",
    ),
    "list_sessions": (
        "list_sessions",
        (),
        {},
        {"sessions": [{"id": "a", "status": "active"}, {"id": "b", "status": "destroyed"}]},
        ("GET", "/v2/interact", None),
        lambda found: [(session.id, session.status) for session in found],
        [("a", "active"), ("b", "destroyed")],
    ),
    "list active sessions": (
        "list_sessions",
        (),
        {"status": "active"},
        {"sessions": []},
        ("GET", "/v2/interact?status=active", None),
        lambda found: found,
        [],
    ),
    "execute": (
        "execute",
        ("s/../x", {"code": "1 + 1", "language": "python", "timeout": "5"}),
        {"extra_body": {"new": 1}},
        {"stdout": "2\n", "exitCode": 0, "killed": False},
        (
            "POST",
            "/v2/interact/s%2F..%2Fx/execute",
            {"code": "1 + 1", "language": "python", "timeout": 5, "new": 1},
        ),
        lambda found: (found.stdout, found.failure()),
        ("2\n", None),
    ),
    "close_session": (
        "close_session",
        ("s",),
        {},
        {"sessionDurationMs": 61_000, "creditsBilled": 4},
        ("DELETE", "/v2/interact/s", None),
        lambda found: (found.session_duration_ms, found.credits_billed),
        (61_000, 4),
    ),
    "interact_with_scrape": (
        "interact_with_scrape",
        ("p", {"prompt": "press the button"}),
        {"extra_body": {"existingSessionId": "s"}},
        {"output": "done", "sessionId": "s", "exitCode": 0},
        ("POST", "/v2/scrape/p/interact", {"prompt": "press the button", "existingSessionId": "s"}),
        lambda found: (found.output, found.session_id, found.failure()),
        ("done", "s", None),
    ),
    "stop_scrape_interaction": (
        "stop_scrape_interaction",
        ("p",),
        {},
        {"cleanupQueued": True},
        ("DELETE", "/v2/scrape/p/interact", None),
        lambda found: found.cleanup_queued,
        True,
    ),
}


@pytest.mark.parametrize("name", ROWS)
async def test_every_operation(hook: Any, serve: Start, name: str) -> None:
    method, arguments, options, body, (verb, target, sent), look, wanted = ROWS[name]
    server = serve(ok(**body))
    found = await settled(getattr(hook, method)(*arguments, **options))
    assert look(found) == wanted
    (request,) = server.requests
    assert (request.method, request.target) == (verb, target)
    assert (json.loads(request.body) if request.body else None) == sent


@pytest.mark.rule("parse-extension")
@pytest.mark.parametrize(
    "method, arguments, field",
    [
        ("start_extract", ({"schema": {}},), "'urls', 'prompt'"),
        ("start_agent", ({"prompt": "p" * 10_001},), "prompt"),
        ("start_agent", ({"prompt": "p", "schema": {"type": "nothing"}},), "schema"),
        ("open_session", ({"ttl": 29},), "ttl"),
        ("open_session", ({"ttl": 60, "activityTTL": 30},), "activityTtl"),
        ("execute", ("s", {"code": "ä" * 50_001}), "code"),
        ("execute", (" ", {"code": "1"}), "session_id"),
        ("close_session", ("",), "session_id"),
        ("interact_with_scrape", ("p", {"language": "bash"}), "'code' or 'prompt'"),
        ("interact_with_scrape", ("..", {"code": "1"}), "scrape_id"),
        ("stop_scrape_interaction", (".",), "scrape_id"),
        ("parse", (io.BytesIO(b"x"), "a.pdf", None, {"mobile": True}), "mobile"),
        ("parse", (io.BytesIO(b"x"), "a.txt"), "must end with one of"),
        ("parse", (io.BytesIO(b"x"), "pdf"), "must end with one of"),
        ("parse", (io.BytesIO(b"x"), ""), "must name a file"),
        ("parse", (io.BytesIO(b""), "a.pdf"), "it is empty"),
        ("parse", (io.StringIO("x"), "a.html"), "binary mode"),
        ("parse", (b"x", "a.pdf"), "open binary file"),
    ],
)
async def test_a_bad_request_is_not_sent(
    hook: Any, serve: Start, method: str, arguments: tuple[Any, ...], field: str
) -> None:
    server = serve(ok())
    with pytest.raises(InvalidRequestError, match=field):
        await settled(getattr(hook, method)(*arguments))
    assert server.requests == []


@pytest.mark.rule("status-410", "session-close")
@pytest.mark.parametrize(
    "method, arguments", [("close_session", ("s",)), ("stop_scrape_interaction", ("p",))]
)
async def test_closing_what_is_closed_does_no_harm(
    hook: Any, serve: Start, method: str, arguments: tuple[str]
) -> None:
    server = serve(failure(410, error="Browser session already destroyed."))
    found = await settled(getattr(hook, method)(*arguments))
    assert found.to_wire() == {}
    assert len(server.requests) == 1


@pytest.mark.rule("session-statuses")
@pytest.mark.parametrize(
    "method, arguments", [("close_session", ("s",)), ("stop_scrape_interaction", ("p",))]
)
@pytest.mark.parametrize("status, error", [(404, NotFoundError), (403, ClientError), (409, Exception)])
async def test_closing_what_is_not_ours_is_an_error(
    hook: Any, serve: Start, method: str, arguments: tuple[str], status: int, error: type[Exception]
) -> None:
    serve(failure(status, error="Browser session not found."))
    with pytest.raises(error, match="not found"):
        await settled(getattr(hook, method)(*arguments))


@pytest.mark.rule("session-statuses")
async def test_code_in_a_session_that_is_gone(hook: Any, serve: Start) -> None:
    """Only closing has nothing left to do then."""
    serve(failure(410, error="Browser session destroyed."))
    with pytest.raises(ClientError, match="destroyed"):
        await settled(hook.execute("s", {"code": "1"}))


@pytest.mark.rule("agent-cancel-ended")
async def test_an_agent_that_has_finished_cannot_be_cancelled(hook: Any, serve: Start) -> None:
    serve(failure(409, error="Agent already finished"))
    assert await settled(hook.cancel_job("agent", "j")) is False


@pytest.mark.rule("no-extract-cancel")
async def test_an_extract_job_cannot_be_cancelled(hook: Any, serve: Start) -> None:
    server = serve(ok())
    with pytest.raises(ValueError, match="extract"):
        await settled(hook.cancel_job("extract", "j"))
    assert server.requests == []


@pytest.mark.rule("ok-but-failed")
async def test_a_job_that_was_refused_with_200(hook: Any, serve: Start) -> None:
    serve(failure(200, error="Insufficient credits"))
    with pytest.raises(UnsuccessfulError, match="Insufficient credits"):
        await settled(hook.start_agent({"prompt": "p"}))


@pytest.mark.rule("session-secrets")
@pytest.mark.parametrize(
    "method, arguments, body",
    [
        ("open_session", ({"ttl": 60},), {"id": "s", **BROWSER}),
        ("list_sessions", (), {"sessions": [{"id": "s", **BROWSER}]}),
        ("interact_with_scrape", ("p", {"code": "1"}), {"stdout": "x", **BROWSER}),
    ],
)
@pytest.mark.parametrize("kind", HOOKS)
async def test_urls_that_control_a_browser_are_masked(
    kind: Any, serve: Start, caplog: pytest.LogCaptureFixture, method: str, arguments: Any, body: Any
) -> None:
    """By the time the caller has them, Airflow hides them; and no log had them before."""
    mine = f"{SECRET}-{kind.__name__}-{method}"
    serve(ok(**json.loads(json.dumps(body).replace(SECRET, mine))))
    caplog.set_level(logging.DEBUG)
    made = kind()
    found = await settled(getattr(made, method)(*arguments))
    await settled(made.close())
    (browser,) = found if isinstance(found, list) else [found]
    secrets = list(browser.secrets())
    assert len(secrets) == 2
    assert all(mine in secret for secret in secrets)
    assert redact([f"<{secret}>" for secret in secrets]) == ["<***>", "<***>"]
    assert browser.live_view_url == redact(browser.live_view_url)
    assert mine not in f"{found!r} {found} {browser.without_secrets()}"
    assert "receive_response_body" in caplog.text
    assert mine not in caplog.text


@pytest.mark.rule("code-text")
async def test_a_failure_tells_nothing_of_the_code(
    hook: Any, serve: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    serve(failure(500, error="x"))
    with pytest.raises(ServerError, match="500") as caught:
        await settled(hook.execute("s", {"code": f"login('{SECRET}')"}))
    assert SECRET not in f"{caught.value!r} {caught.value} {caplog.text}"


PARSED = ok(data={"markdown": "# T", "metadata": {"sourceFile": "a.pdf", "numPages": 2, "creditsUsed": 2}})


async def test_a_file_on_disk_is_parsed(hook: Any, serve: Start, tmp_path: Path) -> None:
    server = serve(PARSED)
    path = tmp_path / "Bericht ä.PDF"
    path.write_bytes(b"%PDF content")
    with path.open("rb") as file:
        found = await settled(
            hook.parse(
                file,
                str(path),
                path.stat().st_size,
                {"formats": ["markdown"], "parsers": [{"type": "pdf", "max_pages": 2}]},
                extra_body={"new": True},
            )
        )
        assert not file.closed
    assert found.data.markdown == "# T"
    assert found.data.metadata.num_pages == 2
    (request,) = server.requests
    assert (request.method, urlsplit(request.target).path) == ("POST", "/v2/parse")
    assert 'filename="Bericht ä.PDF"'.encode() in request.body
    assert str(tmp_path).encode() not in request.body
    assert b"%PDF content" in request.body
    assert b'{"formats":["markdown"],"parsers":[{"type":"pdf","maxPages":2}],"new":true}' in request.body


@pytest.mark.rule("parse-size")
async def test_the_largest_file_is_parsed(hook: Any, serve: Start, tmp_path: Path) -> None:
    server = serve(PARSED)
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES)
    with path.open("rb") as file:
        assert (await settled(hook.parse(file, "a.csv"))).data.markdown == "# T"
    assert len(server.requests[0].body) > MAX_FILE_BYTES
    with path.open("ab") as file:
        file.write(b"x")
    with path.open("rb") as file, pytest.raises(InvalidRequestError, match="at most 52428800 bytes"):
        await settled(hook.parse(file, "a.csv", upload="form"))
    assert len(server.requests) == 1


async def test_a_stream_is_parsed(hook: Any, serve: Start) -> None:
    server = serve(PARSED)
    await settled(hook.parse(iter([b"a,b\n", b"1,2\n"]), "a.csv"))
    assert b"a,b\n1,2\n" in server.requests[0].body


async def test_a_file_that_shrank_is_told_as_such(hook: Any, serve: Start) -> None:
    server = serve(PARSED)
    with pytest.raises(UploadError, match="ended after 3 of the 10 bytes"):
        await settled(hook.parse(io.BytesIO(b"abc"), "a.csv", 10))
    assert server.requests == []
