# SPDX-License-Identifier: Apache-2.0
"""The inbox in the database: every method is one transaction, and is thread-safe."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import uuid
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import String, case, cast, column, delete, func, insert, literal, select, table, update

from airflow_provider_webdata.airflow_db.database import insert_or_ignore, lone_statement, transaction
from airflow_provider_webdata.airflow_db.errors import RefusedError, TablesMissingError
from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES

from . import sequencer
from .errors import CursorPastEndError, DeliveryNotFoundError
from .records import DeliveryFilter, NewDelivery, StoredDelivery, StoredPage, page_hash
from .refusals import COUNTED_WITHIN, MAX_SENDERS, OTHERS, Refusal, RefusedDeliveries, counted_as
from .searches import selection
from .tables import FAILED, VERSION_TABLE, asset_event, delivery, metadata, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Select
    from sqlalchemy.engine import Connection, Engine

_T = TypeVar("_T")

MAX_DELIVERIES = 1000
"""Maximum number of deliveries in one page."""
MAX_CONNECTIONS = 1000
"""Maximum number of connections in one query."""

REPEATED_WITHIN = timedelta(minutes=30)
"""Time after which an equal body without an id of its event is a new event. The service repeats within 21 minutes."""

_OMITTED = {"dedupe", "page_hash", "operation", "name", "is_meaningful", "facts", "body"}
_WITHOUT_BODY = [column for column in delivery.c if column.name not in _OMITTED]
# Alembic's own function logs two lines.
_REVISION = select(column("version_num", String)).select_from(table(VERSION_TABLE))
_SMALL_BODY = case((delivery.c.size <= INLINE_BODY_BYTES, delivery.c.body)).label("body")


class DeliveryStore:
    """Deliveries in Airflow's metadata database.

    Every method raises `StoreUnavailableError` if the database is unavailable, within a few seconds unless the database
    hangs.

    :param engine: Airflow's engine, or that of another database with the tables.
    :param prepare: creates the tables, if configured: called before the first transaction, until it succeeds.
        Raises `StoreUnavailableError` on failure.
    """

    def __init__(self, engine: Engine, prepare: Callable[[], None] | None = None) -> None:
        self._engine = engine
        self._prepare = prepare
        self._preparing = threading.Lock()
        # On SQLite, commits are ordered, since only one transaction can write at a time.
        self._orders_at_once = engine.dialect.name == "sqlite"

    def add(self, batch: Sequence[NewDelivery]) -> list[bool]:
        """Store deliveries in one committed transaction.

        :param batch: may contain duplicates and already stored deliveries.
        :return: for each delivery, True if it is new, False if it was already stored. Without an id of its event, an
            equal delivery is new after `REPEATED_WITHIN`.
        :raises ContendedError: another transaction has locked a required row.
        :raises RefusedError: the database rejects the content of a delivery.
        :raises StoreUnavailableError: the batch was not stored, or the outcome is unknown. A retry is safe.
        """
        rows = [_row_of(new) for new in batch]
        try:
            with self._transaction() as connection:
                if self._orders_at_once:
                    first = sequencer.reserve_positions(connection, len(rows))
                    rows = [{**row, "position": position} for position, row in enumerate(rows, first)]
                stored = _insert(connection, rows)
                stored |= _insert_later_events(connection, batch, rows, stored)
        except (ValueError, TypeError, OverflowError) as error:
            # Drivers raise this for text that the database cannot store, such as a NUL.
            raise RefusedError(f"the database driver rejects the content ({type(error).__name__})") from None
        results = []
        for row in rows:
            identity = (row["conn_id"], row["dedupe"])
            results.append(identity in stored)
            stored.discard(identity)
        return results

    def publish(self) -> int:
        """Publish the committed deliveries; return their number."""
        published = 0
        while True:
            with self._transaction() as connection:
                if not sequencer.anything_pending(connection):
                    return published
                count = sequencer.assign_positions(connection)
            published += count
            if count < sequencer.ROUND:
                return published

    def end(self) -> int:
        """Publish the committed deliveries; return the newest position, 0 before the first."""
        return self._after_publishing(sequencer.end)

    def has_news(self, since: int) -> bool:
        """Return whether `changes` would find any delivery, at minimal cost."""
        self._ensure_prepared()
        with lone_statement(self._engine) as connection:
            return sequencer.has_news(connection, since)

    def conn_ids(self) -> list[str]:
        """Return the first `MAX_CONNECTIONS` connections with deliveries, ordered by id."""
        with self._transaction() as connection:
            return _conn_ids(connection)

    def changes(self, since: int, conn_ids: Collection[str]) -> tuple[int, dict[str, int]]:
        """Publish committed deliveries; return the newest position, and each connection's if it is after `since`.

        Takes one statement if there are none: then, the newest position is `since`.
        """
        if not self.has_news(since):
            return since, {}

        def query(connection: Connection) -> tuple[int, dict[str, int]]:
            end = sequencer.end(connection)
            if end <= since:
                return end, {}
            newest = select(delivery.c.conn_id, func.max(delivery.c.position))
            later = newest.where(delivery.c.conn_id.in_(conn_ids), delivery.c.position > since)
            rows = connection.execute(later.group_by(delivery.c.conn_id))
            return end, {row[0]: row[1] for row in rows}

        return self._after_publishing(query)

    def read(self, conn_id: str, wanted: DeliveryFilter, after: int, limit: int) -> StoredPage:
        """Return published deliveries of a connection, ordered by position.

        Publishes committed deliveries first. Omits bodies above 16 KiB.

        :param after: cursor; 0 for the oldest stored delivery.
        :param limit: maximum number of deliveries, 1 to 1000.
        :raises CursorPastEndError: no delivery was ever published at or beyond the cursor.
        """
        limit = max(1, min(limit, MAX_DELIVERIES))

        def query(connection: Connection) -> StoredPage:
            # Before the rows: the following query sees every row with a position up to here.
            end = sequencer.end(connection)
            if after > end:
                raise CursorPastEndError(end)
            rows = connection.execute(
                selection([*_WITHOUT_BODY, _SMALL_BODY], conn_id, wanted, limit + 1, after)
            ).all()
            found = [_stored(row) for row in rows[:limit]]
            newest = rows[:limit][-1].position if rows else 0
            more = len(rows) > limit
            return StoredPage(found, newest if more else max(end, newest), more)

        return self._after_publishing(query)

    def _transaction(self) -> AbstractContextManager[Connection]:
        self._ensure_prepared()
        return transaction(self._engine)

    def _ensure_prepared(self) -> None:
        if self._prepare is None:
            return
        with self._preparing:
            if self._prepare is not None:
                self._prepare()
                self._prepare = None

    def _after_publishing(self, query: Callable[[Connection], _T]) -> _T:
        """Publish the committed deliveries, then run a query and return its result."""
        with self._transaction() as connection:
            if not sequencer.anything_pending(connection):
                return query(connection)
        self.publish()
        with self._transaction() as connection:
            return query(connection)

    def get(self, conn_id: str | None, delivery_id: int) -> StoredDelivery | None:
        """Return one delivery of a connection, or of any connection, with its body; None if missing."""
        statement = select(*_WITHOUT_BODY, delivery.c.body).where(delivery.c.id == delivery_id)
        if conn_id is not None:
            statement = statement.where(delivery.c.conn_id == conn_id)
        with self._transaction() as connection:
            row = connection.execute(statement).first()
        return None if row is None else _stored(row)

    def bodies(self, delivery_ids: Collection[int], most_bytes: int) -> dict[int, bytes]:
        """Return the bodies of deliveries by id, except those larger than a limit."""
        statement = select(delivery.c.id, delivery.c.body).where(
            delivery.c.id.in_(delivery_ids), delivery.c.size <= most_bytes
        )
        with self._transaction() as connection:
            return {row.id: row.body for row in connection.execute(statement)}

    def newest(
        self,
        conn_id: str | Collection[str] | None,
        wanted: DeliveryFilter,
        limit: int,
        before: int | None = None,
    ) -> list[StoredDelivery]:
        """Return the newest deliveries without bodies, newest first. Publishes committed deliveries first.

        :param conn_id: one or several connections; None for all.
        :param before: only deliveries before this position.
        """

        def query(connection: Connection) -> list[StoredDelivery]:
            if conn_id is None:
                conn_ids: Collection[str] = _conn_ids(connection)
            else:
                conn_ids = [conn_id] if isinstance(conn_id, str) else conn_id
            rows = [
                row
                for one in conn_ids
                for row in connection.execute(selection(_WITHOUT_BODY, one, wanted, limit, before=before))
            ]
            rows.sort(key=lambda row: row.position, reverse=True)
            return [_stored(row) for row in rows[:limit]]

        return self._after_publishing(query)

    def last_received(self, conn_id: str) -> datetime | None:
        """Return when the newest delivery of a connection was received, or None. Does not publish."""
        with self._transaction() as connection:
            found: datetime | None = connection.execute(_newest(conn_id)).scalar()
        return found

    def add_refusals(self, counts: Mapping[Refusal, int]) -> None:
        """Add to the counts of refused deliveries."""
        now = datetime.now(timezone.utc)
        is_over = refusal.c.refused_at < now - COUNTED_WITHIN

        def add(connection: Connection, row: dict[str, Any], count: int) -> bool:
            values = {
                "refused": case((is_over, count), else_=refusal.c.refused + count),
                "since": case((is_over, now), else_=refusal.c.since),
                "refused_at": now,
            }
            return connection.execute(update(refusal).filter_by(**row).values(values)).rowcount > 0

        with self._transaction() as connection:
            # In order, so that concurrent processes do not lock each other's rows.
            for (conn_id, reason, sender), count in sorted(_by_stored_sender(connection, counts).items()):
                row = {"conn_id": conn_id, "reason": reason, "sender": sender}
                first = {**row, "refused": count, "since": now, "refused_at": now}
                if not add(connection, row, count) and not (
                    connection.execute(insert_or_ignore(refusal, connection.dialect), first).rowcount
                ):
                    # Another process has inserted it.
                    add(connection, row, count)

    def refusals(self, conn_ids: Collection[str]) -> list[RefusedDeliveries]:
        """Return the refused deliveries of connections by connection, reason, and sender, the newest first.

        :param conn_ids: at most `MAX_CONNECTIONS`.
        """
        spelled: dict[str, str] = {}
        for conn_id in conn_ids:
            spelled.setdefault(counted_as(conn_id), conn_id)
        found = select(refusal).where(refusal.c.conn_id.in_(spelled)).order_by(refusal.c.refused_at.desc())
        with self._transaction() as connection:
            rows = connection.execute(found).all()
            accepted = {
                conn_id: connection.execute(_newest(spelled[conn_id])).scalar()
                for conn_id in {row.conn_id for row in rows}
            }
        return [
            RefusedDeliveries(
                spelled[row.conn_id],
                row.reason,
                row.sender,
                row.refused,
                row.since,
                row.refused_at,
                (newest := accepted[row.conn_id]) is not None and newest >= row.refused_at,
            )
            for row in rows
        ]

    def without_event(self, conn_id: str) -> list[int]:
        """Return the deliveries of a connection whose asset events failed to register, oldest first."""
        failed = select(asset_event.c.delivery_id).where(
            asset_event.c.state == FAILED, asset_event.c.conn_id == conn_id
        )
        with self._transaction() as connection:
            return list(connection.scalars(failed.distinct().order_by(asset_event.c.delivery_id)))

    def revision(self) -> str | None:
        """Return the revision of the tables, or None if one is missing."""
        with contextlib.suppress(TablesMissingError), self._transaction() as connection:
            for one in metadata.tables.values():
                connection.execute(select(literal(1)).select_from(one).limit(0))
            found: str | None = connection.execute(_REVISION).scalar()
            return found
        return None

    def count_before(self, moment: datetime, most: int) -> int:
        """Return the number of deliveries that `prune` would delete, counting at most `most`."""
        old = select(delivery.c.received_at).where(delivery.c.received_at < moment).limit(most)
        statement = select(func.count()).select_from(old.subquery())
        with self._transaction() as connection:
            return int(connection.execute(statement).scalar_one())

    def prune(self, before: datetime, limit: int = 500) -> int:
        """Delete the oldest deliveries; return their number. Call it until it returns 0.

        :param before: timezone-aware; deletes only deliveries received earlier.
        :param limit: maximum number of deliveries in this transaction.
        """
        old = (
            select(delivery.c.id)
            .where(delivery.c.received_at < before)
            .order_by(delivery.c.received_at)
            .limit(limit)
        )
        with self._transaction() as connection:
            ids = connection.execute(old).scalars().all()
            if not ids:
                connection.execute(delete(refusal).where(refusal.c.refused_at < before))
                return 0
            connection.execute(delete(asset_event).where(asset_event.c.delivery_id.in_(ids)))
            return connection.execute(delete(delivery).where(delivery.c.id.in_(ids))).rowcount

    def replay(self, delivery_ids: Sequence[int]) -> dict[int, int]:
        """Publish deliveries again, as copies that readers treat as new.

        :return: the id of each copy, by the id of its original.
        :raises DeliveryNotFoundError: a delivery is missing; no delivery was copied.
        """
        wanted = list(dict.fromkeys(delivery_ids))
        with self._transaction() as connection:
            found = connection.execute(select(delivery).where(delivery.c.id.in_(wanted))).mappings()
            originals = {row["id"]: dict(row) for row in found}
            if missing := [delivery_id for delivery_id in wanted if delivery_id not in originals]:
                raise DeliveryNotFoundError(missing)
            copies = {delivery_id: _copy(connection, originals[delivery_id]) for delivery_id in wanted}
            if self._orders_at_once:
                sequencer.assign_positions(connection)
        return copies


def _row_of(new: NewDelivery) -> dict[str, Any]:
    envelope = new.envelope
    return {
        "conn_id": new.conn_id,
        "dedupe": new.dedupe,
        "correlation_key": new.key,
        "event": envelope.event,
        "operation": envelope.operation or "",
        "name": envelope.name,
        "job_id": envelope.job_id,
        "monitor_id": envelope.monitor_id,
        "monitor_name": envelope.monitor_name,
        "dag_id": envelope.dag_id,
        "task_id": envelope.task_id,
        "is_meaningful": envelope.is_meaningful,
        "facts": envelope.facts,
        "page_hash": None if envelope.page_url is None else page_hash(envelope.page_url),
        "success": envelope.success,
        "received_at": new.received_at,
        "size": len(new.body),
        "body": new.body,
    }


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Insert the new rows, and return their identities.

    If an uncommitted transaction has inserted the same identity, the insert waits for it, to determine whether the row
    is a duplicate.
    """
    statement = insert_or_ignore(delivery, connection.dialect)
    if len(rows) > 1 and connection.dialect.insert_executemany_returning:
        returning = statement.returning(delivery.c.conn_id, delivery.c.dedupe)
        return {(row.conn_id, row.dedupe) for row in connection.execute(returning, rows)}
    return {(row["conn_id"], row["dedupe"]) for row in rows if connection.execute(statement, row).rowcount}


