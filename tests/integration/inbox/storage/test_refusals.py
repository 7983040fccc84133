# SPDX-License-Identifier: Apache-2.0
"""Counts of refused deliveries, by sender: bounded in rows, and at most one write per second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import anyio
import pytest
from airflow.observability.stats import Stats
from sqlalchemy import update

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.inbox_server.storage import refusals
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.inbox_server.storage.refusals import (
    COUNTED_WITHIN,
    MAX_COUNTS,
    MAX_SENDERS,
    OTHERS,
    Reason,
    Refusal,
    Refusals,
    counted_as,
    sender_of,
)
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import refusal
from tests.integration.inbox.storage.conftest import Database
from tests.support.metrics import recording
from tests.support.waiting import PATIENCE

CONN = "webdata_default"
SERVICE = "203.0.113.9 via 10.0.0.2"


def of(reason: Reason, conn_id: str = CONN, sender: str = SERVICE) -> Refusal:
    return Refusal(counted_as(conn_id), reason, sender)


def counts(store: DeliveryStore, *conn_ids: str) -> dict[tuple[str, str, str], int]:
    found = store.refusals(conn_ids or [CONN])
    return {(one.conn_id, one.reason, one.sender): one.number for one in found}


def test_they_are_read_by_connection_reason_and_sender(
    store: DeliveryStore, new: Callable[..., NewDelivery]
) -> None:
    before = datetime.now(timezone.utc)
    store.add_refusals({of("secret wrong"): 2, of("signature wrong"): 1})
    store.add_refusals(
        {of("secret wrong"): 3, of("secret wrong", sender="::1"): 1, of("secret wrong", "another"): 1}
    )
    store.add_refusals({of("secret wrong", "unread"): 1})
    assert counts(store, CONN, "another") == {
        (CONN, "secret wrong", SERVICE): 5,
        (CONN, "secret wrong", "::1"): 1,
        (CONN, "signature wrong", SERVICE): 1,
        ("another", "secret wrong", SERVICE): 1,
    }
    found = store.refusals([CONN])
    assert before <= found[-1].since < found[0].last <= datetime.now(timezone.utc)
    assert [one.last for one in found] == sorted((one.last for one in found), reverse=True)
    assert not any(one.is_before_accepted for one in found)

    store.add([new()])
    store.publish()
    store.add_refusals({of("secret wrong"): 1})
    assert [(one.sender, one.number, one.is_before_accepted) for one in store.refusals([CONN])] == [
        (SERVICE, 6, False),
        ("::1", 1, True),
        (SERVICE, 1, True),
    ]


def test_a_count_starts_anew_after_a_day_without_a_refusal(database: Database, store: DeliveryStore) -> None:
    store.add_refusals({of("secret wrong"): 5})
    with database.engine().begin() as connection:
        earlier = datetime.now(timezone.utc) - COUNTED_WITHIN - timedelta(minutes=1)
        connection.execute(update(refusal).values(since=earlier, refused_at=earlier))
    store.add_refusals({of("secret wrong"): 1})
    [found] = store.refusals([CONN])
    assert (found.number, found.since) == (1, found.last)


def test_senders_that_change_their_address_share_a_count(store: DeliveryStore) -> None:
    store.add_refusals({of("secret wrong", sender=f"::{number}"): 1 for number in range(MAX_SENDERS + 5)})
    store.add_refusals({of("secret wrong", sender="::0"): 1, of("secret wrong", sender="::ffff"): 1})
    found = counts(store)
    assert len(found) == MAX_SENDERS + 1
    assert (found[CONN, "secret wrong", "::0"], found[CONN, "secret wrong", OTHERS]) == (2, 6)


def test_concurrent_processes_lose_none(database: Database) -> None:
    stores = [database.store() for _ in range(4)]
    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(lambda store: [store.add_refusals({of("secret wrong"): 1}) for _ in range(5)], stores))
    assert [one.number for one in stores[0].refusals([CONN])] == [20]


def test_all_spellings_of_an_id_share_their_counts(store: DeliveryStore) -> None:
    for spelling in (CONN, CONN.upper(), "Webdata_Default"):
        store.add_refusals({of("secret wrong", spelling): 1})
    assert counts(store, CONN, CONN.upper()) == {(CONN, "secret wrong", SERVICE): 3}


def test_they_are_pruned_with_deliveries(store: DeliveryStore) -> None:
    store.add_refusals({of("secret wrong"): 1})
    store.prune(datetime.now(timezone.utc) - timedelta(minutes=1))
    assert len(counts(store)) == 1
    store.prune(datetime.now(timezone.utc) + timedelta(minutes=1))
    assert counts(store) == {}


@pytest.mark.parametrize(
    ("forwarded_for", "sender"),
    [
        ("", "10.0.0.2"),
        ("10.0.0.2", "10.0.0.2"),
        ("203.0.113.9", SERVICE),
        # A sender can claim the first ones.
        ("127.0.0.1, 203.0.113.9", SERVICE),
        ("203.0.113.9, <b>", "10.0.0.2"),
    ],
)
def test_the_sender_behind_a_proxy(forwarded_for: str, sender: str) -> None:
    assert sender_of("10.0.0.2", forwarded_for) == sender


class Counted:
    """Keeps what was stored, and in how many writes."""

    def __init__(self) -> None:
        self.writes: list[dict[Refusal, int]] = []
        self.is_down = False

    def __call__(self, counts: Mapping[Refusal, int]) -> None:
        self.writes.append(dict(counts))
        if self.is_down:
            raise StoreUnavailableError("the database is down")


async def written(store: Counted, number: int) -> None:
    with anyio.fail_after(PATIENCE):
        while len(store.writes) < number:
            await asyncio.sleep(0.01)


async def test_many_are_one_write_per_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "INTERVAL", 3600.0)
    store = Counted()
    counter = Refusals(store)
    for _ in range(1000):
        counter.add(of("secret wrong"))
    await written(store, 1)
    for _ in range(500):
        counter.add(of("secret wrong"))
        counter.add(of("signature missing"))
        await asyncio.sleep(0)
    assert store.writes == [{of("secret wrong"): 1000}]
    # What the interval holds back is stored at the end.
    await counter.close()
    assert store.writes[1:] == [{of("secret wrong"): 500, of("signature missing"): 500}]


async def test_a_write_has_few_counts_and_is_a_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "INTERVAL", 3600.0)
    store = Counted()
    counter = Refusals(store)
    with recording(Stats) as metrics:
        for number in range(MAX_COUNTS + 10):
            counter.add(of("secret wrong", sender=f"::{number}"))
        await written(store, 1)
        await counter.close()
    assert len(store.writes[0]) == MAX_COUNTS + 1
    assert store.writes[0][of("secret wrong", sender=OTHERS)] == 10
    assert metrics.calls == [
        (
            "count",
            "webdata.deliveries_refused",
            MAX_COUNTS + 10,
            {"conn_id": CONN, "reason": "secret_wrong"},
        )
    ]


async def test_a_database_that_is_down_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "INTERVAL", 0.0)
    store = Counted()
    counter = Refusals(store)
    store.is_down = True
    counter.add(of("secret wrong"))
    await written(store, 1)
    store.is_down = False
    counter.add(of("signature wrong"))
    await written(store, 2)
    await counter.close()
    assert store.writes == [{of("secret wrong"): 1}, {of("signature wrong"): 1}]
