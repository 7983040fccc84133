"""Migration of the database of an earlier version, and reading its deliveries."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from airflow_provider_webdata.inbox_server.db_manager import InboxDBManager
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.integration.stored.conftest import RELEASES
from tools.stored.examples import BODY, CONNECTION_ID, NOON
from tools.stored.forms import FOLDER
from tools.stored.inbox import migrate


@pytest.fixture(params=RELEASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with closing(sqlite3.connect(tmp_path / "airflow.db")) as database:
        database.executescript((FOLDER / f"{request.param}.sql").read_text())
    engine = create_engine(f"sqlite:///{tmp_path}/airflow.db")
    migrate(engine)
    yield engine
    engine.dispose()


def test_migration_reaches_the_newest_revision(engine: Any) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    with engine.connect() as connection:
        options = {"version_table": InboxDBManager.version_table_name, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        assert (
            context.get_current_revision() == ScriptDirectory(InboxDBManager.migration_dir).get_current_head()
        )


def test_deliveries_survive(engine: Any) -> None:
    store = DeliveryStore(engine)
    page = store.read(CONNECTION_ID, DeliveryFilter(), 0, 10)
    assert [found.job_id for found in page.deliveries] == ["job", "other"]
    first, second = page.deliveries
    assert first.position is not None
    assert second.position == page.cursor == first.position + 1
    assert (first.key, first.event, first.success, first.received_at) == (
        "key",
        "crawl.completed",
        True,
        NOON,
    )
    body = store.get(CONNECTION_ID, first.id)
    assert body is not None
    assert body.body == BODY
    # A redelivery is recognized, and a new delivery comes after the old ones.
    again = NewDelivery.from_body(CONNECTION_ID, "key", BODY, NOON)
    new = NewDelivery.from_body(CONNECTION_ID, "key", BODY.replace(b"once", b"thrice"), NOON)
    assert store.add([again, new]) == [False, True]
    store.publish()
    (added,) = store.read(CONNECTION_ID, DeliveryFilter(), page.cursor, 10).deliveries
    assert added.id > second.id


def test_revisions_of_all_releases_exist(stored: dict[str, Any]) -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(InboxDBManager.migration_dir).walk_revisions()
    assert stored["tables"]["revision"] in {script.revision for script in scripts}
    assert stored["tables"]["version_table"] == InboxDBManager.version_table_name
