# SPDX-License-Identifier: Apache-2.0
"""The test of a connection names the problem and spends no credits."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest
from airflow.sdk import BaseHook, Connection

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.support.certificates import self_signed
from tests.support.fault_server import FaultServer, answer
from webdata_sandbox.server import SandboxServer


@contextlib.contextmanager
def answering(
    status: int, body: bytes, content_type: str = "application/json", **headers: str
) -> Iterator[str]:
    """Serve the same answer to every GET."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_works(sandbox, connect):
    """The key is verified, the message has the credits, and none is spent."""
    connect(sandbox.url, sandbox.api_key)
    before = sandbox.control.state()["credits"]
    assert WebDataHook().test_connection() == (
        True,
        f"The API key works; {before} credits are left of {before} in the plan.",
    )
    assert sandbox.control.state()["credits"] == before
    assert [request["path"] for request in sandbox.control.requests()] == ["/v2/team/credit-usage"]


@pytest.mark.parametrize(
    ("profile", "declared", "works", "says"),
    [
        ("hosted", None, True, r'credits are left of \d+ in the plan\. Set "Server" to hosted\.$'),
        ("hosted", "self-hosted", False, r'reports a balance, .* declares it self-hosted\. Set "Server" to hosted: '),
        ("hosted", "gateway", True, r"^The server responds; \d+ credits are left of \d+ in the plan\.$"),
        ("self-hosted", "self-hosted", True, r"It does not report credits\.$"),
        ("self-hosted", "gateway", True, r"It does not report credits\.$"),
        ("self-hosted", None, True, r'It does not report credits\. Set "Server" to self-hosted\.$'),
        ("self-hosted", "hosted", False, r'accepts any API key, .* Set "Server" to self-hosted if it bills no calls'),
    ],
)  # fmt: skip
def test_the_kind_of_server(connect, profile, declared, works, says):
    """A balance shows a hosted server; no balance and any key, a self-hosted one. No request may end the server."""
    with SandboxServer(profile=profile) as server:
        connect(server.url, server.api_key, server=declared)
        assert WebDataHook().test_connection()[0] is works
        assert re.search(says, WebDataHook().test_connection()[1])


def test_a_server_whose_balance_cannot_be_read_may_check_keys(connect):
    """A 500 for the credits alone shows no kind: a gateway may fail for a moment."""
    steps = [
        answer(500, json.dumps({"success": False, "error": "x"})),
        answer(body=json.dumps({"success": True, "concurrency": 0, "maxConcurrency": 2})),
        answer(401, json.dumps({"success": False, "error": "Unauthorized"})),
    ]
    server = FaultServer(steps)
    try:
        connect(server.url, server=None)
        works, message = WebDataHook().test_connection()
        assert works
        assert message.endswith('Set "Server" to self-hosted if it bills no calls, else to gateway.')
        keys = [request.headers["authorization"] for request in server.requests]
        assert keys[0] == keys[1] != keys[2]
    finally:
        server.close()


def test_through_airflow(sandbox, connect):
    """The API server gets the hook from the connection."""
    connect(sandbox.url, sandbox.api_key)
    hook = BaseHook.get_hook("webdata_default")
    assert isinstance(hook, WebDataHook)
    assert hook.test_connection()[0] is True


def test_before_airflow_knows_the_connection(sandbox):
    connection = Connection(
        conn_id="nowhere", conn_type="webdata", host=sandbox.url, password=sandbox.api_key
    )
    assert WebDataHook.of(connection).test_connection()[0] is True
    connection.password = "some-other-key"
    assert WebDataHook.of(connection).test_connection()[0] is False
    connection.host = ""
    with pytest.raises(ConfigurationError, match="connection 'nowhere': host"):
        WebDataHook.of(connection)


@pytest.mark.rule("status-401")
def test_key_refused(sandbox, connect):
    connect(sandbox.url, "some-other-key")
    works, message = WebDataHook().test_connection()
    assert not works
    assert message.startswith("The service rejects the API key")
    assert "some-other-key" not in message


def test_host_unreachable(connect):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    connect(f"http://127.0.0.1:{port}", retry_budget=0)
    works, message = WebDataHook().test_connection()
    assert not works
    assert message.startswith("The host is unreachable")
    assert f"127.0.0.1:{port}" in message


def test_unknown_host(connect):
    connect("https://no-such-host.invalid", retry_budget=0)
    works, message = WebDataHook().test_connection()
    assert not works
    assert message.startswith("The host is unreachable")


def test_no_tls(sandbox, connect):
    """The server speaks plain http."""
    connect(sandbox.url.replace("http://", "https://"), retry_budget=0)
    works, message = WebDataHook().test_connection()
    assert not works
    assert message.startswith("The TLS connection fails")


