# SPDX-License-Identifier: Apache-2.0
"""Reading deliveries: by cursor, by filter, and one by one, with a valid token."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.inbox import tokens
from airflow_provider_webdata.inbox.reader import InboxAddress, InboxReader
from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES, SECRET_HEADER
from airflow_provider_webdata.inbox_server.http import deliveries
from tests.integration.inbox.http.served_inbox import (
    PREVIOUS_SECRET,
    SECRET,
    SIGNING_SECRET,
    ServedInbox,
    bearer,
    event,
    fresh,
)
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE

STRANGE = "not-the-secret-0123456789abcdef"


def fill(served: ServedInbox, count: int) -> str:
    conn_id = fresh("secret")
    for number in range(count):
        assert served.deliver(conn_id, event(webhookId=f"w-{number}", id=f"job-{number}")).status_code == 200
    return conn_id


def job_ids_in(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [record["job_id"] for record in answer.json()["deliveries"]]


def test_pages(served: ServedInbox) -> None:
    conn_id = fill(served, 7)
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    more = []
    while True:
        answer = served.read(conn_id, **query)
        seen += job_ids_in(answer)
        more.append(answer.json()["more"])
        query["after"] = answer.json()["cursor"]
        if not more[-1]:
            break
    assert seen == [f"job-{number}" for number in range(7)]
    assert more == [True, True, False]
    assert job_ids_in(served.read(conn_id, after=query["after"])) == []
    # The last cursor also serves later deliveries.
    served.deliver(conn_id, event(id="late"))
    assert job_ids_in(served.read(conn_id, after=query["after"])) == ["late"]


def test_a_record(served: ServedInbox) -> None:
    conn_id = fresh("secret")
    body = b'{"type": "monitor.page",  "id":"c", "success":true, "data": [{"monitorId": "m"}], "n": 1.50}'
    served.deliver(conn_id, body, key="k")
    (record,) = served.read(conn_id).json()["deliveries"]
    received = datetime.fromisoformat(record.pop("received_at"))
    assert received.utcoffset() == timedelta(0)
    assert abs(received - datetime.now(timezone.utc)) < timedelta(minutes=5)
    delivery_id = record.pop("id")
    assert isinstance(record.pop("position"), int)
    assert record == {
        "key": "k",
        "event": "monitor.page",
        "job_id": "c",
        "monitor_id": "m",
        "success": True,
        "size": len(body),
        "replay_of": None,
        "body": json.loads(body),
    }
    alone = served.http.get(f"/webdata/deliveries/{conn_id}/{delivery_id}", headers=bearer(conn_id))
    assert alone.json()["body"] == record["body"]


def test_the_body_is_not_rewritten(on_sqlite: ServedInbox) -> None:
    """Spaces, digits, and repeated names are unchanged."""
    conn_id = fresh("secret")
    body = b'{"a" :1.50,\n "a": 2, "\\u0041": 1e2}'
    on_sqlite.deliver(conn_id, body)
    assert body in on_sqlite.read(conn_id).content


def test_half_an_emoji_reaches_readers_as_text(on_sqlite: ServedInbox) -> None:
    """JavaScript writes it when it cuts a text. The stored body is unchanged; a reader's payload is valid Unicode."""
    conn_id = fresh("secret")
    body = rb'{"id": "job", "data": [{"markdown": "a\ud83d"}], "size": "%s"}'
    sent = [body % b"small", body % (b"x" * INLINE_BODY_BYTES)]
    assert [on_sqlite.deliver(conn_id, one).status_code for one in sent] == [200, 200]
    assert [row.body for row in on_sqlite.rows(conn_id)] == sent
    with InboxReader(InboxAddress(on_sqlite.url, conn_id, SECRET)) as reader:
        small, large = reader.feed().deliveries
        found = [small.payload(), reader.fetch(large.id).payload()]
    assert [one["data"] for one in found] == [[{"markdown": r"a\ud83d"}]] * 2
    assert json.dumps(found, ensure_ascii=False).encode()


def test_large_bodies_are_fetched_one_by_one(on_sqlite: ServedInbox) -> None:
    conn_id = fresh("secret")
    sizes = [INLINE_BODY_BYTES - 1, INLINE_BODY_BYTES, INLINE_BODY_BYTES + 1, 600_000]
    for size in sizes:
        assert on_sqlite.deliver(conn_id, b'"' + b"x" * (size - 2) + b'"').status_code == 200
    records = on_sqlite.read(conn_id).json()["deliveries"]
    assert [record["size"] for record in records] == sizes
    assert ["body" in record for record in records] == [True, True, False, False]
    for record in records:
        whole = on_sqlite.http.get(f"/webdata/deliveries/{conn_id}/{record['id']}", headers=bearer(conn_id))
        assert whole.json()["body"] == "x" * (record["size"] - 2)


