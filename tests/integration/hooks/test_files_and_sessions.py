# SPDX-License-Identifier: Apache-2.0
"""Files, agent runs, and browser sessions through both hooks, over HTTP."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from airflow.sdk._shared.secrets_masker import redact

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.errors import (
    ClientError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    ServerError,
    UnsuccessfulError,
    UploadError,
)
from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES
from tests.integration.hooks.conftest import one_hook
from tests.support.fault_server import FaultServer, Step, answer
from tests.support.waiting import settled

Start = Callable[..., tuple[FaultServer, Any]]


@pytest.fixture
async def serve(serve: Any) -> AsyncIterator[Start]:
    """Start a server that gives these answers in order, and return it with a connected hook that does not retry."""
    hooks: list[Any] = []

    def start(*steps: Step) -> tuple[FaultServer, Any]:
        server, hook = serve(*steps, retry_budget=0)
        hooks.append(hook)
        return server, hook

    yield start
    for hook in hooks:
        await settled(hook.close())


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

# Method, arguments, answer, request (method, path with query, body), and the part of the result that counts.
Row = tuple[
    str, tuple[Any, ...], dict[str, Any], dict[str, Any], tuple[str, str, Any], Callable[[Any], Any], Any
]
ROWS: dict[str, Row] = {
    "start_agent": (
        "start_agent",
        (models.AgentRequest(prompt="p", max_credits=5),),
        {"extra_body": {"mode": "extract"}},
        {"id": "j", "threadId": "t"},
        ("POST", "/v2/agent", {"prompt": "p", "maxCredits": 5, "mode": "extract"}),
        lambda found: found.id,
        "j",
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


async def test_every_operation(serve: Start) -> None:
    for name, (method, arguments, options, body, (verb, target, sent), read, expected) in ROWS.items():
        server, hook = serve(ok(**body))
        found = await settled(getattr(hook, method)(*arguments, **options))
        assert read(found) == expected, name
        (request,) = server.requests
        assert (request.method, request.target) == (verb, target), name
        assert (json.loads(request.body) if request.body else None) == sent, name


# Method, arguments, and a part of the message.
INVALID: list[tuple[str, tuple[Any, ...], str]] = [
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
]


@pytest.mark.rule("parse-extension")
async def test_an_invalid_request_is_not_sent(serve: Start) -> None:
    server, hook = serve(ok())
    for method, arguments, part in INVALID:
        with pytest.raises(InvalidRequestError, match=part):
            await settled(getattr(hook, method)(*arguments))
    assert server.requests == []


CLOSING = [("close_session", "s"), ("stop_scrape_interaction", "p")]


@pytest.mark.rule("status-410", "session-close", "session-statuses")
async def test_closing(serve: Start) -> None:
    """A session that is closed already is no error, but one of another team is, and so is its use."""
    for method, identifier in CLOSING:
        server, hook = serve(failure(410, error="Browser session already destroyed."))
        assert (await settled(getattr(hook, method)(identifier))).to_wire() == {}
        assert len(server.requests) == 1
        for status, error in ((404, NotFoundError), (403, ClientError), (409, ConflictError)):
            _, hook = serve(failure(status, error="Browser session not found."))
            with pytest.raises(error, match="not found"):
                await settled(getattr(hook, method)(identifier))
    _, hook = serve(failure(410, error="Browser session destroyed."))
    with pytest.raises(ClientError, match="destroyed"):
        await settled(hook.execute("s", code="1"))


@pytest.mark.rule("ok-but-failed")
async def test_a_job_that_was_refused_with_200(serve: Start) -> None:
    _, hook = serve(failure(200, error="Insufficient credits"))
    with pytest.raises(UnsuccessfulError, match="Insufficient credits"):
        await settled(hook.start_agent(prompt="p"))


@pytest.mark.rule("session-secrets")
async def test_urls_that_control_a_browser_are_masked(
    serve: Start, kind_of_hook: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Airflow redacts them, and no earlier log line has them."""
    caplog.set_level(logging.DEBUG)
    cases: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("open_session", ({"ttl": 60},), {"id": "s", **BROWSER}),
        ("list_sessions", (), {"sessions": [{"id": "s", **BROWSER}]}),
        ("interact_with_scrape", ("p", {"code": "1"}), {"stdout": "x", **BROWSER}),
    ]
    for method, arguments, body in cases:
        mine = f"{SECRET}-{kind_of_hook.__name__}-{method}"
        _, hook = serve(ok(**json.loads(json.dumps(body).replace(SECRET, mine))))
        found = await settled(getattr(hook, method)(*arguments))
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
async def test_a_failure_hides_the_code(serve: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    _, hook = serve(failure(500, error="x"))
    with pytest.raises(ServerError, match="500") as caught:
        await settled(hook.execute("s", code=f"login('{SECRET}')"))
    assert SECRET not in f"{caught.value!r} {caught.value} {caplog.text}"


PARSED = ok(data={"markdown": "# T", "metadata": {"sourceFile": "a.pdf", "numPages": 2, "creditsUsed": 2}})


async def test_a_file_on_disk_is_parsed(serve: Start, tmp_path: Path) -> None:
    server, hook = serve(PARSED)
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
@one_hook
async def test_the_largest_file_is_parsed(serve: Start, tmp_path: Path) -> None:
    server, hook = serve(PARSED)
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


async def test_a_stream_is_parsed(serve: Start) -> None:
    server, hook = serve(PARSED)
    await settled(hook.parse(iter([b"a,b\n", b"1,2\n"]), "a.csv"))
    assert b"a,b\n1,2\n" in server.requests[0].body


async def test_a_file_that_shrinks(serve: Start) -> None:
    server, hook = serve(PARSED)
    with pytest.raises(UploadError, match="ended after 3 of the expected 10 bytes"):
        await settled(hook.parse(io.BytesIO(b"abc"), "a.csv", 10))
    assert server.requests == []
