"""The order in which readers see deliveries, such that a cursor never skips one.

Transactions commit in another order than they began, so that a generated id is no cursor: a reader that saw 12 would
never see 11, if 11 was committed later. Rows are therefore stored without a position. Once they are committed, a short
transaction that holds the counter's row assigns the next positions to all rows that it can see. A transaction that is
held open delays only its own rows and blocks no other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select, update

from .database import insert_or_ignore
from .tables import counter, delivery

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

ROUND = 1000
"""Most rows that are meant to get their position in one transaction."""

_COUNTER_ROW = 1

_oldest = (
    select(delivery.c.id).where(delivery.c.position.is_(None)).order_by(delivery.c.id).limit(ROUND).subquery()
)
_span = select(func.count(), func.min(_oldest.c.id), func.max(_oldest.c.id)).select_from(_oldest)
_pending = select(delivery.c.id).where(delivery.c.position.is_(None)).limit(1)
_last = select(counter.c.last_position).where(counter.c.id == _COUNTER_ROW)
_state = select(_last.scalar_subquery(), _pending.scalar_subquery())
# On every database this takes the lock without reading first, which SQLite could not turn into a write later.
_lock = update(counter).where(counter.c.id == _COUNTER_ROW).values(last_position=counter.c.last_position)

# `max` of two values is SQLite's.
_reserve = (
    update(counter)
    .where(counter.c.id == _COUNTER_ROW)
    .values(last_position=func.max(counter.c.last_position, bindparam("now")) + bindparam("count"))
    .returning(counter.c.last_position)
)


def anything_pending(connection: Connection) -> bool:
    """Return whether there are committed rows without position, without locking anything."""
    return connection.execute(_pending).first() is not None


def has_news(connection: Connection, since: int) -> bool:
    """Return whether anything was published after a position, or is committed and has none yet; by one statement."""
    last, pending = connection.execute(_state).one()
    return pending is not None or (last or 0) > since


def end(connection: Connection) -> int:
    """Return the newest position, 0 before the first."""
    return int(connection.execute(_last).scalar() or 0)


def assign_positions(connection: Connection) -> int:
    """Give the oldest rows without position the next ones; return how many there were, at most `ROUND`.

    Positions follow the clock, in microseconds, and never go back: when the database is restored from a backup, what
    is published afterwards still lies beyond all cursors that readers hold.

    :param connection: inside a transaction, which holds the counter's row from here to its end.
    """
    if connection.execute(_lock).rowcount == 0:
        _make_counter(connection)
        connection.execute(_lock)
    last = end(connection)
    count, lowest, highest = connection.execute(_span).one()
    if not count:
        return 0
    shift = max(last + 1, time.time_ns() // 1000) - lowest
    # A row of this span that became visible since gets its position too; one beyond it waits for the next round.
    within = delivery.c.position.is_(None) & delivery.c.id.between(lowest, highest)
    connection.execute(update(delivery).where(within).values(position=delivery.c.id + shift))
    connection.execute(
        update(counter).where(counter.c.id == _COUNTER_ROW).values(last_position=highest + shift)
    )
    return int(count)


def reserve_positions(connection: Connection, count: int) -> int:
    """Return the first of the next `count` positions, for rows that are stored in this transaction. SQLite only.

    There only one transaction at a time can write, so that commits are in the order in which this is called.

    :param connection: inside a transaction that excludes all other writers from here to its end.
    :param count: number of positions; unused ones stay unused.
    """
    values = {"now": time.time_ns() // 1000, "count": count}
    last = connection.execute(_reserve, values).scalar()
    if last is None:
        _make_counter(connection)
        last = connection.execute(_reserve, values).scalar_one()
    return int(last) - count + 1


def _make_counter(connection: Connection) -> None:
    new = insert_or_ignore(counter, connection.dialect)
    connection.execute(new.values(id=_COUNTER_ROW, last_position=0))
