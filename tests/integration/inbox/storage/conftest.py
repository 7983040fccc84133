# SPDX-License-Identifier: Apache-2.0
"""Databases as Airflow uses them: SQLite in a file, and a private PostgreSQL."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.utils.orm_event_handlers import setup_event_handlers
from sqlalchemy import Connection, Engine, create_engine, insert, select, text

from airflow_provider_webdata.airflow_db import database as limits
from airflow_provider_webdata.inbox.envelope import Envelope
from airflow_provider_webdata.inbox_server.storage import feed, writer
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import delivery, metadata
from tests.support.postgres import Postgres
from tests.support.waiting import PATIENCE


@dataclass
class Database:
    """A database with the inbox's tables."""

    kind: str
    url: str
    _engines: list[Engine] = field(default_factory=list)

    def engine(self, url: str | None = None, **options: Any) -> Engine:
        """Return an additional pool of connections."""
        engine = create_engine(url or self.url, **{"pool_pre_ping": True, **options})
        setup_event_handlers(engine)
        self._engines.append(engine)
        return engine

    def store(self, **options: Any) -> DeliveryStore:
        return DeliveryStore(self.engine(**options))

    def job_ids(self) -> list[str | None]:
        """Return the committed job ids, read through a separate connection."""
        engine = self._engines[0] if self._engines else self.engine()
        with engine.connect() as connection:
            return list(connection.execute(select(delivery.c.job_id).order_by(delivery.c.id)).scalars())

    def close(self) -> None:
        for engine in self._engines:
            engine.dispose()


def insert_row(connection: Connection, new: NewDelivery) -> None:
    """Insert a delivery as another process does, in a transaction that the caller ends."""
    row = {
        "conn_id": new.conn_id,
        "dedupe": new.dedupe,
        "operation": new.envelope.operation or "",
        "job_id": new.envelope.job_id,
        "received_at": new.received_at,
        "size": len(new.body),
        "body": new.body,
    }
    connection.execute(insert(delivery).values(row))


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep connections and answers of a test that gets no processor for some seconds."""
    longer = limits._LIMITS.bindparams(statement="600s", idle="600s")
    monkeypatch.setattr(limits, "_LIMITS", longer)
    monkeypatch.setattr(feed, "READ_TIMEOUT", PATIENCE)
    monkeypatch.setattr(writer, "STORE_TIMEOUT", PATIENCE)


@pytest.fixture
def short_lock_waits(slow_machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up a lock sooner that another transaction of the test holds."""
    monkeypatch.setattr(limits, "_LIMITS", limits._LIMITS.bindparams(lock="100ms"))
    monkeypatch.setattr(limits, "FILE_LOCK_SECONDS", 0.1)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "inbox.db"
    engine = create_engine(f"sqlite:///{path}")
    metadata.create_all(engine)
    engine.dispose()
    return path


@pytest.fixture
def sqlite_database(sqlite_template: Path, tmp_path: Path) -> Iterator[Database]:
    path = tmp_path / "inbox.db"
    shutil.copy(sqlite_template, path)
    database = Database("sqlite", f"sqlite:///{path}")
    yield database
    database.close()


@pytest.fixture(scope="session")
def postgres_url(postgres: Postgres) -> str:
    return postgres.create_database("inbox_storage")


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    """The session's database with new tables: whatever an earlier test left there is gone."""
    database = Database("postgresql", postgres_url)
    engine = database.engine()
    with engine.begin() as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        connection.execute(text(f"{others} AND pid <> pg_backend_pid()"))
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    metadata.create_all(engine)
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """Both databases, for what depends on them; all other tests take SQLite."""
    fixture = {"sqlite": "sqlite_database", "postgresql": "postgres_database"}[request.param]
    found: Database = request.getfixturevalue(fixture)
    return found


@pytest.fixture
def store(database: Database) -> DeliveryStore:
    return database.store()


@pytest.fixture
def sqlite_store(sqlite_database: Database) -> DeliveryStore:
    return sqlite_database.store()


NewOne = Callable[..., NewDelivery]


@pytest.fixture
def new() -> NewOne:
    """Build deliveries that differ from each other, except in the given fields."""
    numbers = itertools.count()

    def build(job_id: str | None = None, **changes: Any) -> NewDelivery:
        number = next(numbers)
        values = {
            "conn_id": "webdata_default",
            "key": f"key-{number}",
            "dedupe": f"{number:064x}",
            "body": b'{"type": "monitor.page"}',
            "received_at": datetime.now(timezone.utc),
        }
        read: dict[str, Any] = {
            "event": "monitor.page",
            "operation": "monitor",
            "name": "page",
            "job_id": job_id or f"job-{number}",
            "monitor_id": "monitor-1",
            "success": True,
        }
        of_envelope = {one.name for one in fields(Envelope)} & changes.keys()
        envelope = Envelope(**{**read, **{name: changes.pop(name) for name in of_envelope}})
        return NewDelivery(**{**values, **changes, "envelope": envelope})

    return build
