# SPDX-License-Identifier: Apache-2.0
"""Alembic environment for the inbox's tables; excludes Airflow's other tables."""

from __future__ import annotations

from typing import Any

from alembic import context

from airflow_provider_webdata.airflow_db.database import airflow_engine, airflow_url
from airflow_provider_webdata.inbox_server.storage.tables import VERSION_TABLE, metadata

OWN_TABLES = {table.name for table in metadata.tables.values()}


def is_own(_: Any, name: str | None, kind: str, *__: Any) -> bool:
    """Return whether a comparison covers this object."""
    return kind != "table" or name in OWN_TABLES


OPTIONS: dict[str, Any] = {
    "target_metadata": metadata,
    "version_table": VERSION_TABLE,
    "include_object": is_own,
    "include_schemas": metadata.schema is not None,
    "compare_type": True,
    "render_as_batch": True,
}

if context.is_offline_mode():
    context.configure(url=airflow_url(), literal_binds=True, **OPTIONS)
    with context.begin_transaction():
        context.run_migrations()
else:
    with airflow_engine().connect() as connection:
        context.configure(connection=connection, transaction_per_migration=True, **OPTIONS)
        with context.begin_transaction():
            context.run_migrations()
