# SPDX-License-Identifier: Apache-2.0
"""An Airflow without problems: a migrated database, a sandbox, an inbox, and a connection to both."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow import settings
from airflow.jobs.job import Job
from sqlalchemy import Engine, create_engine, func, select
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from airflow_provider_webdata.commands.doctor import checks
from airflow_provider_webdata.inbox_server import application
from airflow_provider_webdata.inbox_server.http import connections
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import delivery
from tests.integration.inbox.http.served_inbox import ServedInbox
from tests.support.fault_server import FaultServer, Step
from tests.support.service import CONNECTION_ID, SANDBOX_KEY, WEBHOOK_SECRET, connection_text
from tests.support.waiting import PATIENCE
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase

SIGNING_SECRET = "a-signing-secret-of-the-tests"
SECRETS = (SANDBOX_KEY, WEBHOOK_SECRET, SIGNING_SECRET)


class Database:
    """An Airflow database with a triggerer and a delivery."""

    def __init__(self, folder: Path, migrated: MigratedDatabase) -> None:
        migrated.copy_to(folder)
        self._path, self._copy = folder / "airflow.db", folder / "copy.db"
        self.engine = create_engine(f"sqlite:///{self._path}")
        now = datetime.now(timezone.utc)
        with Session(self.engine) as session:
            session.add(Job(job_type="TriggererJob", state="running", latest_heartbeat=now))
            session.flush()
            session.execute(Job.__table__.update().values(hostname="triggerer-1"))
            session.commit()
        body = b'{"type": "crawl.completed", "id": "c"}'
        DeliveryStore(self.engine).add([NewDelivery.from_body(CONNECTION_ID, None, body, now)])
        self._copy_file(self._path, self._copy)

    def restore(self) -> None:
        """Undo all changes."""
        self.engine.dispose()
        self._copy_file(self._copy, self._path)

    @staticmethod
    def _copy_file(source: Path, target: Path) -> None:
        with (
            contextlib.closing(sqlite3.connect(source)) as old,
            contextlib.closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)


class World:
    """The subjects of the doctor's checks; a test breaks one of them.

    :ivar conn_id: the checked connection.
    """

    def __init__(
        self, sandbox: SandboxServer, inbox: ServedInbox, engine: Engine, patch: pytest.MonkeyPatch
    ) -> None:
        self.sandbox, self.inbox, self.engine, self.patch = sandbox, inbox, engine, patch
        self.conn_id = CONNECTION_ID
        self.has_changed_database = False
        self._servers: list[FaultServer] = []
        self.connect()
        self.run_triggerer()

    @property
    def deliveries_here(self) -> dict[str, Any]:
        """The extras of a connection that uses the inbox."""
        url = self.inbox.url
        return {"webhook_url": url, "inbox_url": url, "webhook_secret": WEBHOOK_SECRET}

    def connect(self, url: str | None = None, key: str = SANDBOX_KEY, **extra: Any) -> None:
        """Set the connection; None removes an extra."""
        extras = {**self.deliveries_here, **extra}
        self.set_environment(connection_text(self.sandbox.url if url is None else url, key, **extras))

    def set_environment(self, connection: str) -> None:
        self.patch.setenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection)

    def serve(self, *steps: Step, **options: Any) -> FaultServer:
        server = FaultServer(steps, **options)
        self._servers.append(server)
        return server

    def run_triggerer(self, beat: datetime | None = None) -> None:
        """Set the last heartbeat of the triggerer, by default to now."""
        with self.engine.begin() as link:
            beat = beat or datetime.now(timezone.utc)
            link.execute(Job.__table__.update().values(latest_heartbeat=beat))

    def execute(self, statement: str) -> None:
        self.has_changed_database = True
        with self.engine.begin() as link:
            link.exec_driver_sql(statement)

    def count_deliveries(self) -> int | None:
        with contextlib.suppress(Exception), self.engine.connect() as link:
            return int(link.execute(select(func.count()).select_from(delivery)).scalar_one())
        return None

    def close(self) -> None:
        for server in self._servers:
            server.close()


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture(scope="module")
def database(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase
) -> Iterator[Database]:
    database = Database(tmp_path_factory.mktemp("doctor"), migrated_database)
    yield database
    database.engine.dispose()


@pytest.fixture(scope="module")
def shared_inbox(database: Database) -> Iterator[ServedInbox]:
    with ServedInbox(database.engine, application._gate) as inbox:
        yield inbox


@pytest.fixture
def world(
    shared_sandbox: SandboxServer,
    database: Database,
    shared_inbox: ServedInbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    engine = database.engine
    monkeypatch.setenv("AIRFLOW__WEBDATA__INBOX", "True")
    monkeypatch.setattr(checks, "REQUEST_SECONDS", PATIENCE)
    monkeypatch.setattr(settings, "engine", engine)
    monkeypatch.setattr(
        settings, "Session", scoped_session(sessionmaker(bind=engine, expire_on_commit=False))
    )
    monkeypatch.setattr(connections, "CACHE_SECONDS", 0.0)
    monkeypatch.setattr(connections, "LOOKUP_TIMEOUT", PATIENCE)
    world = World(shared_sandbox, shared_inbox, engine, monkeypatch)
    yield world
    world.close()
    if world.has_changed_database:
        database.restore()
    shared_sandbox.control.reset()
