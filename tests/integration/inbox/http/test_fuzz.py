# SPDX-License-Identifier: Apache-2.0
"""Arbitrary requests: documented statuses only, no forged delivery, and none stored twice."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_webdata.inbox.envelope import NotJSONError, parse_body
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from tests.integration.inbox.http.raw_client import LAST_CHUNK, RawConnection, chunk, head
from tests.integration.inbox.http.served_inbox import (
    SECRET,
    ServedInbox,
    bearer,
    fresh,
    signature,
)
from tests.support.examples import EXAMPLES
from tests.support.service import SIGNATURE_HEADER

RECEIVING = {200, 400, 401, 404, 405, 408, 413, 429, 503}
READING = {200, 400, 401, 404, 405, 410, 503}
# The status of uvicorn for invalid HTTP.
NO_HTTP = {400}


@pytest.fixture(autouse=True)
def _no_failure_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A 503 could hide a failure."""
    yield
    loud = [
        one.getMessage()
        for when in ("setup", "call")
        for one in caplog.get_records(when)
        if one.levelno >= logging.ERROR
    ]
    assert loud == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
texts_of_envelopes = st.sampled_from(["", "monitor.page", "check.completed", "w-1", "w-2"]) | json_values
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "type": texts_of_envelopes,
        "id": texts_of_envelopes,
        "webhookId": texts_of_envelopes,
        "success": json_values,
        "data": st.lists(st.fixed_dictionaries({}, optional={"monitorId": texts_of_envelopes}), max_size=2)
        | json_values,
    },
)
bodies = st.one_of(
    st.binary(max_size=200),
    json_values.map(lambda value: json.dumps(value).encode()),
    envelopes.map(lambda value: json.dumps(value).encode()),
    st.tuples(
        envelopes.map(lambda value: json.dumps(value).encode()), st.integers(0, 200), st.binary(max_size=3)
    ).map(lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :]),
)
header_values = st.text(
    st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60
)
secrets = st.sampled_from(["", SECRET, SECRET[:-1], SECRET + " x", SECRET.upper(), "sha256="]) | header_values


def is_json(body: bytes) -> bool:
    try:
        parse_body(body)
    except NotJSONError:
        return False
    return True


@settings(max_examples=min(EXAMPLES, 100))
@given(bodies=st.lists(bodies, min_size=1, max_size=6), key=st.sampled_from(["k", "l"]))
def test_every_2xx_is_stored_once(on_sqlite: ServedInbox, bodies: list[bytes], key: str) -> None:
    """Bodies with the right secret, each sent twice: those reported as stored are in the database, unchanged."""
    conn_id = fresh("secret")
    stored: list[bytes] = []
    for body in [*bodies, *bodies]:
        answer = on_sqlite.deliver(conn_id, body, key=key)
        assert answer.status_code == (200 if is_json(body) else 400)
        if answer.json() == {"status": "stored"}:
            stored.append(body)
    assert [row.body for row in on_sqlite.rows(conn_id)] == stored
    assert len({row.dedupe for row in on_sqlite.rows(conn_id)}) == len(stored)
    assert {*stored} >= {body for body in bodies if is_json(body) and b"webhookId" not in body}
    # A reader can parse all of them.
    page = on_sqlite.read(conn_id)
    assert page.status_code == 200
    assert len(json.loads(page.content)["deliveries"]) == len(stored)


@pytest.mark.rule("delivery-signature")
@given(
    kind=st.sampled_from(["secret", "signed", "both", "open", "rotating", "renamed"]),
    secret=st.none() | secrets,
    proof=st.none()
    | st.sampled_from(["RIGHT", "RIGHT0", "0RIGHT", "RIGHT, RIGHT"])
    | secrets
    | st.binary(max_size=8).map(signature),
    others=st.dictionaries(st.from_regex(r"[A-Za-z0-9-]{1,12}", fullmatch=True), header_values, max_size=4),
    body=bodies,
)
def test_no_forgery_is_stored(
    on_sqlite: ServedInbox,
    kind: str,
    secret: str | None,
    proof: str | None,
    others: dict[str, str],
    body: bytes,
) -> None:
    """Any headers: a delivery is stored if the rule below, stated apart from the code, allows it."""
    conn_id = fresh(kind)
    reserved = {
        "content-length",
        "transfer-encoding",
        "host",
        "connection",
        "expect",
        "upgrade",
        "x-hub-signature-256",
    }
    headers = {name: value.strip() for name, value in others.items() if name.lower() not in reserved}
    headers["Content-Length"] = str(len(body))
    for name, value in ((SECRET_HEADER, secret), (SIGNATURE_HEADER, proof)):
        if value is not None:
            headers[name] = value.replace("RIGHT", signature(body)).strip()
    with RawConnection(on_sqlite.port) as connection:
        connection.send(head("POST", f"/webdata/inbox/{conn_id}/k", headers) + body)
        reply = connection.reply()
    assert reply is not None
    assert reply.status in RECEIVING
    knows = headers.get(SECRET_HEADER) == SECRET
    signs = headers.get(SIGNATURE_HEADER) == signature(body)
    entitled = {"secret": knows, "rotating": knows, "signed": signs, "both": knows and signs}.get(kind, False)
    expected = (200 if is_json(body) else 400) if entitled else 401
    assert reply.status == expected
    assert [row.body for row in on_sqlite.rows(conn_id)] == ([body] if expected == 200 else [])


