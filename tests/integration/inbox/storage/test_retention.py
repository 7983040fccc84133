# SPDX-License-Identifier: Apache-2.0
"""Retention: old deliveries are deleted in small transactions, and an outage only postpones that."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from unittest import mock

import pytest
from airflow import settings
from sqlalchemy import event

from airflow_provider_webdata import plugin
from airflow_provider_webdata.inbox_server.storage import retention
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox
from airflow_provider_webdata.inbox_server.storage.retention import prune_all
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.support.waiting import wait_until

from .conftest import Database, NewOne


def aged(days: float) -> datetime:
    return datetime.now(timezone.utc) - timedelta(days=days)


@contextlib.contextmanager
def pruning(store: DeliveryStore, days: float) -> Iterator[None]:
    closing = threading.Event()
    with mock.patch.multiple(retention, INTERVAL=0.02, FIRST_WITHIN=0.02):
        thread = threading.Thread(target=retention.keep_pruned, args=(store, days, closing))
        thread.start()
        try:
            yield
            assert thread.is_alive()
        finally:
            closing.set()
            thread.join()


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


def test_pruning_repeats(sqlite_database: Database, new: NewOne) -> None:
    store = sqlite_database.store()
    store.add([new("kept", received_at=aged(1))])
    with pruning(store, days=5):
        for _ in range(2):
            store.add([new("old", received_at=aged(6))])
            assert wait_until(lambda: sqlite_database.job_ids() == ["kept"])


def test_pruning_survives_an_outage(
    sqlite_database: Database, new: NewOne, caplog: pytest.LogCaptureFixture
) -> None:
    store, engine = sqlite_database.store(), sqlite_database.engine()
    metadata.drop_all(engine)
    with pruning(store, days=5):
        assert wait_until(
            lambda: (
                "Failed to delete old deliveries; retrying later: the inbox's tables are missing"
                in caplog.text
            )
        )
        metadata.create_all(engine)
        store.add([new("kept"), new("old", received_at=aged(6))])
        assert wait_until(lambda: sqlite_database.job_ids() == ["kept"])


@pytest.mark.parametrize(("days", "running"), [(0, 0), (0.5, 1)])
async def test_an_inbox_prunes_until_it_is_closed(
    sqlite_database: Database, days: float, running: int
) -> None:
    """Zero days keep all deliveries."""
    inbox, others = Inbox(sqlite_database.engine()), set(threading.enumerate())
    inbox.start_pruning(days)
    started = set(threading.enumerate()) - others
    assert len(started) == running
    await inbox.close()
    for thread in started:
        thread.join()


def test_an_api_server_without_requests_to_the_inbox_prunes(
    sqlite_database: Database, new: NewOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin opens the inbox when the server starts."""
    engine = sqlite_database.engine()
    monkeypatch.setattr(settings, "engine", engine)
    monkeypatch.setattr(plugin, "inbox", plugin._Lazy(plugin.inbox.module, plugin.inbox.factory))
    sqlite_database.store().add([new("kept"), new("old", received_at=aged(60))])
    with mock.patch.multiple(retention, INTERVAL=0.02, FIRST_WITHIN=0.02):
        assert plugin.open_inbox(None) is None
        try:
            assert wait_until(lambda: sqlite_database.job_ids() == ["kept"])
        finally:
            asyncio.run(plugin.inbox.open().inbox.close())
