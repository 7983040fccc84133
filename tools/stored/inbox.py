"""The inbox's tables, and the digests that identify deliveries."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from airflow_provider_webdata import __version__
from tools.stored.examples import BODY, CONNECTION_ID, NOON


def tables() -> dict[str, Any]:
    """Return the tables, their columns, and their revision."""
    from airflow_provider_webdata.inbox_server.db_manager import InboxDBManager
    from airflow_provider_webdata.inbox_server.storage import tables as inbox_tables

    columns = {
        name: {column.name: str(column.type) for column in table.columns}
        for name, table in inbox_tables.metadata.tables.items()
    }
    return {
        "version_table": inbox_tables.VERSION_TABLE,
        "revision": InboxDBManager.revision_heads_map[__version__],
        "columns": columns,
    }


def deliveries() -> dict[str, Any]:
    """Return example bodies with their digests, by which a later version recognizes a redelivery."""
    from airflow_provider_webdata.inbox_server.storage.records import NewDelivery

    bodies = {"with an id": BODY, "without": BODY.replace(b', "webhookId": "once"', b"")}
    return {
        name: {
            "body": body.decode(),
            "dedupe": NewDelivery.from_body(CONNECTION_ID, "key", body, NOON).dedupe,
        }
        for name, body in bodies.items()
    }


def database() -> str:
    """Return the SQL statements of a SQLite database of this version with two deliveries."""
    from sqlalchemy import create_engine

    from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
    from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "airflow.db"
        engine = create_engine(f"sqlite:///{file}")
        migrate(engine)
        store = DeliveryStore(engine)
        bodies = [BODY, BODY.replace(b'"job"', b'"other"').replace(b'"once"', b'"twice"')]
        store.add([NewDelivery.from_body(CONNECTION_ID, "key", body, NOON) for body in bodies])
        store.publish()
        engine.dispose()
        with closing(sqlite3.connect(file)) as connection:
            return "\n".join(connection.iterdump()) + "\n"


def migrate(engine: Any) -> None:
    """Migrate a database to the newest revision."""
    from airflow import settings as airflow_settings
    from sqlalchemy.orm import Session

    from airflow_provider_webdata.inbox_server.db_manager import InboxDBManager

    before, airflow_settings.engine = airflow_settings.engine, engine
    try:
        with Session(engine) as session:
            manager = InboxDBManager(session)  # type: ignore[no-untyped-call]
            manager.upgradedb(to_revision="heads")
    finally:
        airflow_settings.engine = before
