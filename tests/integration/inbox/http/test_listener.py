"""Clients that hold connections: slow or endless headers, and more connections than file descriptors."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import Engine

from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.http import listener
from airflow_provider_webdata.inbox_server.http.app import InboxApplication
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox
from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.integration.inbox.http.raw_client import RawConnection, chunk, head
from tests.integration.inbox.http.served_inbox import SECRET, event, gate_of
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE, wait_until
from webdata_sandbox.testing.serving import Serving

RIGHT = {SECRET_HEADER: SECRET}
NO_ROUTE = head("GET", "/", {})
BODY = event(webhookId="early")
ANNOUNCED = head(
    "POST",
    "/webdata/inbox/secret",
    {**RIGHT, "Content-Length": str(len(BODY)), "Expect": "100-continue"},
)


@pytest.fixture
def serve(sqlite_engine: Engine) -> Iterator[Callable[..., Serving]]:
    with contextlib.ExitStack() as started:

        def start(**options: Any) -> Serving:
            application = InboxApplication(Inbox(sqlite_engine), gate_of)
            serving = Serving(
                application,
                close=application.inbox.close,
                server=listener.BoundedServer,
                http="h11",
                **options,
            )
            serving.start()
            started.callback(serving.stop)
            return serving

        yield start


def deliver(url: str, number: int = 0, **options: Any) -> int:
    body = event(webhookId=f"w-{number}")
    address = f"{url}/webdata/inbox/secret/k"
    return httpx.post(address, content=body, headers=RIGHT, timeout=PATIENCE, **options).status_code


def announce(connection: RawConnection) -> bool:
    """Send the headers of a delivery, and return whether the inbox then reads its body."""
    connection.send(ANNOUNCED)
    reply = connection.reply()
    assert reply is None or reply.status == 100
    return reply is not None


def finish(connection: RawConnection) -> None:
    """Send the body of an announced delivery, which is stored."""
    connection.send(BODY)
    reply = connection.reply()
    assert reply is not None
    assert reply.status == 200


# what is sent, and the responses before the connection is closed
HALF_REQUESTS = {
    "nothing": (b"", []),
    "a part of the first line": (b"POST /webdata/in", []),
    "a part of the headers": (NO_ROUTE[:-2], []),
    "a part of a second request": (NO_ROUTE + NO_ROUTE[:-2], [404]),
    "half a second request in time": (NO_ROUTE * 2 + b"G", [404, 404]),
}


@each_row("name", HALF_REQUESTS)
def test_incomplete_requests_end(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.3)
    port = serve().port
    sent, statuses = HALF_REQUESTS[name]

    def attempt() -> bool:
        with RawConnection(port) as connection:
            connection.send(sent[:1])
            connection.send(sent[1:])
            replies = [connection.reply() for _ in statuses]
            if None in replies:
                # A slow machine did not read the requests in time.
                return False
            assert [reply.status for reply in replies if reply] == statuses
            connection.send(b"X-More: " if len(sent) > 1 else b"")
            assert connection.reply() is None
            return True

    assert wait_until(attempt)


def test_further_headers_do_not_extend_the_time(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.5)
    with RawConnection(serve().port) as connection:
        connection.send(NO_ROUTE[:-2])
        assert wait_until(lambda: not connection.send(b"X-More: 1\r\n"), pause=0.02)


def test_a_slow_body_is_not_cut_off(serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for headers. Bodies have a separate one."""
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.2)
    port = serve().port

    def attempt() -> bool:
        with RawConnection(port) as connection:
            if not announce(connection):
                # A slow machine did not read the headers in time.
                return False
            time.sleep(0.6)
            finish(connection)
            return True

    assert wait_until(attempt)


def test_a_missing_handshake(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch, certificate: tuple[Path, Path]
) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 1.0)
    public, private = certificate
    serving = serve(ssl_certfile=str(public), ssl_keyfile=str(private))
    with socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE) as silent:
        with socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE) as plain:
            plain.sendall(NO_ROUTE)
            while plain.recv(1000):
                pass
        context = ssl.create_default_context(cafile=str(public))

        def delivered() -> bool:
            # On a slow machine this handshake may take too long as well.
            with contextlib.suppress(httpx.TransportError):
                url = serving.url.replace("http://127.0.0.1", "https://localhost")
                return deliver(url, verify=context) == 200
            return False

        assert wait_until(delivered)
        assert silent.recv(1) == b""


