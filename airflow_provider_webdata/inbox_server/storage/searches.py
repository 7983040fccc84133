# SPDX-License-Identifier: Apache-2.0
"""Search statements that use an index for any number of deliveries.

A search is a union: one part per kind of value, or per event, finds the ids of its first deliveries through a separate
index. With a single combined condition, a database would scan deliveries in order and check each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, and_, or_, select, union

from airflow_provider_webdata.inbox.envelope import OPERATIONS, split_event

from .tables import delivery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ColumnElement

    from .records import DeliveryFilter

CLOCKS_APART = 3600 * 10**6
"""Maximum clock skew in microseconds between API servers; readers' tokens tolerate far less."""

MAX_EVENT_PARTS = 100
"""Maximum parts of a union. SQLite allows 500."""


_ANY_OF = (
    (delivery.c.correlation_key, "keys"),
    (delivery.c.job_id, "job_ids"),
    (delivery.c.monitor_id, "monitor_ids"),
    (delivery.c.page_hash, "page_hashes"),
)


def selection(
    columns: Sequence[Any],
    conn_id: str,
    wanted: DeliveryFilter,
    limit: int,
    after: int | None = None,
    before: int | None = None,
) -> Select[Any]:
    """Return the statement for published deliveries of a connection.

    :param after: position after which to select, in order; None selects the newest, newest first.
    """
    newest_first = after is None
    common = [delivery.c.conn_id == conn_id]
    bounds = [] if after is None else [after]
    if wanted.received_after is not None:
        # Positions follow the clock, and a delivery gets its position after its receipt.
        bounds.append(int(wanted.received_after.timestamp() * 10**6) - CLOCKS_APART)
        common.append(delivery.c.received_at >= wanted.received_after)
    common.append(delivery.c.position > max(bounds, default=0))
    if wanted.without_started:
        common.append(or_(delivery.c.name.is_(None), delivery.c.name != "started"))
    tops = [] if before is None else [before]
    if wanted.received_before is not None:
        tops.append(int(wanted.received_before.timestamp() * 10**6) + CLOCKS_APART)
        common.append(delivery.c.received_at <= wanted.received_before)
    if tops:
        common.append(delivery.c.position < min(tops))
    parts = [
        _part([*common, *conditions], limit, ordered=ordered, newest_first=newest_first)
        for conditions, ordered in _alternatives(wanted)
    ]
    ids = union(*parts) if len(parts) > 1 else parts[0]
    found = ids.subquery()
    order = found.c.position.desc() if newest_first else found.c.position
    return select(*columns).join(found, found.c.id == delivery.c.id).order_by(order).limit(limit)


def _part(
    conditions: Sequence[ColumnElement[bool]], limit: int, *, ordered: bool, newest_first: bool
) -> Select[Any]:
    # The sum prevents an ordered scan of the position index through all deliveries.
    order = delivery.c.position if ordered else delivery.c.position + 0
    first = (
        select(delivery.c.id, delivery.c.position)
        .where(*conditions)
        .order_by(order.desc() if newest_first else order)
        .limit(limit)
        .subquery()
    )
    return select(first.c.id, first.c.position)


def _alternatives(wanted: DeliveryFilter) -> Iterator[tuple[list[ColumnElement[bool]], bool]]:
    """Return the conditions of each part, and whether an index returns their matches in order."""
    pairs = dict.fromkeys(pair for event in wanted.events for pair in _names(event))
    is_event = [and_(delivery.c.name == name, delivery.c.operation == operation) for operation, name in pairs]
    events = [or_(*is_event)] if is_event else []
    is_dag = [delivery.c.dag_id.in_(wanted.dag_ids)] if wanted.dag_ids else []
    by_value = [(column, values) for column, name in _ANY_OF if (values := getattr(wanted, name))]
    if by_value:
        for column, values in by_value:
            yield [column.in_(values), *is_dag, *events], len(values) == 1
    elif is_dag:
        yield [*is_dag, *events], len(wanted.dag_ids) == 1
    elif 0 < len(is_event) <= MAX_EVENT_PARTS:
        yield from (([one], True) for one in is_event)
    else:
        yield events, True


def _names(event: str) -> list[tuple[str, str]]:
    """Return operation and name of all stored events that `same_event` equates with this one."""
    operation, name = split_event(event)
    return [(known, name) for known in (("", operation) if operation else ("", *OPERATIONS))]
