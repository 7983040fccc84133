# SPDX-License-Identifier: Apache-2.0
"""The store: each delivery is kept once, in order, and found by its connection alone."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from sqlalchemy import event, select, text

from airflow_provider_webdata.inbox.envelope import same_event, split_event
from airflow_provider_webdata.inbox_server.storage import store as stores
from airflow_provider_webdata.inbox_server.storage.errors import CursorPastEndError, DeliveryNotFoundError
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, NewDelivery, StoredPage
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import delivery, metadata

from .conftest import Database, NewOne

ALL = DeliveryFilter()
CONN = "webdata_default"
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def read_all(store: DeliveryStore, wanted: DeliveryFilter = ALL, after: int = 0, limit: int = 2) -> list[str]:
    """Return the job ids of all pages."""
    found: list[str] = []
    page = StoredPage([], after, more=True)
    while page.more:
        page = store.read(CONN, wanted, page.cursor, limit)
        found += [delivery.job_id or "" for delivery in page.deliveries]
    return found


# batches of deliveries, by name; which of them are new
REPETITIONS = [
    (["a"], [[True]]),
    (["aa"], [[True, False]]),
    (["aba", "ba"], [[True, True, False], [False, False]]),
    (["ab", "bc", "cd"], [[True, True], [False, True], [False, True]]),
    (["abcabcabc"], [[True, True, True, False, False, False, False, False, False]]),
]


@pytest.mark.rule("delivery-replay")
def test_a_repetition_is_stored_once(store: DeliveryStore, new: NewOne) -> None:
    assert store.add([]) == []
    for batches, results in REPETITIONS:
        one_of_each = {letter: new(letter) for letter in "abcd"}
        before = store.end()
        assert [store.add([one_of_each[letter] for letter in batch]) for batch in batches] == results
        assert read_all(store, after=before) == list(dict.fromkeys("".join(batches)))


@pytest.mark.rule("envelope-webhook-id")
def test_an_equal_body_is_a_new_event_after_the_repetitions_of_the_first(store: DeliveryStore) -> None:
    """Such as the same approval on each day. An id of the event identifies it at any time."""

    def sent(minutes: float, **more: str) -> NewDelivery:
        body = json.dumps({"approved": True, **more}).encode()
        return NewDelivery.from_body("webdata_default", "approval", body, NOON + timedelta(minutes=minutes))

    assert store.add([sent(0), sent(0, webhookId="w")]) == [True, True]
    assert store.add([sent(29)]) == [False]
    later = [sent(31), sent(31), sent(31, webhookId="w")]
    with ThreadPoolExecutor(4) as senders:
        added = [one for results in senders.map(store.add, [later] * 4) for one in results]
    assert added.count(True) == 1
    assert store.add([sent(60)]) == [False]
    assert store.add([sent(62)]) == [True]
    assert len(read_all(store)) == 4


def test_the_same_identity_for_another_connection(store: DeliveryStore, new: NewOne) -> None:
    one = new("one", dedupe="d" * 64)
    batch = [one, new("two", dedupe="d" * 64, conn_id="WEBDATA_DEFAULT"), one]
    assert store.add(batch) == [True, True, False]
    assert read_all(store) == ["one"]


def test_connections_with_deliveries(
    store: DeliveryStore, new: NewOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["b", "a/b", "é", "B", "a"]
    assert store.conn_ids() == []
    store.add([new(str(number), conn_id=name) for number in range(3) for name in names])
    assert sorted(store.conn_ids()) == sorted(names)
    monkeypatch.setattr(stores, "MAX_CONNECTIONS", 3)
    assert len(set(store.conn_ids()) & set(names)) == 3


def test_time_of_the_last_delivery(database: Database, new: NewOne) -> None:
    """Unpublished deliveries count, and the query publishes nothing."""
    store = database.store()
    assert store.last_received(CONN) is None
    store.add([new(received_at=NOON - timedelta(days=1)), new(received_at=NOON, conn_id="another")])
    assert store.last_received(CONN) == NOON - timedelta(days=1)
    store.publish()
    store.add([new(received_at=NOON)])
    assert store.last_received(CONN) == NOON
    store.publish()
    assert (store.last_received(CONN), store.last_received("another")) == (NOON, NOON)
    store.add([new(received_at=NOON + timedelta(days=1))])
    engine = database.engine()
    pending = "SELECT count(*) FROM webdata_inbox_delivery WHERE position IS NULL"
    with engine.connect() as connection:
        before = connection.exec_driver_sql(pending).scalar()
        assert store.last_received(CONN) == NOON + timedelta(days=1)
        assert connection.exec_driver_sql(pending).scalar() == before


def test_revision_of_the_tables(database: Database) -> None:
    store = database.store()
    assert store.revision() is None
    with database.engine().begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version_webdata (version_num VARCHAR(32))")
    assert store.revision() is None
    with database.engine().begin() as connection:
        connection.exec_driver_sql("INSERT INTO alembic_version_webdata VALUES ('4c1f0a7d9b21')")
    assert store.revision() == "4c1f0a7d9b21"
    with database.engine().begin() as connection:
        connection.exec_driver_sql("DROP TABLE webdata_asset_event")
    assert store.revision() is None


def test_every_field_comes_back(database: Database, store: DeliveryStore, new: NewOne) -> None:
    full = new(
        "jöb",
        key="k~1",
        event="page",
        operation=None,
        name="page",
        monitor_name="prices",
        dag_id="shop",
        success=None,
        body=b"\x00\xff{}",
    )
    bare = new(key=None, event=None, operation=None, name=None, monitor_id=None, success=False)
    store.add([full, bare])
    first, second = store.read(CONN, ALL, 0, 10).deliveries
    for stored, sent in ((first, full), (second, bare)):
        for name in ("conn_id", "key", "body", "received_at"):
            assert getattr(stored, name) == getattr(sent, name), name
        for name in ("event", "job_id", "monitor_id", "success"):
            assert getattr(stored, name) == getattr(sent.envelope, name), name
        assert stored.size == len(sent.body)
    with database.engine().connect() as connection:
        rows = connection.execute(select(delivery).order_by(delivery.c.id)).all()
    for row, sent in zip(rows, (full, bare), strict=True):
        assert (row.dedupe, row.operation) == (sent.dedupe, sent.envelope.operation or "")
        for name in ("name", "monitor_name", "dag_id", "is_meaningful", "facts"):
            assert getattr(row, name) == getattr(sent.envelope, name), name
    assert first.received_at.tzinfo is timezone.utc
    assert store.get(CONN, first.id) == first
    assert store.get(None, first.id) == first
    assert store.get("another", first.id) is None
    assert store.get(CONN, 999) is None


FILTERS = [
    (ALL, "abcde"),
    (DeliveryFilter(keys=("k1",)), "ab"),
    (DeliveryFilter(keys=("K1",)), ""),
    (DeliveryFilter(keys=("k", "k%", "k_")), ""),
    (DeliveryFilter(keys=("k1", "k3", "none")), "abd"),
    (DeliveryFilter(job_ids=("c", "e")), "ce"),
    (DeliveryFilter(monitor_ids=("m2",)), "cd"),
    (DeliveryFilter(keys=("k1",), job_ids=("c",), monitor_ids=("m2",)), "abcd"),
    (DeliveryFilter(page_urls=("https://p.example/k2",)), "c"),
    (DeliveryFilter(page_urls=("https://p.example/K2",)), ""),
    (DeliveryFilter(page_urls=("https://p.example/k2",), job_ids=("e",)), "ce"),
    (DeliveryFilter(events=("monitor.page",)), "ac"),
    (DeliveryFilter(events=("page",)), "ace"),
    (DeliveryFilter(events=("crawl.page",)), "ce"),
    (DeliveryFilter(events=("check.completed", "monitor.page")), "abcd"),
    (DeliveryFilter(keys=("k1",), events=("page",)), "a"),
    (DeliveryFilter(received_after=NOON), "cde"),
    (DeliveryFilter(received_after=NOON + timedelta(microseconds=1)), "de"),
    (DeliveryFilter(received_after=NOON.astimezone(timezone(timedelta(hours=9)))), "cde"),
    (DeliveryFilter(keys=("k1",), received_after=NOON), ""),
    (DeliveryFilter(keys=(*(f"x{n}" for n in range(999)), "k1")), "ab"),
]


def test_filters(store: DeliveryStore, new: NewOne) -> None:
    rows = [
        # job, key, event, monitor, minutes from noon
        ("a", "k1", "monitor.page", "m1", -2),
        ("b", "k1", "monitor.check.completed", "m1", -1),
        ("c", "k2", "page", "m2", 0),
        ("d", "k3", "check.completed", "m2", 1),
        ("e", None, "crawl.page", None, 2),
    ]
    batch = []
    for job, key, kind, monitor, minutes in rows:
        operation, name = split_event(kind)
        at = NOON + timedelta(minutes=minutes)
        batch.append(
            new(
                job,
                key=key,
                event=kind,
                operation=operation,
                name=name,
                monitor_id=monitor,
                page_url=key and f"https://p.example/{key}",
                received_at=at,
            )
        )
    store.add(batch)
    for wanted, found in FILTERS:
        assert "".join(read_all(store, wanted)) == found, wanted
        assert "".join(reversed([d.job_id or "" for d in store.newest(CONN, wanted, 10)])) == found, wanted
        paged, before = "", None
        while page := store.newest(CONN, wanted, 2, before):
            paged, before = paged + "".join(d.job_id or "" for d in page), page[-1].position
        assert paged == found[::-1], wanted


# seconds from now; the newest deliveries in between
PERIODS = [(None, 0, "cba"), (None, -1, "ba"), (0, 0, "c"), (-1, 1, "dcb"), (1, -1, ""), (None, 100, "dcba")]


def test_newest_of_a_period(store: DeliveryStore, new: NewOne) -> None:
    now = datetime.now(timezone.utc)
    at = [now + timedelta(seconds=seconds) for seconds in range(-2, 2)]
    store.add([new(job, received_at=moment) for job, moment in zip("abcd", at, strict=True)])
    for after, before, found in PERIODS:
        since = None if after is None else now + timedelta(seconds=after)
        wanted = DeliveryFilter(received_after=since, received_before=now + timedelta(seconds=before))
        assert "".join(d.job_id or "" for d in store.newest(CONN, wanted, 10)) == found, (after, before)


EVENTS = [
    prefix + name
    for prefix in ("", "crawl.", "batch_scrape.", "extract.", "agent.", "monitor.", "Monitor.", "other.")
    for name in ("started", "page", "completed", "check.completed", "page.page")
]


@pytest.mark.rule("event-names")
def test_the_database_and_readers_agree_on_events(store: DeliveryStore, new: NewOne) -> None:
    bodies = [b'{"type": "%s"}' % kind.encode() for kind in EVENTS]
    store.add([NewDelivery.from_body(CONN, None, body, NOON) for body in bodies])
    for asked in EVENTS:
        found = {d.event for d in store.read(CONN, DeliveryFilter(events=(asked,)), 0, 1000).deliveries}
        assert found == {kind for kind in EVENTS if same_event(asked, kind)}, asked


def test_a_cursor_passes_filtered_deliveries(sqlite_store: DeliveryStore, new: NewOne) -> None:
    store = sqlite_store
    wanted = DeliveryFilter(job_ids=("a", "b"))
    store.add([new("x"), new("a"), new("y"), new("b"), new("z")])
    first = store.read(CONN, wanted, 0, 1)
    assert [d.job_id for d in first.deliveries] == ["a"]
    assert first.more
    assert first.cursor == first.deliveries[0].position
    second = store.read(CONN, wanted, first.cursor, 1)
    assert [d.job_id for d in second.deliveries] == ["b"]
    assert not second.more
    assert second.cursor == store.end() > (second.deliveries[0].position or 0)
    assert store.read(CONN, wanted, second.cursor, 1) == StoredPage([], second.cursor, more=False)


def test_an_empty_inbox(store: DeliveryStore) -> None:
    assert store.end() == 0
    assert store.read(CONN, ALL, 0, 10) == StoredPage([], 0, more=False)
    assert store.publish() == 0
    assert store.changes(0, {CONN})[1] == {}
    with pytest.raises(CursorPastEndError) as caught:
        store.read(CONN, ALL, 1, 10)
    assert caught.value.end == 0


def test_changes_name_the_connections(store: DeliveryStore, new: NewOne) -> None:
    store.add([new(conn_id="a")])
    start = store.end()
    store.add([new(conn_id="b"), new(conn_id="c"), new(conn_id="b")])
    assert store.has_news(start)
    end, newest = store.changes(start, {"a", "b", "c"})
    assert newest.keys() == {"b", "c"}
    assert max(newest.values()) == end == store.end()
    assert store.changes(start, {"a", "b"})[1].keys() == {"b"}
    assert not store.has_news(end)


def test_pruning_frees_no_positions_and_ids(store: DeliveryStore, new: NewOne) -> None:
    later = datetime.now(timezone.utc) + timedelta(days=1)
    seen: list[tuple[int, int]] = []
    for _ in range(3):
        store.add([new(), new()])
        seen += [(d.id, d.position or 0) for d in store.read(CONN, ALL, 0, 10).deliveries]
        assert store.prune(later) == 2
    ids, positions = zip(*seen, strict=True)
    assert len(seen) == 6
    assert list(ids) == sorted(set(ids))
    assert list(positions) == sorted(set(positions))
    assert store.read(CONN, ALL, positions[-1], 10).cursor == positions[-1]


def test_a_cursor_from_before_a_restored_backup(
    database: Database, store: DeliveryStore, new: NewOne
) -> None:
    store.add([new() for _ in range(5)])
    cursor = store.end()
    engine = database.engine()
    metadata.drop_all(engine)
    metadata.create_all(engine)
    with pytest.raises(CursorPastEndError):
        store.read(CONN, ALL, cursor, 10)
    store.add([new("after")])
    assert read_all(store, after=cursor) == ["after"]


def test_replay(store: DeliveryStore, new: NewOne) -> None:
    old = NOON - timedelta(days=1)
    first, second = new("a", received_at=old, body=b"[1]"), new("b", received_at=old)
    store.add([first, second])
    one, two = store.read(CONN, ALL, 0, 10).deliveries
    cursor = store.end()
    copies = store.replay([two.id, one.id, two.id])
    assert list(copies) == [two.id, one.id]
    again = store.read(CONN, DeliveryFilter(received_after=NOON), cursor, 10).deliveries
    assert [(d.job_id, d.replay_of, d.id) for d in again] == [
        ("b", two.id, copies[two.id]),
        ("a", one.id, copies[one.id]),
    ]
    assert again[1].body == b"[1]"
    # The original still identifies a repetition by the service, and can be replayed again.
    assert store.add([first]) == [False]
    assert store.replay([one.id, copies[one.id]]).keys() == {one.id, copies[one.id]}


def test_replay_of_a_missing_delivery(sqlite_store: DeliveryStore, new: NewOne) -> None:
    store = sqlite_store
    store.add([new()])
    cursor = store.end()
    with pytest.raises(DeliveryNotFoundError, match="the inbox has no delivery 77, 88"):
        store.replay([1, 77, 88])
    assert store.end() == cursor


def test_pruning_deletes_the_oldest_first(store: DeliveryStore, new: NewOne) -> None:
    ages = [1, 5, 2, 4, 3]
    store.add([new(f"{age}", received_at=NOON - timedelta(days=age)) for age in ages])
    before = NOON - timedelta(days=2)
    assert [store.count_before(before, most) for most in (2, 3, 4)] == [2, 3, 3]
    assert store.prune(before, limit=2) == 2
    assert read_all(store) == ["1", "2", "3"]
    assert store.prune(before, limit=2) == 1
    assert store.prune(before, limit=2) == 0
    assert read_all(store) == ["1", "2"]


def test_one_transaction_for_a_batch(sqlite_database: Database, new: NewOne) -> None:
    engine = sqlite_database.engine()
    store = DeliveryStore(engine)
    commits = itertools.count()
    event.listen(engine, "commit", lambda _: next(commits))
    store.add([new() for _ in range(150)])
    assert next(commits) == 1


def test_any_number_gets_its_positions(postgres_database: Database, new: NewOne) -> None:
    """Positions are assigned in rounds of 1,000 rows."""
    store = postgres_database.store()
    counts = (1, 999, 1000, 1001, 2500)
    for count in counts:
        store.add([new() for _ in range(count)])
        assert store.publish() == count
        assert store.publish() == 0
    with postgres_database.engine().connect() as connection:
        found = connection.execute(
            text("SELECT count(DISTINCT position), min(position) > 0 FROM webdata_inbox_delivery")
        ).one()
    assert tuple(found) == (sum(counts), True)
