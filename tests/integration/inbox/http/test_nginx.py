# SPDX-License-Identifier: Apache-2.0
"""The documented nginx configuration on a real nginx: it forwards deliveries and nothing else."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.integration.inbox.http.nginx import Nginx
from tests.integration.inbox.http.raw_client import LAST_CHUNK, chunk, head
from tests.integration.inbox.http.served_inbox import SECRET, bearer, event
from tests.support.waiting import PATIENCE, wait_until

Certificate = tuple[Path, Path]
RIGHT = {SECRET_HEADER: SECRET}
MEGABYTE = 2**20


class Upstream(http.server.ThreadingHTTPServer):
    """Accepts all requests in place of the API server, and records them. It answers while `answers` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Recorder)
        self.seen: list[tuple[str, str, dict[str, str], int]] = []
        self.answers = threading.Event()
        self.answers.set()
        self.address = f"127.0.0.1:{self.server_port}"


class _Recorder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def parse_request(self) -> bool:
        good = super().parse_request()
        if good:
            size = int(self.headers.get("Content-Length", "0"))
            self.rfile.read(size)
            server: Any = self.server
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.seen.append((self.command, self.path, headers, size))
            server.answers.wait(PATIENCE)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
        return False

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def client(nginx: Nginx, certificate: Certificate) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(certificate[0]))
    return httpx.Client(base_url=nginx.url, verify=context, timeout=PATIENCE, trust_env=False)


def test_deliveries_reach_the_inbox(
    airflow_home: AirflowHome, certificate: Certificate, tmp_path: Path
) -> None:
    """They pass through nginx into `airflow webdata inbox serve`, with TLS as the service sends them."""
    with airflow_home.serving() as process:
        process.warm_up()
        upstream = process.url.removeprefix("http://")
        with Nginx(tmp_path, upstream, certificate) as nginx, client(nginx, certificate) as http:
            before = airflow_home.stored("secret")
            body = event(webhookId="through nginx", text="x" * 200_000)
            answers = [
                http.post("/webdata/inbox/secret/key-1", content=body, headers=RIGHT) for _ in range(2)
            ]
            assert [answer.json()["status"] for answer in answers] == ["stored", "duplicate"]
            by_hand = http.post("/webdata/inbox/secret", content=event(webhookId="by hand"), headers=RIGHT)
            assert by_hand.json() == {"status": "stored"}
            assert airflow_home.stored("secret") == [*before, body, event(webhookId="by hand")]

            assert http.post("/webdata/inbox/secret", content=body).status_code == 401
            assert http.post("/webdata/inbox/secret", content=b"{", headers=RIGHT).status_code == 400
            # Readers have access inside the network only.
            inside = httpx.get(
                f"{process.url}/webdata/deliveries/secret", headers=bearer("secret"), timeout=PATIENCE
            )
            assert inside.status_code == 200
            assert http.get("/webdata/deliveries/secret", headers=bearer("secret")).status_code == 404


# method, target as sent, and status
TARGETS = [
    ("POST", "/webdata/inbox/conn/key", 200),
    ("POST", "/webdata/inbox/conn", 200),
    ("POST", "/webdata/inbox/conn?x=1", 200),
    ("POST", "/webdata/inbox/of%2Fteam/key", 200),
    ("GET", "/webdata/inbox/conn/key", 405),
    ("HEAD", "/webdata/inbox/conn/key", 405),
    ("PUT", "/webdata/inbox/conn/key", 405),
    ("DELETE", "/webdata/inbox/conn", 405),
    ("OPTIONS", "/webdata/inbox/conn", 405),
    ("PATCH", "/webdata/inbox/conn", 405),
    ("GET", "/webdata/deliveries/conn", 404),
    ("GET", "/webdata/deliveries/conn/1", 404),
    ("POST", "/webdata/deliveries/conn/search", 404),
    ("GET", "/webdata/inbox-health", 404),
    ("POST", "/webdata/inbox", 404),
    ("POST", "/webdata/inbox/", 404),
    ("POST", "/webdata/inbox/conn/key/more", 404),
    ("POST", "/webdata/inbox/conn/", 404),
    ("POST", "/webdata/inboxes/conn", 404),
    ("POST", "/WEBDATA/inbox/conn", 404),
    ("GET", "/", 404),
    ("POST", "/", 404),
    ("GET", "/api/v2/dags", 404),
    ("POST", "/api/v2/dags/d/dagRuns", 404),
    ("POST", "/auth/token", 404),
    ("POST", "/execution/xcoms", 404),
    ("GET", "/webdata/", 404),
    ("POST", "/webdata/inbox/../deliveries/conn/search", 404),
    ("POST", "/webdata/inbox/%2e%2e/deliveries/conn/search", 404),
    ("POST", "/webdata/inbox/..%2fdeliveries/conn", 404),
    ("POST", "/webdata/inbox/x/../../../api/v2/dags", 404),
    ("POST", "/api/v2/dags/../../../webdata/inbox/conn", 404),
    ("POST", "/api/v2/../../webdata/inbox/conn/key", 404),
    ("POST", "/x%2f../webdata/inbox/conn", 404),
    ("POST", "//webdata/inbox/conn", 404),
    ("POST", "/webdata//inbox/conn", 404),
    ("POST", "/webdata/./inbox/conn", 404),
    ("POST", "/%77ebdata/inbox/conn", 404),
]


