# SPDX-License-Identifier: Apache-2.0
"""Bodies that are too large, too slow, or never end: they are refused early and not stored."""

from __future__ import annotations

import contextlib
import gc
import json
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.http import app, limits, receive
from tests.integration.inbox.http.raw_client import LAST_CHUNK, RawConnection, chunk, head
from tests.integration.inbox.http.served_inbox import (
    MAX_BYTES,
    SECRET,
    ServedInbox,
    event,
    fresh,
    signature,
)
from tests.support.service import SIGNATURE_HEADER
from tests.support.tables import each_row
from tests.support.waiting import wait_until

RIGHT = {SECRET_HEADER: SECRET}
WRONG = {SECRET_HEADER: "not-the-secret-0123456789abcdef"}
FORGED = {SIGNATURE_HEADER: "sha256=" + "0" * 64}
CHUNKED = {"Transfer-Encoding": "chunked"}


@pytest.fixture(autouse=True)
def _short_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close connections soon, since the bodies do not end."""
    monkeypatch.setattr(app, "DRAIN_SECONDS", 0.05)


def post(conn_id: str, headers: dict[str, str]) -> bytes:
    return head("POST", f"/webdata/inbox/{conn_id}/k", headers)


def _announced(connection: RawConnection, conn_id: str) -> None:
    """A length that is too large, without a byte of the body."""
    connection.send(post(conn_id, {**RIGHT, "Content-Length": str(MAX_BYTES + 1)}))


def _asked_first(connection: RawConnection, conn_id: str) -> None:
    connection.send(post(conn_id, {**RIGHT, "Content-Length": str(MAX_BYTES + 1), "Expect": "100-continue"}))


def _chunked(connection: RawConnection, conn_id: str) -> None:
    """One byte more than the limit, without an end."""
    connection.send(post(conn_id, {**RIGHT, **CHUNKED}))
    for _ in range(MAX_BYTES // 65536):
        connection.send(chunk(b" " * 65536))
    connection.send(chunk(b" "))


@each_row("send", [_announced, _asked_first, _chunked])
def test_too_large(on_sqlite: ServedInbox, send: Callable[[RawConnection, str], None]) -> None:
    """The response comes while the body is under way, and the connection ends with it."""
    conn_id = fresh("secret")
    with RawConnection(on_sqlite.port) as connection:
        send(connection, conn_id)
        reply = connection.reply()
    assert reply is not None
    assert (reply.status, json.loads(reply.body)) == (413, {"error": "the body is too large"})
    assert reply.closed
    assert on_sqlite.rows(conn_id) == []


@each_row("chunked", [False, True])
def test_the_largest_body(on_sqlite: ServedInbox, chunked: bool) -> None:
    conn_id, frame = fresh("secret"), b'{"text": "%s"}'
    body = frame % (b"x" * (MAX_BYTES - len(frame) + 2))
    assert len(body) == MAX_BYTES
    with RawConnection(on_sqlite.port) as connection:
        if chunked:
            connection.send(post(conn_id, {**RIGHT, **CHUNKED}) + chunk(body) + LAST_CHUNK)
        else:
            connection.send(post(conn_id, {**RIGHT, "Content-Length": str(len(body))}) + body)
        reply = connection.reply()
    assert reply is not None
    assert reply.status == 200
    assert [row.body == body for row in on_sqlite.rows(conn_id)] == [True]


LENGTHS: list[dict[str, str]] = [{"Content-Length": "900000"}, CHUNKED, {"Content-Length": str(10**15)}]


@each_row(
    "kind, headers",
    [
        *((kind, LENGTHS[0]) for kind in ("secret", "both", "unknown", "open")),
        *(("secret", headers) for headers in LENGTHS[1:]),
    ],
)
def test_an_unauthenticated_sender_is_answered_before_the_body(
    on_sqlite: ServedInbox, kind: str, headers: dict[str, str]
) -> None:
    with RawConnection(on_sqlite.port) as connection:
        connection.send(post(fresh(kind), {**WRONG, **headers}))
        reply = connection.reply()
    assert reply is not None
    assert reply.status == 401
    assert reply.closed


def test_a_refusal_reaches_a_client_that_is_still_sending(
    on_sqlite: ServedInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it closed immediately, the connection would be reset, and a proxy would answer with 502."""
    monkeypatch.setattr(app, "DRAIN_SECONDS", 20)
    part = b" " * 20_000
    for _ in range(20):
        with RawConnection(on_sqlite.port) as connection:
            connection.send(post(fresh("secret"), {**WRONG, "Content-Length": str(len(part) * 40)}))
            sent = [connection.send(part) for _ in range(40)]
            assert all(sent)
            reply = connection.reply()
        assert reply is not None
        assert reply.status == 401


