"""Counts of refused deliveries: they start anew with each accepted delivery, and cost at most a write per second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import anyio
import pytest
from sqlalchemy import func, select

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.inbox_server.storage import refusals
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.inbox_server.storage.refusals import Reason, Refusal, Refusals, counted_as
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import refusal
from tests.integration.inbox.storage.conftest import Database
from tests.support.waiting import PATIENCE

CONN = "webdata_default"


def of(reason: Reason, conn_id: str = CONN) -> Refusal:
    return Refusal(conn_id, counted_as(conn_id), reason)


def counts(store: DeliveryStore, conn_id: str = CONN) -> dict[str, int]:
    return {reason: count for reason, (count, _) in store.refusals(conn_id).items()}


def test_they_start_anew_with_each_accepted_delivery(
    store: DeliveryStore, new: Callable[..., NewDelivery]
) -> None:
    before = datetime.now(timezone.utc)
    store.add_refusals({of("secret wrong"): 2, of("signature wrong"): 1})
    store.add_refusals({of("secret wrong"): 3, of("secret missing", "another"): 1})
    assert counts(store) == {"secret wrong": 5, "signature wrong": 1}
    assert counts(store, "another") == {"secret missing": 1}
    assert before <= store.refusals(CONN)["secret wrong"][1] <= datetime.now(timezone.utc)

    store.add([new()])
    assert counts(store) == {}
    assert counts(store, "another") == {"secret missing": 1}
    store.add_refusals({of("secret wrong"): 1})
    assert counts(store) == {"secret wrong": 1}
    store.add_refusals({of("secret wrong"): 1})
    assert counts(store) == {"secret wrong": 2}


def test_concurrent_processes_lose_none(database: Database) -> None:
    stores = [database.store() for _ in range(4)]
    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(lambda store: [store.add_refusals({of("secret wrong"): 1}) for _ in range(5)], stores))
    assert counts(stores[0]) == {"secret wrong": 20}


def test_all_spellings_of_an_id_share_their_counts(database: Database, store: DeliveryStore) -> None:
    for spelling in (CONN, CONN.upper(), "Webdata_Default"):
        store.add_refusals({of("secret wrong", spelling): 1})
    assert counts(store) == {"secret wrong": 3}
    with database.engine().connect() as connection:
        assert connection.execute(select(func.count()).select_from(refusal)).scalar_one() == 1


def test_they_are_pruned_with_deliveries(store: DeliveryStore) -> None:
    store.add_refusals({of("secret wrong"): 1})
    store.prune(datetime.now(timezone.utc) - timedelta(minutes=1))
    assert counts(store) == {"secret wrong": 1}
    store.prune(datetime.now(timezone.utc) + timedelta(minutes=1))
    assert counts(store) == {}


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