def test_untrusted_certificate(connect, tmp_path):
    """The issuer of the certificate is unknown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path, 1))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with contextlib.suppress(OSError), connection:
                        context.wrap_socket(connection, server_side=True).close()

        threading.Thread(target=serve, daemon=True).start()
        connect(f"https://127.0.0.1:{listener.getsockname()[1]}", retry_budget=0)
        works, message = WebDataHook().test_connection()
    assert not works
    assert message.startswith("The TLS connection fails")


OTHERS = {
    "a web site's 404": (404, b"<html>Not here</html>", "text/html", "nothing shows that it has this API: "),
    "a web site": (200, b"<html>Welcome</html>", "text/html", "nothing shows that it has this API: "),
    "a fault": (503, b"<html>Bad gateway</html>", "text/html", "responds with an error: "),
    "forbidden": (403, b'{"success": false, "error": "blocked"}', "application/json", "forbids the call: blocked"),
    "rate limit": (429, b'{"success": false, "error": "slow down"}', "application/json", "limits the request rate"),
}  # fmt: skip
UNPROVEN = {
    "another JSON API": (200, b'{"status": "ok"}'),
    "another JSON API's 404": (404, b'{"detail": "Not Found"}'),
    "another JSON API's 405": (405, b'{"detail": "Method Not Allowed"}'),
    "a JSON list": (200, b"[1, 2]"),
    "a failure in a 200": (200, b'{"success": false, "error": "no"}'),
}


@pytest.mark.says("the message lists what was tried")
def test_an_api_that_nothing_shows_to_be_this_one(connect):
    """Only the declared kind says so: it is believed, with a warning."""
    for case, (status, body) in UNPROVEN.items():
        with answering(status, body) as url:
            connect(url, server=None, retry_budget=0)
            works, message = WebDataHook().test_connection()
            assert not works, case
            assert "nothing shows that it has this API: " in message, case
            assert "POST /v2/scrape: 501" in message, case
            assert len(re.findall(r"\(WD-\d{3}\)", message)) == 1, case
            connect(url, server="gateway", retry_budget=0)
            works, message = WebDataHook().test_connection()
            assert works, case
            assert message.startswith("Warning: The host responds, but nothing shows "), case


def test_other_answers(connect):
    """No declaration makes a web site or a failing server the service."""
    for case, (status, body, content_type, words) in OTHERS.items():
        with answering(status, body, content_type) as url:
            connect(url, retry_budget=0)
            works, message = WebDataHook().test_connection()
        assert not works, case
        assert words in message, case
        assert len(re.findall(r"\(WD-\d{3}\)", message)) == 1, case


def test_redirect_is_reported(connect):
    """The key is not sent there."""
    with answering(302, b"", Location="https://elsewhere.example/v2") as url:
        connect(url, retry_budget=0)
        works, message = WebDataHook().test_connection()
    assert not works
    assert "https://elsewhere.example" in message


def test_a_failing_gateway_is_not_self_hosted(connect):
    """A gateway that adds its own key answers any key, also while the credits cannot be read for a moment."""
    free = answer(body=json.dumps({"success": True, "concurrency": 0, "maxConcurrency": 2}))
    server = FaultServer([answer(503, json.dumps({"success": False, "error": "x"})), free])
    try:
        connect(server.url, server=None)
        works, message = WebDataHook().test_connection()
        assert works
        assert "Nothing shows whether it bills calls." in message
    finally:
        server.close()


def test_team_without_figures(connect):
    """With the documented 404, the key is valid."""
    with answering(404, b'{"success": false, "error": "Could not find credit usage information"}') as url:
        connect(url)
        works, message = WebDataHook().test_connection()
    assert works
    assert "no credit figures" in message


def test_bad_setting(connect):
    connect("https://api.example.com", timeout="soon")
    error = ConfigurationError(
        "connection 'webdata_default': timeout must be a number (given: 'soon'); write a number such as 30"
    )
    assert WebDataHook().test_connection() == (False, str(error))


@pytest.mark.parametrize("silent", [False, True])
def test_a_webhook_url_without_an_inbox(sandbox, connect, inbox, silent):
    """The connection works, but its tasks poll."""
    if silent:
        inbox.stop()
    connect(sandbox.url, sandbox.api_key, **inbox.extra)
    works, message = WebDataHook().test_connection()
    assert works
    assert (f"Tasks wait by polling: the inbox at {inbox.url} does not respond" in message) is silent
    assert ("by polling" in message) is silent
    if silent:
        inbox.start()


def test_a_webhook_url_without_a_secret(sandbox, connect):
    connect(sandbox.url, sandbox.api_key, webhook_url="https://airflow.example")
    works, message = WebDataHook().test_connection()
    assert works
    assert "Tasks wait by polling: The inbox cannot receive deliveries" in message
