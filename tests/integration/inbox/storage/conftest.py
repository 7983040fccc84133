"""Databases as Airflow uses them: SQLite in a file, and a PostgreSQL of our own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.utils.orm_event_handlers import setup_event_handlers
from sqlalchemy import Engine, create_engine, select

from airflow_provider_webdata.inbox.server.storage import database as limits
from airflow_provider_webdata.inbox.server.storage import feed
from airflow_provider_webdata.inbox.server.storage.records import NewDelivery
from airflow_provider_webdata.inbox.server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox.server.storage.tables import delivery, metadata
from airflow_provider_webdata.inbox.server.storage.writer import Writer
from tests.support.postgres import Postgres
from tests.support.waiting import PATIENCE

_names = itertools.count()


@dataclass
class Database:
    """A database that has the inbox's tables; `engine` makes one more pool of connections to it."""

    kind: str
    url: str
    _engines: list[Engine] = field(default_factory=list)

    def engine(self, url: str | None = None, **options: Any) -> Engine:
        engine = create_engine(url or self.url, **{"pool_pre_ping": True, **options})
        setup_event_handlers(engine)
        self._engines.append(engine)
        return engine

    def store(self, **options: Any) -> DeliveryStore:
        return DeliveryStore(self.engine(**options))

    def job_ids(self) -> list[str | None]:
        """What is stored, seen by a connection of its own."""
        with self._engines[0].connect() as connection:
            return list(connection.execute(select(delivery.c.job_id).order_by(delivery.c.id)).scalars())

    def close(self) -> None:
        for engine in self._engines:
            engine.dispose()


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that gets no processor for some seconds keeps its connection, and loses no answer."""
    longer = limits._LIMITS.bindparams(statement="600s", idle="600s")
    monkeypatch.setattr(limits, "_LIMITS", longer)
    monkeypatch.setattr(feed, "READ_TIMEOUT", PATIENCE)
    monkeypatch.setitem(Writer.__init__.__kwdefaults__, "timeout", PATIENCE)


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that a test may stop."""
    with Postgres() as server:
        yield server


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    yield from _with_tables(Database("sqlite", f"sqlite:///{tmp_path}/inbox.db"))


@pytest.fixture
def postgres_database(postgres: Postgres) -> Iterator[Database]:
    yield from _with_tables(Database("postgresql", postgres.create_database(f"inbox{next(_names)}")))


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    fixture = {"sqlite": "sqlite_database", "postgresql": "postgres_database"}[request.param]
    found: Database = request.getfixturevalue(fixture)
    return found


@pytest.fixture
def store(database: Database) -> DeliveryStore:
    return database.store()


def _with_tables(database: Database) -> Iterator[Database]:
    metadata.create_all(database.engine())
    yield database
    database.close()


NewOne = Callable[..., NewDelivery]


@pytest.fixture
def new() -> NewOne:
    """Makes deliveries, each unlike all others unless told otherwise."""
    numbers = itertools.count()

    def make(job_id: str | None = None, **changes: Any) -> NewDelivery:
        number = next(numbers)
        values = {
            "conn_id": "webdata_default",
            "key": f"key-{number}",
            "dedupe": f"{number:064x}",
            "event": "monitor.page",
            "operation": "monitor",
            "name": "page",
            "job_id": job_id or f"job-{number}",
            "monitor_id": "monitor-1",
            "page_url": None,
            "success": True,
            "body": b'{"type": "monitor.page"}',
            "received_at": datetime.now(timezone.utc),
        }
        return NewDelivery(**{**values, **changes})

    return make