def test_a_client_that_reads_no_response(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SEND_SECONDS", 0.3)
    asked = head("GET", "/webdata/inbox-openapi.json", {}) * 20
    with RawConnection(serve().port) as connection:
        sent = 0
        while sent < 100_000 and connection.send(asked):
            sent += 20
        assert sent < 100_000


def test_invalid_http_after_the_response_has_begun(
    serve: Callable[..., Serving], caplog: pytest.LogCaptureFixture
) -> None:
    chunked = {"Transfer-Encoding": "chunked"}
    with RawConnection(serve().port) as connection:
        connection.send(head("POST", "/webdata/inbox/unknown", chunked) + chunk(b"{"))
        connection.wait()
        connection.send(b"no chunk\r\n")
        found = connection.reply()
    assert found is None or found.status == 401
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("kind", ["silent", "idle"])
def test_the_longest_waiting_connection_gives_way(
    serve: Callable[..., Serving],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    """The log has one line, however many connections there are."""
    monkeypatch.setattr(listener, "most_connections", lambda: 5)
    monkeypatch.setattr(listener, "HEADER_SECONDS", PATIENCE)
    serving = serve(timeout_keep_alive=int(PATIENCE))
    with contextlib.ExitStack() as closing, RawConnection(serving.port) as early:
        # Its request is under way before all others, so that it does not give way.
        assert announce(early)
        held = []
        for number in range(20):
            held.append(closing.enter_context(RawConnection(serving.port)))
            if kind == "idle":
                held[-1].send(NO_ROUTE)
                reply = held[-1].reply()
                assert reply is not None
                assert reply.status == 404
            if number % 10 == 9:
                assert deliver(serving.url, number) == 200
        assert held[0].reply() is None
        finish(early)
    lines = [record.getMessage() for record in caplog.records if "ulimit" in record.getMessage()]
    assert len(lines) == 1
    assert "5 are open" in lines[0]


def test_requests_do_not_give_way(serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "most_connections", lambda: 2)
    monkeypatch.setattr(listener, "HEADER_SECONDS", PATIENCE)
    serving = serve()
    with RawConnection(serving.port) as one, RawConnection(serving.port) as two:
        for connection in (one, two):
            assert announce(connection)
        with RawConnection(serving.port) as third:
            assert third.reply() is None
        for connection in (one, two):
            finish(connection)


@each_row("files, most", [(1024, 896), (256, 128), (200, 100), (10**6, 2000), (-1, 2000)])
def test_descriptors_are_reserved(monkeypatch: pytest.MonkeyPatch, files: int, most: int) -> None:
    monkeypatch.setattr(listener.resource, "getrlimit", lambda _: (files, files))
    assert listener.most_connections() == most


def test_more_connections_than_descriptors(airflow_home: AirflowHome) -> None:
    """Every delivery arrives while clients hold twice as many connections open."""
    with contextlib.ExitStack() as held, airflow_home.serving(files=128) as process:
        process.warm_up()
        port = int(process.url.rpartition(":")[2])
        for number in range(260):
            connection = held.enter_context(RawConnection(port))
            connection.send(b"POST /webdata/inbox/secret HTTP/1.1\r\n")
            if number % 20 == 0:
                assert deliver(process.url, number) == 200
        assert "ulimit -n" in process.output


def test_endless_headers(airflow_home: AirflowHome) -> None:
    """They are cut off early, whichever part is endless, and the process does not grow."""
    with airflow_home.serving() as process:
        process.warm_up()
        port = int(process.url.rpartition(":")[2])
        running = psutil.Process(process.pid)
        before = running.memory_info().rss
        part = b"x" * 2**20
        chunked = head("POST", "/webdata/inbox/secret", {**RIGHT, "Transfer-Encoding": "chunked"})
        for beginning in (
            b"GET /",
            b"GET / HTTP/1.1\r\nHost: inbox\r\nX-Long: ",
            chunked + b"1;",
            chunked + b"2\r\n{}\r\n0\r\nX-Trailer: ",
        ):
            with RawConnection(port) as connection:
                connection.send(beginning)
                sent = 0
                while sent < 200 and connection.send(part):
                    sent += 1
                # The kernel buffers some of it.
                assert sent < 50
            assert deliver(process.url) == 200
        assert running.memory_info().rss - before < 64 * 2**20