def test_one_delivery_belongs_to_its_connection(on_sqlite: ServedInbox) -> None:
    mine, other = fill(on_sqlite, 1), fill(on_sqlite, 1)
    (record,) = on_sqlite.read(mine).json()["deliveries"]
    paths = [
        (mine, record["id"], 200),
        (other, record["id"], 404),
        (mine, 10**17, 404),
        (mine, 0, 404),
        (mine, "-1", 404),
        (mine, "1.0", 404),
        (mine, "x", 404),
        (mine, "%D9%A1", 404),
        (mine, "9" * 30, 404),
    ]
    for conn_id, delivery_id, status in paths:
        answer = on_sqlite.http.get(f"/webdata/deliveries/{conn_id}/{delivery_id}", headers=bearer(conn_id))
        assert (delivery_id, answer.status_code) == (delivery_id, status)


# Deliveries for the filters: key and body.
STOCK: dict[str, tuple[str | None, dict[str, Any]]] = {
    "a": ("k1", {"type": "monitor.check.completed", "id": "c1", "data": [{"monitorId": "m1"}]}),
    "b": ("k1", {"type": "monitor.page", "id": "c1", "data": [{"monitorId": "m1"}]}),
    "c": ("k2", {"type": "check.completed", "id": "c2", "data": [{"monitorId": "m2"}]}),
    "d": (None, {"type": "crawl.completed", "id": "j1"}),
    "e": (None, {"type": "completed", "id": "j2"}),
    "f": ("K1", {"type": "Monitor.page", "id": "C1", "data": [{"monitorId": "M1"}]}),
    "g": ("k3", {}),
}

FILTERS: list[tuple[dict[str, list[str]], str]] = [
    ({}, "abcdefg"),
    ({"keys": ["k1"]}, "ab"),
    ({"keys": ["k1", "k3"]}, "abg"),
    ({"job_ids": ["c1", "j1"]}, "abd"),
    ({"monitor_ids": ["m2"]}, "c"),
    ({"keys": ["k2"], "job_ids": ["j1"], "monitor_ids": ["m1"]}, "abcd"),
    ({"events": ["monitor.check.completed"]}, "ac"),
    ({"events": ["page", "completed"]}, "bde"),
    ({"events": ["check.completed"], "keys": ["k1"], "job_ids": ["c2"]}, "ac"),
    ({"keys": [f"no-{number}" for number in range(900)] + ["k2"]}, "c"),
]  # fmt: skip
QUERY_NAMES = {"keys": "key", "job_ids": "job_id", "monitor_ids": "monitor_id", "events": "event"}


def test_filters(served: ServedInbox) -> None:
    conn_id = fresh("secret")
    for name, (key, body) in STOCK.items():
        served.deliver(conn_id, json.dumps({**body, "name": name}).encode(), key=key)
    for wanted, expected in FILTERS:
        search = served.http.post(
            f"/webdata/deliveries/{conn_id}/search", json={**wanted, "limit": 100}, headers=bearer(conn_id)
        )
        assert (wanted, _names(search)) == (wanted, expected)
        if sum(map(len, wanted.values())) < 100:
            query = {QUERY_NAMES[name]: values for name, values in wanted.items()}
            assert (wanted, _names(served.read(conn_id, **query))) == (wanted, expected)


