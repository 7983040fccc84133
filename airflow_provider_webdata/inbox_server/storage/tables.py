"""The inbox's tables in Airflow's metadata database, with the separate metadata that a DB manager requires."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect

DELIVERY_TABLE = "webdata_inbox_delivery"
COUNTER_TABLE = "webdata_inbox_counter"
ASSET_EVENT_TABLE = "webdata_asset_event"
VERSION_TABLE = "alembic_version_webdata"

CONN_ID_LENGTH = 250
TEXT_LENGTH = 200


class UTCDateTime(TypeDecorator[datetime]):
    """An aware datetime in UTC on every database, to the microsecond; Airflow's is a TIMESTAMP on MySQL."""

    impl = TIMESTAMP(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql")
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Hand the database UTC; without its zone where the database keeps none."""
        if value is None:
            return None
        value = value.astimezone(timezone.utc)
        return value if dialect.name == "postgresql" else value.replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Give the zone back."""
        if value is None:
            return None
        found: datetime = value
        return found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found.astimezone(timezone.utc)


def exact_text(length: int) -> String:
    """Return a case-sensitive text type; MySQL's default is case-insensitive."""
    return String(length).with_variant(mysql.VARCHAR(length, collation="utf8mb4_bin"), "mysql")


metadata = MetaData(schema=(conf.get("database", "sql_alchemy_schema", fallback="") or "").strip() or None)

delivery = Table(
    DELIVERY_TABLE,
    metadata,
    # SQLite generates only what is declared INTEGER.
    Column("id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    # Empty until the transaction that stored the row has committed: see `sequencer`.
    Column("position", BigInteger),
    Column("conn_id", exact_text(CONN_ID_LENGTH), nullable=False),
    Column("dedupe", exact_text(64), nullable=False),
    Column("correlation_key", exact_text(TEXT_LENGTH)),
    # The event, unchanged, and the two parts by which names with and without the operation are compared.
    Column("event", exact_text(TEXT_LENGTH)),
    # Empty, not null, where the name does not say it: an index then keeps the order behind it on every database.
    Column("operation", exact_text(TEXT_LENGTH), nullable=False),
    Column("name", exact_text(TEXT_LENGTH)),
    Column("job_id", exact_text(TEXT_LENGTH)),
    Column("monitor_id", exact_text(TEXT_LENGTH)),
    # Of the page's URL, which may be too long for an index: see `records.page_hash`.
    Column("page_hash", BigInteger),
    Column("success", Boolean(create_constraint=False)),
    Column("received_at", UTCDateTime(), nullable=False),
    Column("size", Integer, nullable=False),
    # MySQL's plain BLOB ends at 64 KiB.
    Column("body", LargeBinary().with_variant(mysql.LONGBLOB(), "mysql"), nullable=False),
    # The delivery that this one replays.
    Column("replay_of", BigInteger),
    UniqueConstraint("conn_id", "dedupe", name="webdata_inbox_delivery_conn_id_dedupe_uq"),
    # Each ends with the position: what a search finds by it is in order already.
    Index("idx_webdata_inbox_delivery_conn_id_position", "conn_id", "position"),
    Index("idx_webdata_inbox_delivery_correlation_key", "conn_id", "correlation_key", "position"),
    Index("idx_webdata_inbox_delivery_job_id", "conn_id", "job_id", "position"),
    Index("idx_webdata_inbox_delivery_monitor_id", "conn_id", "monitor_id", "position"),
    Index("idx_webdata_inbox_delivery_page_hash", "conn_id", "page_hash", "position"),
    Index("idx_webdata_inbox_delivery_event", "conn_id", "name", "operation", "position"),
    # What waits for its position, oldest first. MySQL knows no partial index and keeps all rows in it.
    Index(
        "idx_webdata_inbox_delivery_pending",
        "position",
        "id",
        postgresql_where=text("position IS NULL"),
        sqlite_where=text("position IS NULL"),
    ),
    Index("idx_webdata_inbox_delivery_received_at", "received_at"),
    # A pruned delivery's id must not come back with another delivery behind it.
    sqlite_autoincrement=True,
)

# Row 1: the newest position. Row 2: the position up to which asset events are registered.
counter = Table(
    COUNTER_TABLE,
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("last_position", BigInteger, nullable=False),
)

QUEUED, REGISTERED, FAILED = "queued", "registered", "failed"

# The completed checks and jobs that start DAGs, each with the state of its asset event: it is registered once those
# DAGs have started their runs for the one before. A row is pruned with its delivery.
asset_event = Table(
    ASSET_EVENT_TABLE,
    metadata,
    Column("conn_id", exact_text(CONN_ID_LENGTH), primary_key=True),
    # The id of the monitor, or the kind of the job.
    Column("subject", exact_text(TEXT_LENGTH), primary_key=True),
    # For monitors, of the check.
    Column("job_id", exact_text(TEXT_LENGTH), primary_key=True),
    Column("delivery_id", BigInteger, nullable=False),
    Column("state", exact_text(20), nullable=False, server_default=REGISTERED),
    Index("idx_webdata_asset_event_delivery_id", "delivery_id"),
    Index("idx_webdata_asset_event_state", "state", "conn_id", "subject", "delivery_id"),
)