def test_other_requests_are_refused(upstream: Upstream, certificate: Certificate, tmp_path: Path) -> None:
    headers = {"Content-Length": "2", "Authorization": "Bearer token", "Cookie": "session=1", **RIGHT}
    with Nginx(tmp_path, upstream.address, certificate) as nginx:
        for method, target, status in TARGETS:
            upstream.seen.clear()
            with tls(nginx, certificate) as raw:
                raw.sendall(head(method, target, {**headers, "Connection": "close"}) + b"{}")
                assert (method, target, _status(raw)) == (method, target, status)
            if status != 200:
                assert upstream.seen == [], f"{method} {target} was forwarded"
                continue
            # Unchanged, but without headers that could grant access to Airflow.
            ((seen_method, seen_target, seen_headers, size),) = upstream.seen
            assert (seen_method, seen_target, size) == (method, target, 2)
            assert seen_headers[SECRET_HEADER.lower()] == SECRET
            assert not {"authorization", "cookie"} & seen_headers.keys()


def test_sizes(upstream: Upstream, certificate: Certificate, tmp_path: Path) -> None:
    """Up to the inbox's default limit. Larger bodies are refused before they are read whole."""
    with Nginx(tmp_path, upstream.address, certificate) as nginx:
        with client(nginx, certificate) as http:
            assert http.post("/webdata/inbox/conn", content=b" " * (16 * MEGABYTE)).status_code == 200
            assert [size for *_, size in upstream.seen] == [16 * MEGABYTE]
        upstream.seen.clear()
        with tls(nginx, certificate) as raw:
            raw.sendall(head("POST", "/webdata/inbox/conn", {"Content-Length": str(16 * MEGABYTE + 1)}))
            assert _status(raw) == 413
        with tls(nginx, certificate) as raw:
            raw.sendall(head("POST", "/webdata/inbox/conn", {"Transfer-Encoding": "chunked"}))
            raw.sendall(chunk(b" " * (16 * MEGABYTE)) + chunk(b" ") + LAST_CHUNK)
            assert _status(raw) == 413
        assert upstream.seen == []


def test_rate(upstream: Upstream, certificate: Certificate, tmp_path: Path) -> None:
    """Nginx answers most of a flood with 429."""
    one = head("POST", "/webdata/inbox/conn", {"Content-Length": "2"}) + b"{}"
    last = head("POST", "/webdata/inbox/conn", {"Content-Length": "2", "Connection": "close"}) + b"{}"
    # The documented 50 a second are more than a slow machine sends.
    nginx_server = Nginx(tmp_path, upstream.address, certificate, rate="1r/s")
    with nginx_server as nginx, tls(nginx, certificate) as raw:
        raw.sendall(one * 500 + last)
        statuses = _statuses(raw)
    assert len(statuses) == 501
    assert set(statuses) == {200, 429}
    assert statuses.count(200) == len(upstream.seen)
    assert statuses.count(200) > 100


