# SPDX-License-Identifier: Apache-2.0
"""Create the inbox's tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from airflow_provider_webdata.inbox_server.storage.tables import metadata

revision = "4c1f0a7d9b21"
down_revision = None
branch_labels = None
depends_on = None

DELIVERY = "webdata_inbox_delivery"
COUNTER = "webdata_inbox_counter"
REFUSAL = "webdata_inbox_refusal"
ASSET_EVENT = "webdata_asset_event"
INDEXES = {
    "conn_id_position": ["conn_id", "position"],
    "correlation_key": ["conn_id", "correlation_key", "position"],
    "job_id": ["conn_id", "job_id", "position"],
    "monitor_id": ["conn_id", "monitor_id", "position"],
    "dag_id": ["conn_id", "dag_id", "position"],
    "page_hash": ["conn_id", "page_hash", "position"],
    "event": ["conn_id", "name", "operation", "position"],
    "received_at": ["received_at"],
}
ASSET_EVENT_INDEXES = {"delivery_id": ["delivery_id"], "state": ["state", "asset_id", "delivery_id"]}
PARTIAL_INDEXES = {
    "pending": (["position", "id"], "position IS NULL"),
    "is_meaningful": (["conn_id", "job_id", "is_meaningful"], "is_meaningful IS NOT NULL"),
}


def text(length: int) -> sa.types.TypeEngine[str]:
    """Return a case-sensitive text type."""
    return sa.String(length).with_variant(mysql.VARCHAR(length, collation="utf8mb4_bin"), "mysql")


def moment() -> sa.types.TypeEngine[Any]:
    """Return a type for times with microseconds."""
    return sa.TIMESTAMP(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql")


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        DELIVERY,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", sa.BigInteger()),
        sa.Column("conn_id", text(250), nullable=False),
        sa.Column("dedupe", text(64), nullable=False),
        sa.Column("correlation_key", text(200)),
        sa.Column("event", text(200)),
        sa.Column("operation", text(200), nullable=False),
        sa.Column("name", text(200)),
        sa.Column("job_id", text(200)),
        sa.Column("monitor_id", text(200)),
        sa.Column("monitor_name", text(256)),
        sa.Column("dag_id", text(250)),
        sa.Column("task_id", text(250)),
        sa.Column("is_meaningful", sa.Boolean()),
        sa.Column("facts", sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql")),
        sa.Column("page_hash", sa.BigInteger()),
        sa.Column("success", sa.Boolean()),
        sa.Column("received_at", moment(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql"), nullable=False),
        sa.Column("replay_of", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="webdata_inbox_delivery_pkey"),
        sa.UniqueConstraint("conn_id", "dedupe", name="webdata_inbox_delivery_conn_id_dedupe_uq"),
        schema=metadata.schema,
        sqlite_autoincrement=True,
    )
    for name, columns in INDEXES.items():
        op.create_index(f"idx_{DELIVERY}_{name}", DELIVERY, columns, schema=metadata.schema)
    for name, (columns, rows) in PARTIAL_INDEXES.items():
        op.create_index(
            f"idx_{DELIVERY}_{name}",
            DELIVERY,
            columns,
            schema=metadata.schema,
            postgresql_where=sa.text(rows),
            sqlite_where=sa.text(rows),
        )
    op.create_table(
        COUNTER,
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="webdata_inbox_counter_pkey"),
        schema=metadata.schema,
    )
    op.create_table(
        REFUSAL,
        sa.Column("conn_id", text(250), nullable=False),
        sa.Column("reason", text(20), nullable=False),
        sa.Column("sender", text(100), nullable=False),
        sa.Column("refused", sa.BigInteger(), nullable=False),
        sa.Column("since", moment(), nullable=False),
        sa.Column("refused_at", moment(), nullable=False),
        sa.PrimaryKeyConstraint("conn_id", "reason", "sender", name=f"{REFUSAL}_pkey"),
        schema=metadata.schema,
    )
    op.create_table(
        ASSET_EVENT,
        sa.Column("asset_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("job_id", text(200), nullable=False),
        sa.Column("conn_id", text(250), nullable=False),
        sa.Column("delivery_id", sa.BigInteger(), nullable=False),
        sa.Column("state", text(20), nullable=False),
        sa.PrimaryKeyConstraint("asset_id", "job_id", name=f"{ASSET_EVENT}_pkey"),
        schema=metadata.schema,
    )
    for name, columns in ASSET_EVENT_INDEXES.items():
        op.create_index(f"idx_{ASSET_EVENT}_{name}", ASSET_EVENT, columns, schema=metadata.schema)


def downgrade() -> None:
    """Drop them."""
    for name in (ASSET_EVENT, REFUSAL, COUNTER, DELIVERY):
        # A killed downgrade may have dropped some.
        op.drop_table(name, schema=metadata.schema, if_exists=True)
