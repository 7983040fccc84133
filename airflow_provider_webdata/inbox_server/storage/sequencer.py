# SPDX-License-Identifier: Apache-2.0
"""The order of the feed, in which a cursor never skips a delivery.

Transactions may commit in a different order than they start, so a generated id is not a cursor: a reader that saw 12
would never see 11 if 11 was committed later. Rows are therefore stored without a position. Once they are committed, a
short transaction that locks the counter's row assigns the next positions to all rows that it can see. An open
transaction delays only its own rows and blocks no other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select, update

from airflow_provider_webdata.airflow_db.database import insert_or_ignore

from .tables import counter, delivery

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

ROUND = 1000
"""Target maximum of rows that get a position in one transaction."""

_COUNTER_ROW = 1

_oldest = (
    select(delivery.c.id).where(delivery.c.position.is_(None)).order_by(delivery.c.id).limit(ROUND).subquery()
)
_span = select(func.count(), func.min(_oldest.c.id), func.max(_oldest.c.id)).select_from(_oldest)
_pending = select(delivery.c.id).where(delivery.c.position.is_(None)).limit(1)
_last = select(counter.c.last_position).where(counter.c.id == _COUNTER_ROW)
_state = select(_last.scalar_subquery(), _pending.scalar_subquery())
# Locks on every database without a prior read, which SQLite could not upgrade to a write.
_lock = update(counter).where(counter.c.id == _COUNTER_ROW).values(last_position=counter.c.last_position)

# SQLite's scalar `max`.
_reserve = (
    update(counter)
    .where(counter.c.id == _COUNTER_ROW)
    .values(last_position=func.max(counter.c.last_position, bindparam("now")) + bindparam("count"))
    .returning(counter.c.last_position)
)


def anything_pending(connection: Connection) -> bool:
    """Return whether committed rows without a position exist; takes no lock."""
    return connection.execute(_pending).first() is not None


def has_news(connection: Connection, since: int) -> bool:
    """Return whether deliveries were published after a position or are pending, with one statement."""
    last, pending = connection.execute(_state).one()
    return pending is not None or (last or 0) > since


def end(connection: Connection) -> int:
    """Return the newest position, 0 before the first."""
    return int(connection.execute(_last).scalar() or 0)


def assign_positions(connection: Connection) -> int:
    """Assign the next positions to the oldest rows without one; return their number, at most `ROUND`.

    Positions follow the clock, in microseconds, and are monotonic: after a restore from a backup, new deliveries are
    still beyond all cursors of readers.

    :param connection: inside a transaction, which locks the counter's row from here to its end.
    """
    if connection.execute(_lock).rowcount == 0:
        _create_counter(connection)
        connection.execute(_lock)
    last = end(connection)
    count, lowest, highest = connection.execute(_span).one()
    if not count:
        return 0
    shift = max(last + 1, time.time_ns() // 1000) - lowest
    # Rows in this range that became visible since then are included; rows beyond it wait for the next round.
    within = delivery.c.position.is_(None) & delivery.c.id.between(lowest, highest)
    connection.execute(update(delivery).where(within).values(position=delivery.c.id + shift))
    connection.execute(
        update(counter).where(counter.c.id == _COUNTER_ROW).values(last_position=highest + shift)
    )
    return int(count)


def reserve_positions(connection: Connection, count: int) -> int:
    """Reserve `count` positions for rows of this transaction; return the first. SQLite only.

    SQLite allows one write transaction at a time, so the commit order is the order of these calls.

    :param connection: inside a transaction that excludes all other writers from here to its end.
    :param count: number of positions; unused ones stay unused.
    """
    values = {"now": time.time_ns() // 1000, "count": count}
    last = connection.execute(_reserve, values).scalar()
    if last is None:
        _create_counter(connection)
        last = connection.execute(_reserve, values).scalar_one()
    return int(last) - count + 1


def _create_counter(connection: Connection) -> None:
    new = insert_or_ignore(counter, connection.dialect)
    connection.execute(new.values(id=_COUNTER_ROW, last_position=0))
