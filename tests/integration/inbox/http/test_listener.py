"""Strangers who hold connections: headers without end or too slow, and more connections than there are descriptors."""

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

from airflow_provider_webdata.inbox.server.http import listener
from airflow_provider_webdata.inbox.server.http.app import InboxApplication
from airflow_provider_webdata.inbox.server.storage.inbox import Inbox
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.testing.serving import Serving
from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.integration.inbox.http.raw_client import RawConnection, chunk, head
from tests.integration.inbox.http.served_inbox import SECRET, event, gate_of
from tests.support.waiting import PATIENCE

RIGHT = {SECRET_HEADER: SECRET}
NO_ROUTE = head("GET", "/", {})


@pytest.fixture
def serve(sqlite_engine: Engine) -> Iterator[Callable[..., Serving]]:
    with contextlib.ExitStack() as started:

        def start(**options: Any) -> Serving:
            application = InboxApplication(Inbox.open(sqlite_engine), gate_of)
            serving = Serving(
                application, close=application.aclose, server=listener.BoundedServer, http="h11", **options
            )
            serving.start()
            started.callback(serving.stop)
            return serving

        yield start


def deliver(url: str, number: int = 0, **options: Any) -> int:
    body = event(webhookId=f"w-{number}")
    address = f"{url}/webdata/inbox/secret/k"
    return httpx.post(address, content=body, headers=RIGHT, timeout=PATIENCE, **options).status_code


# what is sent; whether a response comes before the connection is closed
HALF_REQUESTS = {
    "nothing": (b"", []),
    "a part of the first line": (b"POST /webdata/in", []),
    "a part of the headers": (NO_ROUTE[:-2], []),
    "a part of a second request": (NO_ROUTE + NO_ROUTE[:-2], [404]),
    "half a second request in time": (NO_ROUTE * 2 + b"G", [404, 404]),
}


@pytest.mark.parametrize("name", HALF_REQUESTS)
def test_half_requests_end(serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.3)
    sent, replies = HALF_REQUESTS[name]
    with RawConnection(serve().port) as connection:
        connection.send(sent[:1])
        connection.send(sent[1:])
        found = [connection.reply() for _ in replies]
        assert [reply.status for reply in found if reply] == replies
        connection.send(b"X-More: " if len(sent) > 1 else b"")
        assert connection.reply() is None


def test_bytes_that_keep_coming_do_not_make_it_last(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.5)
    with RawConnection(serve().port) as connection:
        connection.send(NO_ROUTE[:-2])
        deadline = time.monotonic() + 60
        while connection.send(b"X-More: 1\r\n") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert time.monotonic() < deadline


def test_a_request_under_way_is_not_cut(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is for headers: a body has a time of its own."""
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.2)
    body = event(webhookId="slow")
    with RawConnection(serve().port) as connection:
        connection.send(head("POST", "/webdata/inbox/secret", {**RIGHT, "Content-Length": str(len(body))}))
        time.sleep(0.6)
        connection.send(body)
        reply = connection.reply()
        assert reply is not None
        assert reply.status == 200


def test_a_handshake_that_does_not_come(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch, certificate: tuple[Path, Path]
) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 5.0)
    public, private = certificate
    serving = serve(ssl_certfile=str(public), ssl_keyfile=str(private))
    with socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE) as silent:
        with socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE) as plain:
            plain.sendall(NO_ROUTE)
            while plain.recv(1000):
                pass
        context = ssl.create_default_context(cafile=str(public))
        assert deliver(serving.url.replace("http://127.0.0.1", "https://localhost"), verify=context) == 200
        assert silent.recv(1) == b""


def test_who_reads_no_response(serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "SEND_SECONDS", 0.3)
    asked = head("GET", "/webdata/inbox-openapi.json", {}) * 20
    with RawConnection(serve().port) as connection:
        sent = 0
        while sent < 100_000 and connection.send(asked):
            sent += 20
        assert sent < 100_000


def test_no_http_after_the_response_has_begun(
    serve: Callable[..., Serving], caplog: pytest.LogCaptureFixture
) -> None:
    chunked = {"Transfer-Encoding": "chunked"}
    with RawConnection(serve().port) as connection:
        connection.send(head("POST", "/webdata/inbox/unknown", chunked) + chunk(b"{"))
        reply = connection.reply
        time.sleep(0.2)
        connection.send(b"no chunk\r\n")
        found = reply()
    assert found is None or found.status == 401
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("kind", ["silent", "idle"])
def test_the_one_that_waited_longest_gives_way(
    serve: Callable[..., Serving],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    """With one line in the log, however many there are."""
    monkeypatch.setattr(listener, "most_connections", lambda: 5)
    serving = serve()
    body = event(webhookId="early")
    with contextlib.ExitStack() as closing, RawConnection(serving.port) as early:
        # Under way before all others, and so not among those that give way.
        early.send(head("POST", "/webdata/inbox/secret", {**RIGHT, "Content-Length": str(len(body))}))
        time.sleep(0.2)
        held = []
        for number in range(40):
            held.append(closing.enter_context(RawConnection(serving.port)))
            if kind == "idle":
                held[-1].send(NO_ROUTE)
                reply = held[-1].reply()
                assert reply is not None
                assert reply.status == 404
            if number % 10 == 0:
                assert deliver(serving.url, number) == 200
        assert held[0].reply() is None
        early.send(body)
        reply = early.reply()
        assert reply is not None
        assert reply.status == 200
    lines = [record.getMessage() for record in caplog.records if "ulimit" in record.getMessage()]
    assert len(lines) == 1
    assert "5 are open" in lines[0]


def test_requests_do_not_give_way(serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "most_connections", lambda: 2)
    serving = serve()
    body = event(webhookId="early")
    asked = head("POST", "/webdata/inbox/secret", {**RIGHT, "Content-Length": str(len(body))})
    with RawConnection(serving.port) as one, RawConnection(serving.port) as two:
        for connection in (one, two):
            connection.send(asked)
        time.sleep(0.3)
        with RawConnection(serving.port) as third:
            assert third.reply() is None
        for connection in (one, two):
            connection.send(body)
            reply = connection.reply()
            assert reply is not None
            assert reply.status == 200


@pytest.mark.parametrize(("files", "most"), [(1024, 896), (256, 128), (200, 100), (10**6, 2000), (-1, 2000)])
def test_descriptors_are_left(monkeypatch: pytest.MonkeyPatch, files: int, most: int) -> None:
    monkeypatch.setattr(listener.resource, "getrlimit", lambda _: (files, files))
    assert listener.most_connections() == most


def test_strangers_take_no_descriptors(airflow_home: AirflowHome) -> None:
    """Three times as many connections as there are descriptors, held open; every delivery arrives."""
    with contextlib.ExitStack() as held, airflow_home.serving(files=128) as process:
        process.warm_up()
        port = int(process.url.rpartition(":")[2])
        for number in range(400):
            connection = held.enter_context(RawConnection(port))
            connection.send(b"POST /webdata/inbox/secret HTTP/1.1\r\n")
            if number % 20 == 0:
                assert deliver(process.url, number) == 200
        assert "ulimit -n" in process.output


def test_headers_without_end(airflow_home: AirflowHome) -> None:
    """Cut off early, whichever part has no end; the process does not grow."""
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
                # What is taken is in the buffers of the two kernels.
                assert sent < 50
            assert deliver(process.url) == 200
        assert running.memory_info().rss - before < 64 * 2**20