segments = st.one_of(
    st.sampled_from(["webdata", "inbox", "deliveries", "search", "secret", "unknown", "inbox-health"]),
    st.sampled_from(["", ".", "..", "%", "%zz", "%00", "%2F", "%2e%2e", "%ff", "k" * 201, "0", "1", "9" * 30]),
    st.text(max_size=8).map(lambda text: quote(text.encode("utf-8", "replace"), safe="")),
    st.binary(max_size=6).map(quote),
)  # fmt: skip
methods = st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "BREW"])


@given(
    method=methods,
    rest=st.lists(segments, max_size=5),
    query=st.text(st.sampled_from("abk=&%1_9fu ;+"), max_size=20).map(lambda text: text.replace(" ", "")),
    lead=st.sampled_from(["/webdata/", "/webdata/inbox/", "/webdata/deliveries/", "/", "//", ""]),
    authorized=st.booleans(),
)
def test_any_path(
    on_sqlite: ServedInbox, method: str, rest: list[str], query: str, lead: str, authorized: bool
) -> None:
    target = lead + "/".join(rest) + (f"?{query}" if query else "")
    conn_id = "secret"
    headers = {"Content-Length": "2", "Connection": "close"}
    if authorized:
        headers |= {SECRET_HEADER: SECRET, **bearer(conn_id)}
    before = len(on_sqlite.rows(conn_id))
    with RawConnection(on_sqlite.port) as connection:
        connection.send(head(method, target or "*", headers) + b"{}")
        reply = connection.reply()
    assert reply is not None
    assert reply.status in RECEIVING | READING | NO_HTTP
    if reply.status == 200 and method == "GET":
        assert "inbox-" in target or authorized
    new = len(on_sqlite.rows(conn_id)) - before
    assert new == (reply.body == b'{"status":"stored"}' and "secret" in target)


lists_of_texts = st.lists(st.text(max_size=12), max_size=4)
search_fields: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("keys", "job_ids", "monitor_ids", "events"), lists_of_texts | json_values),
    "after": st.integers(0, 10**20).map(str) | json_values,
    "limit": st.integers(-5, 2000) | json_values,
    "received_after": st.datetimes().map(lambda moment: moment.isoformat()) | json_values,
}


@given(fields=st.fixed_dictionaries({}, optional=search_fields))
def test_any_search(on_sqlite: ServedInbox, fields: dict[str, Any]) -> None:
    conn_id = "secret-searched"
    on_sqlite.deliver(conn_id, b'{"type": "monitor.page", "id": "c"}', key="k")
    path = f"/webdata/deliveries/{conn_id}"
    body = json.dumps(fields).encode()
    answer = on_sqlite.http.post(f"{path}/search", content=body, headers=bearer(conn_id))
    assert answer.status_code in {200, 400, 410}, answer.text
    names = {"keys": "key", "job_ids": "job_id", "monitor_ids": "monitor_id", "events": "event"}
    query = [(names.get(name, name), str(value)) for name, value in fields.items()]
    asked = on_sqlite.http.get(
        f"{path}?" + "&".join(f"{name}={quote(value.encode('utf-8', 'replace'))}" for name, value in query),
        headers=bearer(conn_id),
    )
    assert asked.status_code in {200, 400, 410}, asked.text


@given(
    data=st.binary(max_size=300), cut=st.integers(0, 200), insert=st.binary(max_size=6), chunked=st.booleans()
)
def test_any_bytes(on_sqlite: ServedInbox, data: bytes, cut: int, insert: bytes, chunked: bool) -> None:
    """A damaged request is refused or ignored, and the inbox continues to work."""
    conn_id = fresh("secret")
    framing = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(data))}
    whole = head("POST", f"/webdata/inbox/{conn_id}/k", {**framing, SECRET_HEADER: SECRET})
    whole += (chunk(data) if data else b"") + LAST_CHUNK if chunked else data
    damaged = whole[:cut] + insert + whole[cut + len(insert) :]
    with RawConnection(on_sqlite.port) as connection:
        connection.send(damaged)
        connection.finish_sending()
        reply = connection.reply()
    assert reply is None or reply.status in RECEIVING | NO_HTTP
    rows = on_sqlite.rows(conn_id)
    assert len(rows) <= 1
    if reply is not None and reply.body == b'{"status":"stored"}' and rows:
        assert is_json(rows[0].body)
    assert on_sqlite.deliver(conn_id, b'"afterwards"', key="k").status_code == 200
