"""Create the table of asset events, starting with the deliveries after the upgrade."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from airflow_provider_webdata.inbox_server.storage.tables import metadata

revision = "b35d7e60c9a4"
down_revision = "4c1f0a7d9b21"
branch_labels = None
depends_on = None

ASSET_EVENT = "webdata_asset_event"
INDEXES = {"delivery_id": ["delivery_id"], "state": ["state", "asset_id", "delivery_id"]}
counter = sa.table(
    "webdata_inbox_counter",
    sa.column("id", sa.Integer()),
    sa.column("last_position", sa.BigInteger()),
    schema=metadata.schema,
)
NEWEST, REGISTERED = 1, 2


def text(length: int) -> sa.types.TypeEngine[str]:
    """Return a case-sensitive text type."""
    return sa.String(length).with_variant(mysql.VARCHAR(length, collation="utf8mb4_bin"), "mysql")


def upgrade() -> None:
    """Upgrade to this revision."""
    # Airflow stamps tables without a version with the first revision.
    if not op.get_context().as_sql and sa.inspect(op.get_bind()).has_table(
        ASSET_EVENT, schema=metadata.schema
    ):
        return
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
    for name, columns in INDEXES.items():
        op.create_index(f"idx_{ASSET_EVENT}_{name}", ASSET_EVENT, columns, schema=metadata.schema)
    # Checks from before the upgrade start no DAGs.
    newest = sa.select(sa.literal(REGISTERED), counter.c.last_position).where(counter.c.id == NEWEST)
    op.execute(counter.insert().from_select(["id", "last_position"], newest))


def downgrade() -> None:
    """Downgrade to the previous revision."""
    op.execute(counter.delete().where(counter.c.id == REGISTERED))
    op.drop_table(ASSET_EVENT, schema=metadata.schema)
