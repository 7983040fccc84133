"""An Airflow in which all is right: a migrated database, a sandbox, an inbox, and a connection to both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow import settings
from airflow.jobs.job import Job
from sqlalchemy import Engine, create_engine, func, select
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from airflow_provider_webdata.inbox.server import application
from airflow_provider_webdata.inbox.server.http import connections
from airflow_provider_webdata.inbox.server.storage.tables import delivery
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.sandbox.server import SandboxServer
from airflow_provider_webdata.testing.migrated_database import MigratedDatabase
from tests.integration.inbox.http.served_inbox import ServedInbox
from tests.support.fault_server import FaultServer, Step
from tests.support.service import CONNECTION_ID, SANDBOX_KEY, WEBHOOK_SECRET, connection_text
from tests.support.waiting import PATIENCE

SIGNING_SECRET = "a-signing-secret-of-the-tests"
SECRETS = (SANDBOX_KEY, WEBHOOK_SECRET, SIGNING_SECRET)


class World:
    """What the doctor looks at; a test puts one thing of it out of order.

    :ivar conn_id: the connection that is looked at.
    """

    def __init__(
        self, sandbox: SandboxServer, inbox: ServedInbox, engine: Engine, patch: pytest.MonkeyPatch
    ) -> None:
        self.sandbox, self.inbox, self.engine, self.patch = sandbox, inbox, engine, patch
        self.conn_id = CONNECTION_ID
        self._servers: list[FaultServer] = []
        self.connect()
        self.run_triggerer()
        body = b'{"type": "crawl.completed", "id": "c"}'
        assert inbox.deliver(CONNECTION_ID, body, {SECRET_HEADER: WEBHOOK_SECRET}).status_code == 200

    @property
    def deliveries_here(self) -> dict[str, Any]:
        """The extras by which deliveries come to the inbox."""
        url = self.inbox.url
        return {"webhook_url": url, "inbox_url": url, "webhook_secret": WEBHOOK_SECRET}

    def connect(self, url: str | None = None, key: str = SANDBOX_KEY, **extra: Any) -> None:
        """Set the connection; an extra of None is taken away."""
        all_extras = {**self.deliveries_here, **extra}
        kept = {name: value for name, value in all_extras.items() if value is not None}
        self.set_environment(connection_text(self.sandbox.url if url is None else url, key, **kept))

    def set_environment(self, connection: str) -> None:
        self.patch.setenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection)

    def serve(self, *steps: Step, **options: Any) -> FaultServer:
        server = FaultServer(steps, **options)
        self._servers.append(server)
        return server

    def run_triggerer(self, beat: datetime | None = None) -> None:
        """Let there be one triggerer, with its last heartbeat at that time; now, if left out."""
        now = datetime.now(timezone.utc)
        with Session(self.engine) as session:
            for old in session.scalars(select(Job)):
                session.delete(old)
            session.add(Job(job_type="TriggererJob", state="running", latest_heartbeat=beat or now))
            session.flush()
            session.execute(
                Job.__table__.update().values(latest_heartbeat=beat or now, hostname="triggerer-1")
            )
            session.commit()

    def execute(self, statement: str) -> None:
        with self.engine.begin() as link:
            link.exec_driver_sql(statement)

    def count_deliveries(self) -> int | None:
        with contextlib.suppress(Exception), self.engine.connect() as link:
            return int(link.execute(select(func.count()).select_from(delivery)).scalar_one())
        return None

    def close(self) -> None:
        for server in self._servers:
            server.close()


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def world(
    shared_sandbox: SandboxServer,
    migrated_database: MigratedDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    migrated_database.copy_to(tmp_path)
    engine = create_engine(f"sqlite:///{tmp_path}/airflow.db")
    monkeypatch.setattr(settings, "engine", engine)
    monkeypatch.setattr(
        settings, "Session", scoped_session(sessionmaker(bind=engine, expire_on_commit=False))
    )
    monkeypatch.setattr(connections, "CACHE_SECONDS", 0.0)
    monkeypatch.setattr(connections, "LOOKUP_TIMEOUT", PATIENCE)
    with ServedInbox(engine, application._gate) as inbox:
        made = World(shared_sandbox, inbox, engine, monkeypatch)
        yield made
        made.close()
    shared_sandbox.control.reset()
    engine.dispose()
