"""Add the state of asset events, and rename columns to include jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from airflow_provider_webdata.inbox_server.storage.tables import metadata

revision = "b35d7e60c9a4"
down_revision = "9e27c4b1d058"
branch_labels = None
depends_on = None

ASSET_EVENT = "webdata_asset_event"
INDEX = f"idx_{ASSET_EVENT}_state"
NAMES = {"monitor_id": "subject", "check_id": "job_id"}


def upgrade() -> None:
    """Upgrade to this revision."""
    # Airflow stamps tables without a version with the first revision.
    if not op.get_context().as_sql:
        columns = sa.inspect(op.get_bind()).get_columns(ASSET_EVENT, schema=metadata.schema)
        if "state" in {column["name"] for column in columns}:
            return
    for old, new in NAMES.items():
        _rename(old, new)
    state = sa.String(20).with_variant(mysql.VARCHAR(20, collation="utf8mb4_bin"), "mysql")
    column = sa.Column("state", state, nullable=False, server_default="registered")
    op.add_column(ASSET_EVENT, column, schema=metadata.schema)
    op.create_index(
        INDEX, ASSET_EVENT, ["state", "conn_id", "subject", "delivery_id"], schema=metadata.schema
    )


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.drop_index(INDEX, ASSET_EVENT, schema=metadata.schema)
    op.drop_column(ASSET_EVENT, "state", schema=metadata.schema)
    for old, new in NAMES.items():
        _rename(new, old)


def _rename(old: str, new: str) -> None:
    table = f"{metadata.schema}.{ASSET_EVENT}" if metadata.schema else ASSET_EVENT
    # Alembic's own operation would copy the table on SQLite.
    op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