@each_row(
    "kind, name",
    [
        *((kind, SIGNATURE_HEADER) for kind in ("secret", "signed", "both", "renamed", "open", "unknown")),
        *((kind, "X-Hub-Signature-256") for kind in ("secret", "renamed", "unknown")),
    ],
)
def test_a_body_that_claims_to_be_signed_is_read(on_sqlite: ServedInbox, kind: str, name: str) -> None:
    """It is read for any connection, or the time of the response would reveal which ones exist."""
    claim = {name: "sha256=" + "0" * 64, "Content-Length": str(MAX_BYTES + 1)}
    with RawConnection(on_sqlite.port) as connection:
        connection.send(post(fresh(kind), {**WRONG, **claim}))
        reply = connection.reply()
    assert reply is not None
    assert reply.status == 413


# path, headers, status
ENDLESS = [
    ("secret", WRONG, 401),
    ("secret/k/l", RIGHT, 404),
    ("secret?get", RIGHT, 405),
    ("flooded", WRONG, 429),
]


@pytest.mark.parametrize(
    ("place", "headers", "status"), ENDLESS, ids=[f"{row[2]} {row[0]}" for row in ENDLESS]
)
def test_an_endless_body_is_cut_off(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch, place: str, headers: dict[str, str], status: int
) -> None:
    # This limits the bytes, not the time.
    monkeypatch.setattr(app, "DRAIN_SECONDS", 20)
    if status == 429:
        monkeypatch.setattr(receive, "REFUSALS_AT_ONCE", 0.5)
    method = "GET" if place.endswith("?get") else "POST"
    part, sent, most = b" " * 65536, 0, 64 * 2**20
    with (
        ServedInbox(sqlite_engine, bounded=status == 429) as served,
        RawConnection(served.port) as connection,
    ):
        connection.send(head(method, f"/webdata/inbox/{place}", {**headers, **CHUNKED}))
        while sent < most and connection.send(chunk(part)):
            sent += len(part)
        assert sent < most
        reply = connection.reply()
    # A client that never stops sending may lose the response.
    assert reply is None or reply.status == status


@pytest.mark.parametrize("places", ["signed", "signed unknown", "unknown"])
def test_claims_of_a_signature_give_way(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch, places: str
) -> None:
    """Until its body is there, a signed delivery may be forged: the slowest gives way, also to other connections.

    A sender with the secret does not compete with them.
    """
    monkeypatch.setattr(receive, "UNAUTHENTICATED_BODIES_AT_ONCE", 3)
    names = places.split()
    with ServedInbox(sqlite_engine) as served, contextlib.ExitStack() as closing:
        held = []
        for number in range(12):
            held.append(closing.enter_context(RawConnection(served.port)))
            claim = {**FORGED, "Content-Length": "2"}
            held[-1].send(post(names[number % len(names)], claim) + b"{")
            body = event(webhookId=f"w-{number}")
            for conn_id in ("signed", "resigned"):
                answer = served.deliver(conn_id, body, {SIGNATURE_HEADER: signature(body)})
                assert answer.status_code == 200
        assert served.deliver("secret", event()).status_code == 200
        replies = [connection.reply() for connection in held[:3]]
        assert [reply.status for reply in replies if reply] == [503] * 3
        assert all(reply and int(reply.headers["retry-after"]) >= 1 for reply in replies)
        assert served.unauthenticated_bodies.count <= 3


def test_bytes_of_unauthenticated_senders_give_way(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "UNAUTHENTICATED_BYTES_AT_ONCE", 300_000)
    claim = {**FORGED, "Content-Length": "200000"}
    with ServedInbox(sqlite_engine) as served, contextlib.ExitStack() as closing:
        held = [closing.enter_context(RawConnection(served.port)) for _ in range(5)]
        for connection in held:
            connection.send(post("signed", claim) + b" " * 60_000)
        unread = served.unauthenticated_bodies
        assert wait_until(lambda: unread.size >= 240_000)
        body = b'"' + b"x" * 200_000 + b'"'
        assert served.deliver("signed", body, {SIGNATURE_HEADER: signature(body)}).status_code == 200
        assert unread.size <= 300_000