def _names(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return "".join(record["body"]["name"] for record in answer.json()["deliveries"])


def test_received_after(on_sqlite: ServedInbox) -> None:
    conn_id = fill(on_sqlite, 3)
    moment = on_sqlite.read(conn_id).json()["deliveries"][1]["received_at"]
    zoned = datetime.fromisoformat(moment).astimezone(timezone(timedelta(hours=5))).isoformat()
    for given in (moment, zoned, moment.replace("+00:00", "Z")):
        assert job_ids_in(on_sqlite.read(conn_id, received_after=given)) == ["job-1", "job-2"]
        found = on_sqlite.http.post(
            f"/webdata/deliveries/{conn_id}/search",
            json={"received_after": given, "keys": None, "after": None, "limit": None},
            headers=bearer(conn_id),
        )
        assert job_ids_in(found) == ["job-1", "job-2"]


def test_a_waiting_reader_is_woken(served: ServedInbox) -> None:
    conn_id = fill(served, 1)
    cursor = served.read(conn_id, after="end").json()["cursor"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(served.read, conn_id, after=cursor, wait=30)
        served.wait_for_readers()
        served.deliver(fresh("secret"), event(id="of another connection"))
        served.deliver(conn_id, event(id="late"))
        assert job_ids_in(waiting.result()) == ["late"]


def test_a_wait_without_deliveries(on_sqlite: ServedInbox) -> None:
    conn_id = fill(on_sqlite, 1)
    answer = on_sqlite.read(conn_id, after="end", wait=0.05)
    assert job_ids_in(answer) == []
    assert job_ids_in(on_sqlite.read(conn_id, after=answer.json()["cursor"])) == []
    for wait in ("1e-05", "0.012345678901234567", "0", "30"):
        assert job_ids_in(on_sqlite.read(conn_id, wait=wait)) == ["job-0"]


def test_readers_that_leave_are_forgotten(on_sqlite: ServedInbox) -> None:
    conn_id = fill(on_sqlite, 0)
    with httpx.Client(base_url=on_sqlite.url, timeout=httpx.Timeout(PATIENCE, read=0.2)) as client:
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                client.get(f"/webdata/deliveries/{conn_id}?wait=30", headers=bearer(conn_id))
    on_sqlite.wait_for_readers(0)


def test_waiting_readers_of_one_connection_are_limited(
    on_sqlite: ServedInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "LONG_POLLS_AT_ONCE", 10)
    greedy, modest = fill(on_sqlite, 0), fill(on_sqlite, 0)
    with ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(on_sqlite.read, greedy, wait=30) for _ in range(10)]
        on_sqlite.wait_for_readers(10)
        answer = on_sqlite.read(greedy, wait=30)
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
        assert job_ids_in(on_sqlite.read(greedy)) == []
        reading = pool.submit(on_sqlite.read, modest, wait=30)
        on_sqlite.wait_for_readers(11)
        for conn_id in (greedy, modest):
            on_sqlite.deliver(conn_id, event(id="late"))
        assert [job_ids_in(one.result()) for one in (*waiting, reading)] == [["late"]] * 11
        waiting = [pool.submit(on_sqlite.read, greedy, wait=0.01, after="end") for _ in range(10)]
        assert [job_ids_in(one.result()) for one in waiting] == [[]] * 10


def test_a_cursor_from_before_a_reset(on_sqlite: ServedInbox) -> None:
    conn_id = fill(on_sqlite, 1)
    end = on_sqlite.read(conn_id, after="end").json()["cursor"]
    ahead = str(int(end) + 10**12)
    answers = [
        on_sqlite.read(conn_id, after=ahead),
        on_sqlite.read(conn_id, after=ahead, wait=30),
        on_sqlite.http.post(
            f"/webdata/deliveries/{conn_id}/search", json={"after": ahead}, headers=bearer(conn_id)
        ),
    ]
    for answer in answers:
        assert answer.status_code == 410
        assert set(answer.json()) == {"error", "cursor"}
        assert job_ids_in(on_sqlite.read(conn_id, after=answer.json()["cursor"])) == []


def authorization(value: str) -> dict[str, str]:
    return {"Authorization": value}


# case, connection, function that returns the headers since tokens expire, whether they are accepted
TOKENS: list[tuple[str, str, Callable[[], dict[str, str]], bool]] = [
    ("a token", "secret-t", lambda: bearer("secret-t"), True),
    (
        "the scheme in lower case",
        "secret-t",
        lambda: authorization(f"bearer {tokens.issue(SECRET, 'secret-t')}"),
        True,
    ),
    ("another scheme", "secret-t", lambda: authorization(f"Basic {tokens.issue(SECRET, 'secret-t')}"), False),
    ("no scheme", "secret-t", lambda: authorization(tokens.issue(SECRET, "secret-t")), False),
    ("nothing", "secret-t", dict, False),
    ("empty", "secret-t", lambda: authorization(""), False),
    ("the scheme alone", "secret-t", lambda: authorization("Bearer"), False),
    ("the secret itself", "secret-t", lambda: authorization(f"Bearer {SECRET}"), False),
    ("the secret as in a delivery", "secret-t", lambda: {SECRET_HEADER: SECRET}, False),
    ("by another secret", "secret-t", lambda: bearer("secret-t", STRANGE), False),
    ("of another connection", "secret-t", lambda: bearer("secret-u"), False),
    ("expired", "secret-t", lambda: bearer("secret-t", now=time.time() - 3600), False),
    ("no text", "secret-t", lambda: authorization("Bearer \u00e9\u00ff"), False),
    ("rotation: the previous secret", "rotating-t", lambda: bearer("rotating-t", PREVIOUS_SECRET), True),
    ("a connection that signs", "signed-t", lambda: bearer("signed-t", SIGNING_SECRET), True),
    ("both secrets: the one that signs", "both-t", lambda: bearer("both-t", SIGNING_SECRET), True),
    ("both secrets: the one that a delivery carries", "both-t", lambda: bearer("both-t"), False),
    ("an empty secret", "open-t", lambda: bearer("open-t", ""), False),
    ("a connection without secrets", "open-t", lambda: bearer("open-t"), False),
    ("no such connection", "unknown-t", lambda: bearer("unknown-t"), False),
]


@each_row("case, conn_id, headers, allowed", TOKENS)
def test_tokens(
    on_sqlite: ServedInbox, case: str, conn_id: str, headers: Callable[[], dict[str, str]], allowed: bool
) -> None:
    encoded = [(header.encode(), value.encode("latin-1")) for header, value in headers().items()]
    path = f"/webdata/deliveries/{conn_id}"
    answers = [
        on_sqlite.http.get(path, headers=encoded),
        on_sqlite.http.get(f"{path}?limit=bad", headers=encoded),
        on_sqlite.http.get(f"{path}/999999", headers=encoded),
        on_sqlite.http.post(f"{path}/search", headers=encoded, json={}),
    ]
    expected = [200, 400, 404, 200] if allowed else [401] * 4
    assert [answer.status_code for answer in answers] == expected
    if not allowed:
        assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
        assert len({answer.content for answer in answers}) == 1


QUERIES = [
    ("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("limit=", "limit"), ("limit=1.0", "limit"),
    ("limit=-1", "limit"), ("limit=%D9%A1", "limit"), ("limit=" + "9" * 5000, "limit"), ("limit=1&limit=2", "limit"),
    ("wait=-1", "wait"), ("wait=31", "wait"), ("wait=nan", "wait"), ("wait=inf", "wait"), ("wait=soon", "wait"),
    ("wait=", "wait"), ("wait=1e9", "wait"), ("wait=1e999", "wait"), ("wait=1_0", "wait"), ("wait=%201", "wait"),
    ("after=x", "after"), ("after=-1", "after"), ("after=", "after"), ("after=" + "9" * 19, "after"),
    ("after=END", "after"), ("after=1&after=2", "after"), ("received_after=yesterday", "received_after"),
    ("received_after=", "received_after"), ("received_after=2026-13-01", "received_after"),
    ("received_after=0001-01-01T00:00:00%2B14:00", "received_after"),
    ("received_after=9999-12-31T23:59:59-14:00", "received_after"),
    ("key=", "key"), ("key=" + "k" * 256, "key"), ("event=a%00b", "event"), ("job_id=a%0Ab", "job_id"),
    ("monitor_id=%FF", "query"), ("%FF=1", "query"), ("unknown=1", "unknown"), ("Key=k", "Key"),
    ("&".join(["key=k"] * 1001), "query"),
]  # fmt: skip


@each_row("query, named", QUERIES)
def test_malformed_queries(on_sqlite: ServedInbox, query: str, named: str) -> None:
    answer = on_sqlite.http.get(f"/webdata/deliveries/secret-q?{query}", headers=bearer("secret-q"))
    assert answer.status_code == 400, answer.text
    assert named in answer.json()["error"]
    assert len(answer.content) < 300


SEARCHES: list[tuple[bytes, str]] = [
    (b"", "JSON"),
    (b"{", "JSON"),
    (b"[]", "object"),
    (b"null", "object"),
    (b'{"key": ["k"]}', "key"),
    (b'{"keys": "k"}', "keys"),
    (b'{"keys": [1]}', "keys"),
    (b'{"keys": [null]}', "keys"),
    (b'{"events": {"a": 1}}', "events"),
    (b'{"job_ids": [""]}', "job_ids"),
    (b'{"monitor_ids": ["\\u0000"]}', "monitor_ids"),
    (b'{"limit": true}', "limit"),
    (b'{"limit": 0}', "limit"),
    (b'{"limit": 1.5}', "limit"),
    (b'{"limit": "5"}', "limit"),
    (b'{"limit": 1e300}', "limit"),
    (b'{"limit": 1e400}', "limit"),
    (b'{"keys": 0}', "keys"),
    (b'{"limit": []}', "limit"),
    (b'{"after": 7}', "after"),
    (b'{"after": "end"}', "after"),
    (b'{"after": ""}', "after"),
    (b'{"received_after": 5}', "received_after"),
    (b'{"received_after": "5 o\'clock"}', "received_after"),
    (b'{"wait": 1}', "wait"),
    (json.dumps({"keys": ["k"] * 600, "events": ["e"] * 401}).encode(), "1000"),
    (b'{"keys": ["' + b"k" * 2**20 + b'"]}', "1048576"),
]


@each_row("body, named", SEARCHES)
def test_malformed_searches(on_sqlite: ServedInbox, body: bytes, named: str) -> None:
    answer = on_sqlite.http.post(
        "/webdata/deliveries/secret-q/search", content=body, headers=bearer("secret-q")
    )
    assert answer.status_code == 400, answer.text
    assert named in answer.json()["error"]
