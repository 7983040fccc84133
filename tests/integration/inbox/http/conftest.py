# SPDX-License-Identifier: Apache-2.0
"""The inbox served over each of the databases that Airflow uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.utils.orm_event_handlers import setup_event_handlers
from sqlalchemy import Engine, create_engine

from airflow_provider_webdata.airflow_db import database
from airflow_provider_webdata.inbox_server.http import connections, receive
from airflow_provider_webdata.inbox_server.storage import feed
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.integration.inbox.http.served_inbox import ServedInbox
from tests.support.certificates import self_signed
from tests.support.postgres import Postgres
from tests.support.waiting import PATIENCE
from tests.support.warm import Warm
from webdata_sandbox.testing.migrated_database import MigratedDatabase


def engine_of(url: str) -> Engine:
    """Return an engine with Airflow's settings on a database, and create the inbox's tables."""
    engine = create_engine(url, pool_pre_ping=True)
    setup_event_handlers(engine)
    metadata.create_all(engine)
    return engine


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a loaded machine from causing timeouts of lookups, bodies, and the database."""
    for module, name in ((connections, "LOOKUP_TIMEOUT"), (receive, "BODY_SECONDS"), (feed, "READ_TIMEOUT")):
        monkeypatch.setattr(module, name, PATIENCE)
    monkeypatch.setattr(database, "_LIMITS", database._LIMITS.bindparams(statement="600s", idle="600s"))


@pytest.fixture(scope="session")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedInbox]:
    folder: Path = tmp_path_factory.mktemp("inbox")
    engine = engine_of(f"sqlite:///{folder}/inbox.db")
    with ServedInbox(engine) as served:
        yield served
    engine.dispose()


@pytest.fixture(scope="session")
def on_postgres(postgres: Postgres) -> Iterator[ServedInbox]:
    engine = engine_of(postgres.create_database("inbox_http"))
    with ServedInbox(engine) as served:
        yield served
    engine.dispose()


@pytest.fixture
def sqlite_engine(tmp_path: Path) -> Iterator[Engine]:
    """A database of one test, which may lock it."""
    engine = engine_of(f"sqlite:///{tmp_path}/inbox.db")
    yield engine
    engine.dispose()


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def served(request: pytest.FixtureRequest) -> ServedInbox:
    """The inbox over each database, for what depends on it; all other tests take SQLite.

    The tests share it: each uses its own connections, see `fresh`.
    """
    name = {"sqlite": "on_sqlite", "postgresql": "on_postgres"}[request.param]
    found: ServedInbox = request.getfixturevalue(name)
    return found


@pytest.fixture(scope="session")
def airflow_home(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> AirflowHome:
    return AirflowHome.create(tmp_path_factory.mktemp("airflow"), migrated_database, warm)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))
