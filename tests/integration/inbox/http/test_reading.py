"""Reading deliveries: by cursor, by what they are about, one by one; and who may."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import jwt
import pytest

from airflow_provider_webdata.inbox import tokens
from airflow_provider_webdata.inbox.reader import InboxAddress, InboxReader
from airflow_provider_webdata.inbox.server.http.limits import Shares
from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES
from tests.integration.inbox.http.served_inbox import (
    PREVIOUS_SECRET,
    SECRET,
    SIGNING_SECRET,
    ServedInbox,
    bearer,
    event,
    fresh,
    signature,
)
from tests.support.service import SIGNATURE_HEADER

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
    # The last cursor is as good for what comes later.
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


def test_the_body_is_not_rewritten(served: ServedInbox) -> None:
    """Spaces, digits and doubled names stay as they came."""
    conn_id = fresh("secret")
    body = b'{"a" :1.50,\n "a": 2, "\\u0041": 1e2}'
    served.deliver(conn_id, body)
    assert body in served.read(conn_id).content


def test_half_an_emoji_reaches_readers_as_text(served: ServedInbox) -> None:
    """JavaScript writes it when it cuts a text: what came is kept, and what readers get can go on to any store."""
    conn_id = fresh("secret")
    body = rb'{"id": "job", "data": [{"markdown": "a\ud83d"}], "size": "%s"}'
    sent = [body % b"small", body % (b"x" * INLINE_BODY_BYTES)]
    assert [served.deliver(conn_id, one).status_code for one in sent] == [200, 200]
    assert [row.body for row in served.rows(conn_id)] == sent
    with InboxReader(InboxAddress(served.url, conn_id, SECRET)) as reader:
        small, large = reader.feed().deliveries
        found = [small.payload(), reader.fetch(large.id).payload()]
    assert [one["data"] for one in found] == [[{"markdown": r"a\ud83d"}]] * 2
    assert json.dumps(found, ensure_ascii=False).encode()


def test_large_bodies_are_fetched_one_by_one(served: ServedInbox) -> None:
    conn_id = fresh("secret")
    sizes = [INLINE_BODY_BYTES - 1, INLINE_BODY_BYTES, INLINE_BODY_BYTES + 1, 600_000]
    for size in sizes:
        assert served.deliver(conn_id, b'"' + b"x" * (size - 2) + b'"').status_code == 200
    records = served.read(conn_id).json()["deliveries"]
    assert [record["size"] for record in records] == sizes
    assert ["body" in record for record in records] == [True, True, False, False]
    for record in records:
        whole = served.http.get(f"/webdata/deliveries/{conn_id}/{record['id']}", headers=bearer(conn_id))
        assert whole.json()["body"] == "x" * (record["size"] - 2)


def test_one_delivery_belongs_to_its_connection(served: ServedInbox) -> None:
    mine, other = fill(served, 1), fill(served, 1)
    (record,) = served.read(mine).json()["deliveries"]
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
        answer = served.http.get(f"/webdata/deliveries/{conn_id}/{delivery_id}", headers=bearer(conn_id))
        assert (delivery_id, answer.status_code) == (delivery_id, status)


# What the deliveries of the filter table are: key, then body.
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
    ({"keys": ["K1"]}, "f"),
    ({"keys": ["k1", "k3"]}, "abg"),
    ({"keys": ["k"]}, ""),
    ({"keys": ["k%"]}, ""),
    ({"keys": ["k_"]}, ""),
    ({"job_ids": ["c1"]}, "ab"),
    ({"job_ids": ["c1", "j1"]}, "abd"),
    ({"monitor_ids": ["m2"]}, "c"),
    ({"keys": ["k2"], "job_ids": ["j1"], "monitor_ids": ["m1"]}, "abcd"),
    ({"events": ["monitor.check.completed"]}, "ac"),
    ({"events": ["check.completed"]}, "ac"),
    ({"events": ["page"]}, "b"),
    ({"events": ["monitor.page"]}, "b"),
    ({"events": ["Monitor.page"]}, "f"),
    ({"events": ["crawl.completed"]}, "de"),
    ({"events": ["completed"]}, "de"),
    ({"events": ["batch_scrape.completed"]}, "e"),
    ({"events": ["unheard.completed"]}, ""),
    ({"events": ["page", "completed"]}, "bde"),
    ({"events": ["check.completed"], "keys": ["k1"]}, "a"),
    ({"events": ["check.completed"], "keys": ["k1"], "job_ids": ["c2"]}, "ac"),
    ({"events": ["crawl.completed"], "monitor_ids": ["m1"]}, ""),
    ({"events": ["nothing"]}, ""),
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


def test_a_filtered_cursor_moves_on(served: ServedInbox) -> None:
    conn_id = fill(served, 3)
    answer = served.read(conn_id, job_id="none")
    assert job_ids_in(answer) == []
    assert job_ids_in(served.read(conn_id, after=answer.json()["cursor"])) == []


def test_received_after(served: ServedInbox) -> None:
    conn_id = fill(served, 3)
    moments = [record["received_at"] for record in served.read(conn_id).json()["deliveries"]]
    assert len(set(moments)) == 3
    for number, moment in enumerate(moments):
        later = (datetime.fromisoformat(moment) + timedelta(microseconds=1)).isoformat()
        zoned = datetime.fromisoformat(moment).astimezone(timezone(timedelta(hours=5))).isoformat()
        zulu = moment.replace("+00:00", "Z")
        for given, count in (
            (moment, 3 - number),
            (later, 2 - number),
            (zoned, 3 - number),
            (zulu, 3 - number),
        ):
            assert len(job_ids_in(served.read(conn_id, received_after=given))) == count
            found = served.http.post(
                f"/webdata/deliveries/{conn_id}/search",
                json={"received_after": given, "keys": None, "after": None, "limit": None},
                headers=bearer(conn_id),
            )
            assert len(job_ids_in(found)) == count


def test_a_waiting_reader_is_woken(served: ServedInbox) -> None:
    conn_id = fill(served, 1)
    cursor = served.read(conn_id, after="end").json()["cursor"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(served.read, conn_id, after=cursor, wait=30)
        while not served.inbox.feed._publisher._waiters:
            time.sleep(0.005)
        served.deliver(fresh("secret"), event(id="of another connection"))
        served.deliver(conn_id, event(id="late"))
        # Sooner than the wait would end, or the client gives up first.
        assert job_ids_in(waiting.result(25)) == ["late"]


def test_waiting_with_a_filter(served: ServedInbox) -> None:
    conn_id = fill(served, 1)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(served.read, conn_id, wait=30, job_id="wanted")
        while not served.inbox.feed._publisher._waiters:
            time.sleep(0.005)
        served.deliver(conn_id, event(id="unwanted"))
        served.deliver(conn_id, event(id="wanted"))
        assert job_ids_in(waiting.result(25)) == ["wanted"]


def test_a_wait_ends_without_news(served: ServedInbox) -> None:
    conn_id = fill(served, 1)
    answer = served.read(conn_id, after="end", wait=0.05)
    assert job_ids_in(answer) == []
    assert job_ids_in(served.read(conn_id, after=answer.json()["cursor"])) == []
    for wait in ("1e-05", "0.012345678901234567", "0", "30"):
        assert job_ids_in(served.read(conn_id, wait=wait)) == ["job-0"]


def test_readers_that_leave_are_forgotten(on_sqlite: ServedInbox) -> None:
    conn_id = fill(on_sqlite, 0)
    with httpx.Client(base_url=on_sqlite.url, timeout=0.2) as client:
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                client.get(f"/webdata/deliveries/{conn_id}?wait=30", headers=bearer(conn_id))
    deadline = time.monotonic() + 20
    while on_sqlite.inbox.feed._publisher._waiters and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not on_sqlite.inbox.feed._publisher._waiters


def test_many_readers_wait_at_once(on_sqlite: ServedInbox) -> None:
    """Waiting takes no thread: 50 readers are woken by one delivery while deliveries and reads go on."""
    conn_id = fill(on_sqlite, 0)
    with ThreadPoolExecutor(50) as pool:
        waiting = [pool.submit(on_sqlite.read, conn_id, wait=30) for _ in range(50)]
        while len(on_sqlite.inbox.feed._publisher._waiters) < 50:
            time.sleep(0.005)
        assert job_ids_in(on_sqlite.read(fill(on_sqlite, 2))) == ["job-0", "job-1"]
        on_sqlite.deliver(conn_id, event(id="late"))
        assert [job_ids_in(one.result(25)) for one in waiting] == [["late"]] * 50


def test_one_connection_does_not_take_all_places(
    on_sqlite: ServedInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_sqlite.application._deliveries, "_long_polls", Shares(10))
    greedy, modest = fill(on_sqlite, 0), fill(on_sqlite, 0)
    with ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(on_sqlite.read, greedy, wait=30) for _ in range(10)]
        while len(on_sqlite.inbox.feed._publisher._waiters) < 10:
            time.sleep(0.005)
        answer = on_sqlite.read(greedy, wait=30)
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
        assert job_ids_in(on_sqlite.read(greedy)) == []
        reading = pool.submit(on_sqlite.read, modest, wait=30)
        while len(on_sqlite.inbox.feed._publisher._waiters) < 11:
            time.sleep(0.005)
        for conn_id in (greedy, modest):
            on_sqlite.deliver(conn_id, event(id="late"))
        assert [job_ids_in(one.result(25)) for one in (*waiting, reading)] == [["late"]] * 11
        waiting = [pool.submit(on_sqlite.read, greedy, wait=0.01, after="end") for _ in range(10)]
        assert [job_ids_in(one.result(25)) for one in waiting] == [[]] * 10


def test_a_cursor_from_before_a_reset(served: ServedInbox) -> None:
    conn_id = fill(served, 1)
    end = served.read(conn_id, after="end").json()["cursor"]
    ahead = str(int(end) + 10**12)
    answers = [
        served.read(conn_id, after=ahead),
        served.read(conn_id, after=ahead, wait=30),
        served.http.post(
            f"/webdata/deliveries/{conn_id}/search", json={"after": ahead}, headers=bearer(conn_id)
        ),
    ]
    for answer in answers:
        assert answer.status_code == 410
        assert set(answer.json()) == {"error", "cursor"}
        assert job_ids_in(served.read(conn_id, after=answer.json()["cursor"])) == []


UNSIGNED = jwt.encode({}, "", algorithm="none").split(".")[0]


# name, connection, headers, allowed
def _tokens() -> list[tuple[str, str, dict[str, str], bool]]:
    now = time.time()
    good = tokens.issue(SECRET, "secret-t")
    header, claims, proof = good.split(".")
    foreign = tokens.issue(SECRET, "secret-u").split(".")[1]
    return [
        ("a token", "secret-t", bearer("secret-t"), True),
        ("the scheme in lower case", "secret-t", {"Authorization": f"bearer {good}"}, True),
        ("another scheme", "secret-t", {"Authorization": f"Basic {good}"}, False),
        ("no scheme", "secret-t", {"Authorization": good}, False),
        ("nothing", "secret-t", {}, False),
        ("empty", "secret-t", {"Authorization": ""}, False),
        ("the scheme alone", "secret-t", {"Authorization": "Bearer"}, False),
        ("the secret itself", "secret-t", {"Authorization": f"Bearer {SECRET}"}, False),
        ("the secret as in a delivery", "secret-t", {"X-WebData-Webhook-Secret": SECRET}, False),
        ("by another secret", "secret-t", bearer("secret-t", STRANGE), False),
        ("of another connection", "secret-t", bearer("secret-u"), False),
        (
            "with the claims of another",
            "secret-t",
            {"Authorization": f"Bearer {header}.{foreign}.{proof}"},
            False,
        ),
        ("without proof", "secret-t", {"Authorization": f"Bearer {header}.{claims}."}, False),
        ("with half of the proof", "secret-t", {"Authorization": f"Bearer {good[:-32]}"}, False),
        ("with another header", "secret-t", {"Authorization": f"Bearer {UNSIGNED}.{claims}.{proof}"}, False),
        ("that says it needs no proof", "secret-t", {"Authorization": f"Bearer {UNSIGNED}.{claims}."}, False),
        ("over for long", "secret-t", bearer("secret-t", now=now - 3600), False),
        ("good for too long", "secret-t", bearer("secret-t", lifetime=86400), False),
        ("no text", "secret-t", {"Authorization": "Bearer \u00e9\u00ff"}, False),
        ("rotation: the new secret", "rotating-t", bearer("rotating-t"), True),
        ("rotation: the previous secret", "rotating-t", bearer("rotating-t", PREVIOUS_SECRET), True),
        ("a connection that signs", "signed-t", bearer("signed-t", SIGNING_SECRET), True),
        ("both secrets: the one that no delivery shows", "both-t", bearer("both-t", SIGNING_SECRET), True),
        ("both secrets: what each delivery shows", "both-t", bearer("both-t"), False),
        ("an empty secret", "open-t", bearer("open-t", ""), False),
        ("a connection without secrets", "open-t", bearer("open-t"), False),
        ("no such connection", "unknown-t", bearer("unknown-t"), False),
    ]


@pytest.mark.parametrize("name", [row[0] for row in _tokens()])
def test_tokens(served: ServedInbox, name: str) -> None:
    # Tokens are good for minutes: those of the collection may be over by now.
    conn_id, headers, allowed = next(row[1:] for row in _tokens() if row[0] == name)
    encoded = [(header.encode(), value.encode("latin-1")) for header, value in headers.items()]
    path = f"/webdata/deliveries/{conn_id}"
    answers = [
        served.http.get(path, headers=encoded),
        served.http.get(f"{path}?limit=bad", headers=encoded),
        served.http.get(f"{path}/999999", headers=encoded),
        served.http.post(f"{path}/search", headers=encoded, json={}),
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


@pytest.mark.parametrize(("query", "named"), QUERIES, ids=[query[:40] for query, _ in QUERIES])
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


@pytest.mark.parametrize(("body", "named"), SEARCHES, ids=[repr(body[:40]) for body, _ in SEARCHES])
def test_malformed_searches(on_sqlite: ServedInbox, body: bytes, named: str) -> None:
    answer = on_sqlite.http.post(
        "/webdata/deliveries/secret-q/search", content=body, headers=bearer("secret-q")
    )
    assert answer.status_code == 400, answer.text
    assert named in answer.json()["error"]


def test_a_signed_connection_is_read_too(served: ServedInbox) -> None:
    conn_id, body = fresh("signed"), event(id="signed")
    served.deliver(conn_id, body, {SIGNATURE_HEADER: signature(body)})
    assert job_ids_in(served.read(conn_id, bearer(conn_id, SIGNING_SECRET))) == ["signed"]


def test_nothing_is_skipped_under_load(served: ServedInbox) -> None:
    """Eight senders, one reader that follows: each delivery is seen once."""
    conn_id = fresh("secret")
    ended = threading.Event()

    def send(sender: int) -> None:
        with httpx.Client(base_url=served.url, timeout=30) as client:
            for number in range(25):
                answer = client.post(
                    f"/webdata/inbox/{conn_id}/k",
                    content=event(id=f"{sender}-{number}"),
                    headers={"X-WebData-Webhook-Secret": SECRET},
                )
                assert answer.json() == {"status": "stored"}

    def follow() -> list[str]:
        seen: list[str] = []
        cursor = "0"
        while True:
            over = ended.is_set()
            answer = served.read(conn_id, after=cursor, limit=7)
            seen += job_ids_in(answer)
            cursor = answer.json()["cursor"]
            if over and not answer.json()["deliveries"]:
                return seen

    with ThreadPoolExecutor(9) as pool:
        following = pool.submit(follow)
        for sending in [pool.submit(send, sender) for sender in range(8)]:
            sending.result()
        ended.set()
        seen = following.result(30)
    assert sorted(seen) == sorted(f"{sender}-{number}" for sender in range(8) for number in range(25))
