# SPDX-License-Identifier: Apache-2.0
"""Receiving: who may deliver, what is stored, and the responses."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import Engine

from airflow_provider_webdata import __version__
from airflow_provider_webdata.inbox import probe
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.http import connections, receive
from airflow_provider_webdata.inbox_server.http.auth import Gate
from tests.integration.inbox.http.served_inbox import (
    ALL_SECRETS,
    PREVIOUS_SECRET,
    PREVIOUS_SIGNING_SECRET,
    SECRET,
    SIGNING_SECRET,
    ServedInbox,
    event,
    fresh,
    gate_of,
    signature,
)
from tests.support.service import SIGNATURE_HEADER
from tests.support.tables import each_row

BODY = event(webhookId="w-1")
OTHER = event(webhookId="w-2")
SIGNED = signature(BODY)
STRANGE = "not-the-secret-0123456789abcdef"


def _secret(value: str) -> dict[str, str]:
    return {SECRET_HEADER: value}


def _signed(value: str, name: str = SIGNATURE_HEADER) -> dict[str, str]:
    return {name: value}


# case, connection, headers, whether they are accepted
ADMISSION: list[tuple[str, str, dict[str, str] | list[tuple[str, str]], bool]] = [
    ("the secret", "secret", _secret(SECRET), True),
    ("header name in another case", "secret", {SECRET_HEADER.upper(): SECRET}, True),
    ("no secret", "secret", {}, False),
    ("an empty secret", "secret", _secret(""), False),
    ("a wrong secret", "secret", _secret(STRANGE), False),
    ("more than the secret", "secret", _secret(SECRET + "0"), False),
    ("the wrong secret first", "secret", [(SECRET_HEADER, STRANGE), (SECRET_HEADER, SECRET)], False),
    ("the secret, and a signature that is not demanded", "secret", {**_secret(SECRET), **_signed("x")}, True),
    ("a signature in place of the secret", "secret", _signed(signature(BODY, SECRET)), False),
    ("the previous secret, not configured", "secret", _secret(PREVIOUS_SECRET), False),
    ("rotation: the new secret", "rotating", _secret(SECRET), True),
    ("rotation: the previous secret", "rotating", _secret(PREVIOUS_SECRET), True),
    ("rotation: neither", "rotating", _secret(STRANGE), False),
    ("a signature", "signed", _signed(SIGNED), True),
    ("no signature", "signed", {}, False),
    ("an empty signature", "signed", _signed(""), False),
    ("a signature of another body", "signed", _signed(signature(OTHER)), False),
    ("a signature by another key", "signed", _signed(signature(BODY, STRANGE)), False),
    ("a signature without its prefix", "signed", _signed(SIGNED.removeprefix("sha256=")), False),
    ("a prefix alone", "signed", _signed("sha256="), False),
    ("a shortened signature", "signed", _signed(SIGNED[:-1]), False),
    ("no text", "signed", _signed("sha256=\u00e9\u00ff"), False),
    ("the signing secret as secret", "signed", _secret(SIGNING_SECRET), False),
    ("a signature in another header", "signed", _signed(SIGNED, "X-Hub-Signature-256"), False),
    ("a renamed header", "renamed", _signed(SIGNED, "X-Hub-Signature-256"), True),
    ("a renamed header, the usual one given", "renamed", _signed(SIGNED), False),
    ("rotation: the new key", "resigned", _signed(SIGNED), True),
    ("rotation: the previous key", "resigned", _signed(signature(BODY, PREVIOUS_SIGNING_SECRET)), True),
    ("rotation: neither key", "resigned", _signed(signature(BODY, STRANGE)), False),
    ("both demanded, both right", "both", {**_secret(SECRET), **_signed(SIGNED)}, True),
    ("both demanded, the secret alone", "both", _secret(SECRET), False),
    ("both demanded, the signature alone", "both", _signed(SIGNED), False),
    ("both demanded, a wrong secret", "both", {**_secret(STRANGE), **_signed(SIGNED)}, False),
    ("rotation: empty", "rotating", _secret(""), False),
    ("a signature by the API key", "signed", _signed(signature(BODY, "wd-key-0123456789")), False),
    ("a signature by an empty key", "signed", _signed(signature(BODY, "")), False),
    ("a prefix of another algorithm", "signed", _signed(SIGNED.replace("sha256", "sha1")), False),
    (
        "both demanded, a forged signature",
        "both",
        {**_secret(SECRET), **_signed("sha256=" + "0" * 64)},
        False,
    ),
    (
        "both demanded, swapped",
        "both",
        {**_secret(SIGNING_SECRET), **_signed(signature(BODY, SECRET))},
        False,
    ),
    ("a connection without secrets, none given", "open", {}, False),
    ("a connection without secrets, one given", "open", _secret(SECRET), False),
    ("a connection without secrets, signed", "open", _signed(SIGNED), False),
    ("no such connection", "unknown", {**_secret(SECRET), **_signed(SIGNED)}, False),
]


@pytest.mark.rule("webhook-headers", "delivery-signature")
@each_row("case, kind, headers, accepted", ADMISSION)
def test_admission(
    on_sqlite: ServedInbox,
    caplog: pytest.LogCaptureFixture,
    case: str,
    kind: str,
    headers: dict[str, str] | list[tuple[str, str]],
    accepted: bool,
) -> None:
    served, conn_id = on_sqlite, fresh(kind)
    with caplog.at_level(logging.DEBUG):
        pairs = headers.items() if isinstance(headers, dict) else headers
        answer = served.http.post(
            f"/webdata/inbox/{conn_id}/key-1",
            content=BODY,
            headers=[(name.encode(), value.encode("latin-1")) for name, value in pairs],
        )
    if accepted:
        assert (answer.status_code, answer.json()) == (200, {"status": "stored"})
        assert [row.body for row in served.rows(conn_id)] == [BODY]
    else:
        assert answer.status_code == 401
        assert served.rows(conn_id) == []
    assert not [secret for secret in (*ALL_SECRETS, STRANGE, SIGNED[7:]) if secret in caplog.text]


def test_a_refusal_does_not_reveal_connections(on_sqlite: ServedInbox) -> None:
    """An unauthenticated sender gets the same response for existing and for missing connections."""
    places = [fresh(kind) for kind in ("secret", "signed", "both", "rotating", "renamed", "open", "unknown")]
    places += ["x" * 251, "%00", "a%2Fb", "%F0%9F%8C%8A"]
    credentials: list[dict[str, str]] = [{}, _secret(STRANGE), _signed("sha256=" + "0" * 64), _signed("")]
    for headers in credentials:
        seen = set()
        for place in places:
            answer = on_sqlite.deliver(place, BODY, headers)
            named = {name: value for name, value in answer.headers.items() if name != "date"}
            seen.add((answer.status_code, answer.content, tuple(sorted(named.items()))))
        assert len(seen) == 1, seen
        assert seen.pop()[0] == 401


# case; keys and fields of the deliveries, in order; which are stored
REPETITIONS: list[tuple[str, list[tuple[str | None, dict[str, Any]]], list[bool]]] = [
    ("one event again", [("k", {"webhookId": "w"})] * 3, [True, False, False]),
    ("two events", [("k", {"webhookId": "w"}), ("k", {"webhookId": "v"})], [True, True]),
    ("one id at another address", [("k", {"webhookId": "w"}), ("l", {"webhookId": "w"})], [True, False]),
    (
        "one id, two events",
        [
            ("k", {"webhookId": "w", "type": "crawl.page"}),
            ("k", {"webhookId": "w", "type": "crawl.completed"}),
        ],
        [True, True],
    ),
    (
        "an id of half an emoji",
        [("k", {"webhookId": "\ud83d"}), ("k", {"webhookId": "\ud83d"})],
        [True, False],
    ),
    ("no id, half an emoji", [("k", {"n": "\ud83d"}), ("k", {"n": "\ud83d"})], [True, False]),
    ("no id, one body again", [("k", {"n": 1}), ("k", {"n": 1})], [True, False]),
    (
        "repetitions in any order",
        [("k", {"webhookId": name}) for name in "abcbcabacac"],
        [True, True, True] + [False] * 8,
    ),
]


@pytest.mark.rule("delivery-replay", "delivery-order", "envelope-webhook-id")
@each_row("case, sent, stored", REPETITIONS)
def test_repetitions(
    served: ServedInbox, case: str, sent: list[tuple[str | None, dict[str, Any]]], stored: list[bool]
) -> None:
    conn_id = fresh("secret")
    answers = [served.deliver(conn_id, event(**fields), key=key) for key, fields in sent]
    assert [answer.status_code for answer in answers] == [200] * len(sent)
    assert [answer.json()["status"] == "stored" for answer in answers] == stored
    assert len(served.rows(conn_id)) == sum(stored)


# body, and what is read from it; None where it is refused
BODIES: list[tuple[bytes, dict[str, Any] | None]] = [
    (b"{", None),
    (b'{"type": "check.completed"}'.decode().encode("utf-16"), None),
    (b"[" * 100_000 + b"]" * 100_000, None),
    (b" \n{ } \r\n", {}),
    (b"1e400", {}),
    (b'{"type": "crawl.page", "type": "crawl.completed"}', {"event": "crawl.completed"}),
    (b'{"type": "page", "id": "c", "success": false}', {"event": "page", "job_id": "c", "success": False}),
    (b'{"data": {"monitorId": "m", "checkId": "c"}}', {"job_id": "c", "monitor_id": "m"}),
    (json.dumps({"type": "x" * 500, "id": "i" * 500}).encode(), {}),
    (b'{"type": "a\\u0000b", "id": "\\u0007"}', {}),
    (b'{"type": "\\ud800"}', {"event": r"\ud800"}),
    (b'{"id": "c", "data": [{"markdown": "a\\ud83d"}]}', {"job_id": "c"}),
    ('{"type": "søk", "id": "名"}'.encode(), {"event": "søk", "job_id": "名"}),
    (b'{"text": "a\\u0000b \\u2028"}', {}),
]


@each_row("body, read", BODIES)
def test_bodies(served: ServedInbox, body: bytes, read: dict[str, Any] | None) -> None:
    conn_id = fresh("secret")
    before = datetime.now(timezone.utc)
    answer = served.deliver(conn_id, body, key="k")
    if read is None:
        assert (answer.status_code, answer.json()) == (400, {"error": "the body is not JSON"})
        assert served.rows(conn_id) == []
        return
    assert (answer.status_code, answer.json()) == (200, {"status": "stored"})
    (row,) = served.rows(conn_id)
    assert row.body == body
    columns = {name: getattr(row, name) for name in ("event", "job_id", "monitor_id", "success")}
    assert {name: value for name, value in columns.items() if value is not None} == read
    assert before - timedelta(seconds=1) <= row.received_at.replace(tzinfo=timezone.utc)


def test_the_signature_is_checked_before_the_body(on_sqlite: ServedInbox) -> None:
    conn_id = fresh("signed")
    assert on_sqlite.deliver(conn_id, b"{", _signed("sha256=" + "0" * 64)).status_code == 401
    assert on_sqlite.deliver(conn_id, b"{", _signed(signature(b"{"))).status_code == 400


PROBE = probe.new_probe()

# connection, headers, and the secret that proves the response; None where the probe is refused
PROBES: list[tuple[str, dict[str, str], str | None]] = [
    ("secret", _secret(SECRET), SECRET),
    ("secret", {}, None),
    ("secret", _secret(STRANGE), None),
    ("rotating", _secret(SECRET), PREVIOUS_SECRET),
    ("rotating", _secret(PREVIOUS_SECRET), SECRET),
    ("signed", _signed(signature(PROBE)), SIGNING_SECRET),
    ("signed", _signed(SIGNED), None),
    ("both", {**_secret(SECRET), **_signed(signature(PROBE))}, SIGNING_SECRET),
    ("both", _secret(SECRET), None),
    ("both", _signed(signature(PROBE)), None),
    ("open", {}, None),
    ("unknown", _secret(SECRET), None),
]


@each_row("kind, headers, known_by", PROBES)
def test_a_probe_is_answered_and_never_stored(
    on_sqlite: ServedInbox, kind: str, headers: dict[str, str], known_by: str | None
) -> None:
    conn_id = fresh(kind)
    answer = on_sqlite.deliver(conn_id, PROBE, headers, key="k")
    assert on_sqlite.rows(conn_id) == []
    if known_by is None:
        assert answer.status_code == 401
        return
    body = answer.json()
    assert (answer.status_code, body["status"], body["version"]) == (200, "probe", __version__)
    assert probe.is_proven(body["proofs"], PROBE, conn_id, [known_by])
    assert not probe.is_proven(body["proofs"], probe.new_probe(), conn_id, [known_by])
    assert not probe.is_proven(body["proofs"], PROBE, "another", [known_by])
    assert not probe.is_proven(body["proofs"], PROBE, conn_id, [STRANGE])
    assert not any(secret in answer.text for secret in ALL_SECRETS)


@each_row("body", [PROBE[:-1], PROBE + b"0", PROBE + b"\n", PROBE.upper(), b" " + PROBE])
def test_an_invalid_probe_is_refused_as_invalid_json(on_sqlite: ServedInbox, body: bytes) -> None:
    conn_id = fresh("secret")
    answer = on_sqlite.deliver(conn_id, body)
    assert (answer.status_code, answer.json()) == (400, {"error": "the body is not JSON"})


# method, path, and status, with the right secret
PATHS = [
    ("POST", "/webdata/inbox/{}/" + "k" * 200, 200),
    ("POST", "/webdata/inbox/{}/a.b_c~d-E9", 200),
    ("POST", "/webdata/inbox/{}", 200),
    ("POST", "/webdata/inbox/{}?query=ignored", 200),
    ("POST", "/webdata/inbox/{}/" + "k" * 201, 404),
    ("POST", "/webdata/inbox/{}/", 404),
    ("POST", "/webdata/inbox/{}/a%20b", 404),
    ("POST", "/webdata/inbox/{}/a%00b", 404),
    ("POST", "/webdata/inbox/{}/a%0Ab", 404),
    ("POST", "/webdata/inbox/{}/%FF", 404),
    ("POST", "/webdata/inbox/{}/k/l", 404),
    ("POST", "/webdata/inbox", 404),
    ("POST", "/webdata/other/{}", 404),
    ("POST", "/webdata", 404),
    ("POST", "/", 404),
    ("POST", "/api/v2/monitor/health", 404),
    ("GET", "/webdata/inbox/{}", 405),
    ("GET", "/webdata/inbox/{}/k", 405),
    ("HEAD", "/webdata/inbox/{}/k", 405),
    ("POST", "/webdata/deliveries/{}", 405),
    ("GET", "/webdata/deliveries/{}/search", 405),
    ("DELETE", "/webdata/deliveries/{}/1", 405),
    ("POST", "/webdata/inbox-health", 405),
    ("GET", "/webdata/inbox-health", 200),
]


@each_row("method, path, status", PATHS)
def test_paths(on_sqlite: ServedInbox, method: str, path: str, status: int) -> None:
    conn_id = fresh("secret")
    answer = on_sqlite.http.request(method, path.format(conn_id), content=BODY, headers=_secret(SECRET))
    assert answer.status_code == status
    assert len(on_sqlite.rows(conn_id)) == (status == 200 and "inbox/" in path)
    if status == 405:
        assert answer.headers["allow"] == ("POST" if "/inbox/" in path or "search" in path else "GET")
    if method != "HEAD":
        assert answer.headers["content-type"] == "application/json"
        answer.json()


# the connection's id in the URL, and as it is stored
IDS = [("secret-of%2Fteam", "secret-of/team"), ("secret-%C3%A9", "secret-é"), ("secret%2Da", "secret-a")]


@each_row("quoted, conn_id", IDS)
def test_ids_are_decoded(on_sqlite: ServedInbox, quoted: str, conn_id: str) -> None:
    assert on_sqlite.deliver(quoted, BODY, key="k").status_code == 200
    assert [row.correlation_key for row in on_sqlite.rows(conn_id)] == ["k"]


def test_refusals_are_limited(
    sqlite_engine: Engine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guesses of the secret are limited in number and in log lines; the right secret is always accepted."""
    # A slow machine makes no more guesses than are refilled.
    for name in ("REFUSALS_PER_SECOND", "LOG_LINES_PER_SECOND"):
        monkeypatch.setattr(receive, name, 1e-4)
    with ServedInbox(sqlite_engine, bounded=True) as served:
        statuses = [
            served.deliver("secret", BODY, _secret(STRANGE)).status_code
            for _ in range(int(receive.REFUSALS_AT_ONCE))
        ]
        answer = served.deliver("secret", BODY, _secret(STRANGE))
        assert ({*statuses}, answer.status_code) == ({401}, 429)
        assert int(answer.headers["retry-after"]) >= 1
        assert served.deliver("secret", BODY, key="k").json() == {"status": "stored"}
    lines = [record for record in caplog.records if "Rejected a delivery" in record.getMessage()]
    assert len(lines) == receive.LOG_LINES_AT_ONCE


