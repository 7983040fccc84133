# SPDX-License-Identifier: Apache-2.0
"""The inbox's tables in Airflow's metadata database, with separate metadata as DB managers require."""

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

from airflow_provider_webdata.inbox.envelope import MAX_DAG_ID, MAX_MONITOR_NAME

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect

DELIVERY_TABLE = "webdata_inbox_delivery"
COUNTER_TABLE = "webdata_inbox_counter"
REFUSAL_TABLE = "webdata_inbox_refusal"
ASSET_EVENT_TABLE = "webdata_asset_event"
VERSION_TABLE = "alembic_version_webdata"

CONN_ID_LENGTH = 250
MAX_SENDER = 100
TEXT_LENGTH = 200


class UTCDateTime(TypeDecorator[datetime]):
    """A timezone-aware UTC datetime with microseconds on every database; Airflow's type is a TIMESTAMP on MySQL."""

    impl = TIMESTAMP(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql")
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC, without the zone if the database stores none."""
        if value is None:
            return None
        value = value.astimezone(timezone.utc)
        return value if dialect.name == "postgresql" else value.replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Restore the zone."""
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
    # SQLite generates ids only for INTEGER columns.
    Column("id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    # NULL until the transaction that stored the row has committed; see `sequencer`.
    Column("position", BigInteger),
    Column("conn_id", exact_text(CONN_ID_LENGTH), nullable=False),
    Column("dedupe", exact_text(64), nullable=False),
    Column("correlation_key", exact_text(TEXT_LENGTH)),
    # The unchanged event, and its two parts, to compare names with and without the operation.
    Column("event", exact_text(TEXT_LENGTH)),
    # Empty instead of NULL if unknown, so that an index is ordered after this column on every database.
    Column("operation", exact_text(TEXT_LENGTH), nullable=False),
    Column("name", exact_text(TEXT_LENGTH)),
    Column("job_id", exact_text(TEXT_LENGTH)),
    Column("monitor_id", exact_text(TEXT_LENGTH)),
    # From a managed webhook's metadata.
    Column("monitor_name", exact_text(MAX_MONITOR_NAME)),
    # From a managed webhook's metadata: readers of its DAG may read the delivery.
    Column("dag_id", exact_text(MAX_DAG_ID)),
    Column("task_id", exact_text(MAX_DAG_ID)),
    # Of a monitor's new or changed page: its change was judged meaningful.
    Column("is_meaningful", Boolean(create_constraint=False)),
    # JSON of the asset event's facts, of completed checks and jobs; see `Envelope`.
    Column("facts", LargeBinary().with_variant(mysql.LONGBLOB(), "mysql")),
    # Hash of the page's URL, which may be too long for an index; see `records.page_hash`.
    Column("page_hash", BigInteger),
    Column("success", Boolean(create_constraint=False)),
    Column("received_at", UTCDateTime(), nullable=False),
    Column("size", Integer, nullable=False),
    # MySQL's BLOB is limited to 64 KiB.
    Column("body", LargeBinary().with_variant(mysql.LONGBLOB(), "mysql"), nullable=False),
    # Id of the original of a replay.
    Column("replay_of", BigInteger),
    UniqueConstraint("conn_id", "dedupe", name="webdata_inbox_delivery_conn_id_dedupe_uq"),
    # Each index ends with the position, so that search results are already ordered.
    Index("idx_webdata_inbox_delivery_conn_id_position", "conn_id", "position"),
    Index("idx_webdata_inbox_delivery_correlation_key", "conn_id", "correlation_key", "position"),
    Index("idx_webdata_inbox_delivery_job_id", "conn_id", "job_id", "position"),
    Index("idx_webdata_inbox_delivery_monitor_id", "conn_id", "monitor_id", "position"),
    Index("idx_webdata_inbox_delivery_dag_id", "conn_id", "dag_id", "position"),
    Index("idx_webdata_inbox_delivery_page_hash", "conn_id", "page_hash", "position"),
    Index("idx_webdata_inbox_delivery_event", "conn_id", "name", "operation", "position"),
    # Rows without a position, oldest first. MySQL has no partial indexes and includes all rows.
    Index(
        "idx_webdata_inbox_delivery_pending",
        "position",
        "id",
        postgresql_where=text("position IS NULL"),
        sqlite_where=text("position IS NULL"),
    ),
    # The judged pages of a check, and on MySQL all other rows.
    Index(
        "idx_webdata_inbox_delivery_is_meaningful",
        "conn_id",
        "job_id",
        "is_meaningful",
        postgresql_where=text("is_meaningful IS NOT NULL"),
        sqlite_where=text("is_meaningful IS NOT NULL"),
    ),
    Index("idx_webdata_inbox_delivery_received_at", "received_at"),
    # The id of a pruned delivery must not be reused.
    sqlite_autoincrement=True,
)

# Row 1: the newest position. Row 2: the position up to which asset events are registered.
counter = Table(
    COUNTER_TABLE,
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("last_position", BigInteger, nullable=False),
)

# Counts of refused deliveries; see `refusals`.
refusal = Table(
    REFUSAL_TABLE,
    metadata,
    # In upper case, as in the names of environment variables: the same for all spellings of an id.
    Column("conn_id", exact_text(CONN_ID_LENGTH), primary_key=True),
    Column("reason", exact_text(20), primary_key=True),
    # Empty for all beyond the first `MAX_SENDERS`.
    Column("sender", exact_text(MAX_SENDER), primary_key=True),
    # Before `since`: MySQL assigns from left to right.
    Column("refused", BigInteger, nullable=False),
    # When the first and the last of them were stored.
    Column("since", UTCDateTime(), nullable=False),
    Column("refused_at", UTCDateTime(), nullable=False),
)

QUEUED, REGISTERED, FAILED = "queued", "registered", "failed"

# The completed checks and jobs that change assets with DAGs: each asset has its queue, so that neither another asset's
# queue nor its own length delays an event. An event is registered once those DAGs have started their runs for the
# previous event. A row is pruned with its delivery.
asset_event = Table(
    ASSET_EVENT_TABLE,
    metadata,
    # Of Airflow's table of assets, which never reuses an id.
    Column("asset_id", Integer, primary_key=True, autoincrement=False),
    # For monitors, the id of the check.
    Column("job_id", exact_text(TEXT_LENGTH), primary_key=True),
    Column("conn_id", exact_text(CONN_ID_LENGTH), nullable=False),
    Column("delivery_id", BigInteger, nullable=False),
    Column("state", exact_text(20), nullable=False),
    Index("idx_webdata_asset_event_delivery_id", "delivery_id"),
    Index("idx_webdata_asset_event_state", "state", "asset_id", "delivery_id"),
)