def _insert_later_events(
    connection: Connection,
    batch: Sequence[NewDelivery],
    rows: list[dict[str, Any]],
    stored: set[tuple[str, str]],
) -> set[tuple[str, str]]:
    """Insert deliveries without an id of their event, if their equals are too old, and return their identities.

    The older row loses its identity. Concurrent transactions wait for its lock, and then find an equal that is new.
    """
    later = set()
    for new, row in zip(batch, rows, strict=True):
        identity = (new.conn_id, new.dedupe)
        if new.envelope.webhook_id or identity in stored or identity in later:
            continue
        expire = (
            update(delivery)
            .where(
                delivery.c.conn_id == new.conn_id,
                delivery.c.dedupe == new.dedupe,
                delivery.c.received_at < new.received_at - REPEATED_WITHIN,
            )
            .values(dedupe=literal("expired ") + cast(delivery.c.id, String(20)))
        )
        if connection.execute(expire).rowcount:
            later |= _insert(connection, [row])
    return later


def _by_stored_sender(connection: Connection, counts: Mapping[Refusal, int]) -> Counter[Refusal]:
    """Return the counts, where senders beyond the first `MAX_SENDERS` share one."""
    columns = (refusal.c.conn_id, refusal.c.reason, refusal.c.sender)
    known = select(*columns).where(refusal.c.conn_id.in_({one.counted_as for one in counts}))
    stored = {Refusal(*row) for row in connection.execute(known)}
    senders = Counter((one.counted_as, one.reason) for one in stored)
    found: Counter[Refusal] = Counter()
    for one, count in counts.items():
        kind = (one.counted_as, one.reason)
        if one in stored or senders[kind] < MAX_SENDERS:
            senders[kind] += one not in stored
            found[one] += count
        else:
            found[one._replace(sender=OTHERS)] += count
    return found