def test_the_log_names_a_refused_sender(sqlite_engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    claimed = b"198.51.100.7, \xe9" + b"9" * 1000
    with ServedInbox(sqlite_engine) as served:
        served.deliver("secret", BODY, _secret(STRANGE))
        path = "/webdata/inbox/unknown"
        served.http.post(path, content=BODY, headers={b"X-Forwarded-For": claimed})
        served.deliver("secret", BODY)
    direct, forwarded = (
        record.getMessage() for record in caplog.records if "Rejected" in record.getMessage()
    )
    assert direct.endswith("Sender: '127.0.0.1'")
    assert "'unknown'" in forwarded
    assert "x-forwarded-for: '198.51.100.7, \xe99" in forwarded
    assert len(forwarded) < 500


def test_lookups_are_limited(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up connections cannot keep the database busy, and known connections continue to work."""
    # A slow machine makes no more lookups than are refilled.
    monkeypatch.setattr(connections, "LOOKUPS_PER_SECOND", 1e-4)
    asked: list[str] = []

    def gate(conn_id: str) -> Gate:
        asked.append(conn_id)
        return gate_of(conn_id)

    with ServedInbox(sqlite_engine, gate, bounded=True) as served:
        assert served.deliver("secret", BODY, key="k").status_code == 200
        for number in range(int(connections.LOOKUPS_AT_ONCE) + 1):
            answer = served.deliver(f"guess{number}", BODY)
            if answer.status_code == 503:
                break
        assert (answer.status_code, answer.json()) == (503, {"error": "too many concurrent requests"})
        assert int(answer.headers["retry-after"]) >= 1
        assert len(asked) <= number + 1
        for _ in range(50):
            assert served.deliver("secret", BODY, key="k").json() == {"status": "duplicate"}
        assert asked.count("secret") == 1