DELIVERY = head("POST", "/webdata/inbox/conn", {"Content-Length": "2"})
# What a client sends before it waits, and the statuses of the requests that it completed.
HALF_REQUESTS = {
    "nothing": (b"", []),
    "a part of the first line": (b"POST /webdata/in", []),
    "a part of the headers": (DELIVERY[:-2], []),
    "a part of the body": (DELIVERY + b"{", []),
    "a part of a second request": (DELIVERY + b"{}" + DELIVERY[:-2], [200]),
}


def test_slow_clients(upstream: Upstream, certificate: Certificate, tmp_path: Path) -> None:
    """Their connections end, and Airflow receives none of their requests."""
    with Nginx(tmp_path, upstream.address, certificate, seconds=1) as nginx:
        with socket.create_connection(("127.0.0.1", nginx.port), timeout=PATIENCE) as silent:
            # Without a TLS handshake.
            assert silent.recv(1) == b""
        for name, (sent, statuses) in HALF_REQUESTS.items():
            upstream.seen.clear()
            with tls(nginx, certificate) as raw:
                raw.sendall(sent)
                assert [status for status in _statuses(raw) if status != 408] == statuses, name
            assert len(upstream.seen) == len(statuses), name
        with tls(nginx, certificate) as raw:
            # Further headers do not extend the time.
            raw.sendall(DELIVERY[:-2])
            assert wait_until(lambda: not _sends(raw, b"X-More: 1\r\n"), pause=0.1)


ENDLESS = {
    "URL": (b"POST /webdata/inbox/" + b"x" * 64_000, 414),
    "header": (DELIVERY[:-2] + b"X-Long: " + b"x" * 64_000, 400),
    "headers": (DELIVERY[:-2] + b"X-More: 1\r\n" * 6_000, 400),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_headers(upstream: Upstream, certificate: Certificate, tmp_path: Path, name: str) -> None:
    sent, status = ENDLESS[name]
    with Nginx(tmp_path, upstream.address, certificate) as nginx, tls(nginx, certificate) as raw:
        # Nginx may answer and close the connection before it has received everything.
        _sends(raw, sent)
        assert _statuses(raw) == [status]
    assert upstream.seen == []


def test_connections_to_airflow_are_limited(
    upstream: Upstream, certificate: Certificate, tmp_path: Path
) -> None:
    """Half requests take none of them, however many there are."""
    with (
        Nginx(tmp_path, upstream.address, certificate, seconds=600, connections=1) as nginx,
        client(nginx, certificate) as http,
        contextlib.ExitStack() as held,
    ):
        for _ in range(200):
            held.enter_context(tls(nginx, certificate)).sendall(DELIVERY[:-2])
        assert http.post("/webdata/inbox/conn", content=b"{}").status_code == 200

        upstream.answers.clear()
        first = held.enter_context(tls(nginx, certificate))
        first.sendall(DELIVERY + b"{}")
        assert wait_until(lambda: len(upstream.seen) == 2)
        assert http.post("/webdata/inbox/conn", content=b"{}").status_code == 502
        upstream.answers.set()
        assert _status(first) == 200


def test_an_airflow_that_is_down(certificate: Certificate, tmp_path: Path) -> None:
    """Without a 2xx, the service repeats the delivery."""
    with Nginx(tmp_path, "127.0.0.1:1", certificate) as nginx, client(nginx, certificate) as http:
        assert http.post("/webdata/inbox/conn", content=json.dumps({})).status_code == 502


def tls(nginx: Nginx, certificate: Certificate) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(certificate[0]))
    plain = socket.create_connection(("127.0.0.1", nginx.port), timeout=PATIENCE)
    return context.wrap_socket(plain, server_hostname="localhost")


def _sends(raw: ssl.SSLSocket, data: bytes) -> bool:
    """Send the data and return whether the connection was still open."""
    try:
        raw.sendall(data)
    except OSError:
        return False
    return True


def _statuses(raw: ssl.SSLSocket) -> list[int]:
    """Return the statuses of all responses, when nginx has closed the connection."""
    received = b""
    with contextlib.suppress(OSError):
        while part := raw.recv(65536):
            received += part
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", received)]


def _status(raw: ssl.SSLSocket) -> int:
    received = b""
    while b"\r\n" not in received:
        part = raw.recv(4096)
        assert part, "the connection ended without an answer"
        received += part
    return int(received.split(b" ")[1])
