"""Retention: old deliveries are deleted in small transactions, and an outage only postpones that."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from unittest import mock

import pytest
from sqlalchemy import event

from airflow_provider_webdata.inbox_server.storage import retention
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox
from airflow_provider_webdata.inbox_server.storage.retention import prune_all
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.support.waiting import until

from .conftest import Database, NewOne


def aged(days: float) -> datetime:
    return datetime.now(timezone.utc) - timedelta(days=days)


@contextlib.asynccontextmanager
async def pruning(store: DeliveryStore, days: float) -> AsyncIterator[None]:
    with mock.patch.multiple(retention, INTERVAL=0.02, FIRST_WITHIN=0.02):
        task = asyncio.create_task(retention.keep_pruned(store, days))
        yield
        assert not task.done()
        task.cancel()


def test_deletion_in_small_transactions(database: Database, new: NewOne) -> None:
    engine = database.engine()
    store = DeliveryStore(engine)
    store.add([new(received_at=aged(10)) for _ in range(1100)])
    store.add([new("young", received_at=aged(1))])
    deleted: list[int] = []

    @event.listens_for(engine, "after_cursor_execute")
    def _(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.startswith("DELETE"):
            deleted.append(cursor.rowcount)  # type: ignore[attr-defined]

    assert prune_all(store, aged(5)) == 1100
    assert max(deleted) <= 500
    assert database.job_ids() == ["young"]


async def test_pruning_repeats(sqlite_database: Database, new: NewOne) -> None:
    store = sqlite_database.store()
    store.add([new("kept", received_at=aged(1))])
    async with pruning(store, days=5):
        for _ in range(2):
            store.add([new("old", received_at=aged(6))])
            await until(lambda: sqlite_database.job_ids() == ["kept"])


async def test_pruning_survives_an_outage(
    sqlite_database: Database, new: NewOne, caplog: pytest.LogCaptureFixture
) -> None:
    store, engine = sqlite_database.store(), sqlite_database.engine()
    metadata.drop_all(engine)
    async with pruning(store, days=5):
        await until(
            lambda: (
                "Failed to delete old deliveries; retrying later: the inbox's tables are missing"
                in caplog.text
            )
        )
        metadata.create_all(engine)
        store.add([new("kept"), new("old", received_at=aged(6))])
        await until(lambda: sqlite_database.job_ids() == ["kept"])


@pytest.mark.parametrize(("days", "running"), [(0, 0), (0.5, 1)])
async def test_an_inbox_starts_pruning_once(sqlite_database: Database, days: float, running: int) -> None:
    """Zero days keep all deliveries."""
    inbox = Inbox(sqlite_database.engine())
    inbox.start_pruning(days)
    inbox.start_pruning(days)
    named = [task for task in asyncio.all_tasks() if task.get_name() == "webdata-inbox-pruning"]
    assert len(named) == running
    await inbox.close()
    assert all(task.done() for task in named)