def _newest(conn_id: str) -> Select[Any]:
    newest = select(delivery.c.received_at).where(delivery.c.conn_id == conn_id)
    # Unpublished deliveries have no position; databases differ in sorting them first or last.
    return newest.order_by(delivery.c.position.desc()).limit(1)


def _conn_ids(connection: Connection) -> list[str]:
    found: list[str] = []
    # One index step per connection; DISTINCT would read the whole index.
    following = select(func.min(delivery.c.conn_id))
    while len(found) < MAX_CONNECTIONS:
        later = following.where(delivery.c.conn_id > found[-1]) if found else following
        conn_id = connection.execute(later).scalar()
        if conn_id is None:
            break
        found.append(conn_id)
    return found


def _copy(connection: Connection, original: dict[str, Any]) -> int:
    copy = {name: value for name, value in original.items() if name not in {"id", "position"}}
    copy["dedupe"] = hashlib.sha256(b"replay" + uuid.uuid4().bytes).hexdigest()
    copy["replay_of"] = original["id"]
    copy["received_at"] = datetime.now(timezone.utc)
    (copy_id,) = connection.execute(insert(delivery).values(copy)).inserted_primary_key or (0,)
    return int(copy_id or 0)


def _stored(row: Any) -> StoredDelivery:
    values = dict(row._mapping)
    return StoredDelivery(key=values.pop("correlation_key"), **values)