def test_connections_share_the_places_for_bodies(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds with the secret too, and senders of one connection do not displace each other."""
    monkeypatch.setattr(limits.BodyBudget.__init__, "__defaults__", (3, 128 * 2**20))
    unfinished = {**RIGHT, "Content-Length": "2"}
    with ServedInbox(sqlite_engine) as served, contextlib.ExitStack() as closing:
        held = []
        bodies = served.bodies
        for number in range(3):
            held.append(closing.enter_context(RawConnection(served.port)))
            held[-1].send(post("secret-one", unfinished) + b"{")
            assert wait_until(lambda count=number + 1: bodies.count == count)
        refused = served.deliver("secret-one", event())
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        assert served.deliver("secret-two", event()).status_code == 200
        reply = held[0].reply()
        assert reply is not None
        assert reply.status == 503
        for connection in held[1:]:
            connection.send(b"}")
            reply = connection.reply()
            assert reply is not None
            assert reply.status == 200


def test_several_deliveries_of_one_connection(on_sqlite: ServedInbox) -> None:
    """A pooled client may send them without a pause, and their bodies in pieces."""
    conn_id = fresh("secret")
    bodies = [event(webhookId=f"w-{number}") for number in range(3)]
    with RawConnection(on_sqlite.port) as connection:
        whole = b"".join(
            post(conn_id, {**RIGHT, **CHUNKED})
            + b"".join(chunk(body[i : i + 7]) for i in range(0, len(body), 7))
            + LAST_CHUNK
            for body in bodies
        )
        for start in range(0, len(whole), 50):
            connection.send(whole[start : start + 50])
        replies = [connection.reply() for _ in bodies]
    assert [reply.status for reply in replies if reply] == [200] * 3
    assert [row.body for row in on_sqlite.rows(conn_id)] == bodies


def test_a_slow_body(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "BODY_SECONDS", 0.2)
    with ServedInbox(sqlite_engine) as served:
        for headers in ({"Content-Length": "100"}, CHUNKED):
            with RawConnection(served.port) as connection:
                connection.send(post("secret", {**RIGHT, **headers}))
                reply = connection.reply()
            assert reply is not None
            assert reply.status == 408
            assert reply.closed
        with RawConnection(served.port) as connection:
            # Further bytes do not extend the time.
            connection.send(post("secret", {**RIGHT, **CHUNKED}))
            ended = threading.Event()
            threading.Thread(target=_drip, args=(connection, ended), daemon=True).start()
            reply = connection.reply()
            ended.set()
        assert reply is not None
        assert reply.status == 408
        assert served.rows("secret") == []


def _drip(connection: RawConnection, ended: threading.Event) -> None:
    while not ended.wait(0.02) and connection.send(chunk(b" ")):
        pass


@each_row("headers", [{"Content-Length": "100"}, CHUNKED])
def test_an_aborted_body(
    on_sqlite: ServedInbox, caplog: pytest.LogCaptureFixture, headers: dict[str, str]
) -> None:
    conn_id = fresh("secret")
    for _ in range(20):
        with RawConnection(on_sqlite.port) as connection:
            connection.send(post(conn_id, {**RIGHT, **headers}) + b"5\r\n{}")
    assert on_sqlite.deliver(conn_id, b"{}").status_code == 200
    assert len(on_sqlite.rows(conn_id)) == 1
    assert not [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}]


def test_too_many_bytes(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.BodyBudget.__init__, "__defaults__", (200, 100_000))
    with ServedInbox(sqlite_engine) as served:
        with RawConnection(served.port) as connection:
            connection.send(post("secret", {**RIGHT, "Content-Length": "90000"}) + b" " * 80_000)
            assert wait_until(lambda: served.bodies.size == 80_000)
            large = b'"' + b"x" * 50_000 + b'"'
            assert served.deliver("secret", large).status_code == 503
        assert wait_until(lambda: served.deliver("secret", large).status_code == 200, pause=0.02)


def test_large_bodies_are_released(on_sqlite: ServedInbox) -> None:
    """Refused and aborted bodies no longer count as memory."""
    conn_id = fresh("signed")
    for number in range(5):
        with RawConnection(on_sqlite.port) as connection:
            connection.send(post(conn_id, {**FORGED, **CHUNKED}) + chunk(b" " * 500_000))
        on_sqlite.deliver(conn_id, b'"%d%s"' % (number, b"x" * 500_000), {**FORGED})
        body = b'"%d%s"' % (number, b"y" * 500_000)
        assert on_sqlite.deliver(conn_id, body, {SIGNATURE_HEADER: signature(body)}).status_code == 200
    gc.collect()
    assert wait_until(lambda: not (on_sqlite.bodies.count or on_sqlite.bodies.size), pause=0.01)
    unread = on_sqlite.unauthenticated_bodies
    assert wait_until(lambda: not (unread.count or unread.size), pause=0.01)
