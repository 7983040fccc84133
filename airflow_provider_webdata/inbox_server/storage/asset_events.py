# SPDX-License-Identifier: Apache-2.0
"""Asset events of completed checks and jobs, registered by the API server: they start DAGs without a triggerer.

A thread reads stored deliveries from a cursor onward. One transaction queues the deliveries that start a DAG, for each
asset that they change, and advances the cursor. It then registers the oldest queued event of each scheduled asset,
unless a DAG has not yet started its run for the asset's previous event: Airflow would merge both into one run, or lose
the later one. No body is read: the delivery's row contains what its event needs. If a server dies, another server or
the next start continues. Servers take turns, because the cursor's row is locked from the start of the transaction.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pydantic_core import from_json
from sqlalchemy import and_, bindparam, delete, func, or_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.assets import (
    ACTIVE,
    QUEUEABLE,
    SCHEDULED,
    UNCONSUMED,
    AssetModel,
    register_event,
)
from airflow_provider_webdata.airflow_db.database import (
    insert_or_ignore,
    lone_statement,
    store_error,
    transaction,
)
from airflow_provider_webdata.airflow_db.errors import RefusedError, StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.assets.uri import is_meaningful_uri, job_uri, monitor_uri
from airflow_provider_webdata.common.job_kinds import DELIVERED_KINDS
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.page_urls import delivery_page, monitor_page, page_url
from airflow_provider_webdata.inbox.envelope import split_event
from airflow_provider_webdata.states.checks import CHECK_COMPLETED, MEANINGFUL_STATUSES
from airflow_provider_webdata.states.jobs import JOB_COMPLETED, JobView

from . import sequencer
from .tables import FAILED, QUEUED, REGISTERED, asset_event, counter, delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sqlalchemy.engine import Connection, Engine

    from .records import NewDelivery
    from .store import DeliveryStore

log = logger(__name__)

INTERVAL = 5.0
"""Poll interval in seconds for deliveries that other servers stored, and the delay after a failure."""
SHORTEST_PAUSE = 0.25
"""Seconds until the first check for DAGs that have started their runs for an event; doubles with each check."""
ROUND = 200
"""Maximum number of deliveries, and of registered events, in one transaction."""

MAX_PAGES = 1000
"""Maximum number of a check's page deliveries that are read to decide whether it is meaningful."""

_CURSOR_ROW = 2
_CHECK = split_event(CHECK_COMPLETED)[1]
_MONITOR_OPERATIONS = ("", "monitor")

_CURSOR = select(counter.c.last_position).where(counter.c.id == _CURSOR_ROW)
# Locks without a prior read, which SQLite could not upgrade to a write.
_LOCK = update(counter).where(counter.c.id == _CURSOR_ROW).values(last_position=counter.c.last_position)
_DELIVERIES = select(
    *(
        delivery.c[name]
        for name in (
            *("id", "position", "conn_id", "name", "operation"),
            *("monitor_id", "monitor_name", "job_id", "facts"),
        )
    )
)
_COMPLETED = _DELIVERIES.where(
    or_(
        and_(
            delivery.c.name == _CHECK,
            delivery.c.operation.in_(_MONITOR_OPERATIONS),
            delivery.c.monitor_id.is_not(None),
        ),
        and_(delivery.c.name == JOB_COMPLETED, delivery.c.operation.in_(DELIVERED_KINDS)),
    ),
    delivery.c.job_id.is_not(None),
)
_QUEUE_AGAIN = (
    update(asset_event)
    .where(
        asset_event.c.asset_id == bindparam("of_asset_id"),
        asset_event.c.job_id == bindparam("of_job_id"),
        asset_event.c.state == FAILED,
    )
    .values(delivery_id=bindparam("of_delivery_id"), state=QUEUED)
)
_ANY_QUEUED = select(asset_event.c.delivery_id).where(asset_event.c.state == QUEUED).limit(1)
# One step in an index for each asset, regardless of the length of its queue.
_OLDEST_QUEUED = (
    select(asset_event.c.delivery_id)
    .where(asset_event.c.state == QUEUED, asset_event.c.asset_id == AssetModel.id)
    .order_by(asset_event.c.delivery_id)
    .limit(1)
    .correlate(AssetModel)
    .scalar_subquery()
)


def unjudged_assets(engine: Engine, conn_id: str) -> list[str]:
    """Return the assets of meaningful checks whose newest event has no judged page, as names or ids of monitors.

    :raises StoreUnavailableError: the database is unavailable, or a table is missing.
    """
    newest = (
        select(asset_event.c.asset_id, func.max(asset_event.c.delivery_id).label("delivery_id"))
        .where(asset_event.c.conn_id == conn_id)
        .group_by(asset_event.c.asset_id)
        .subquery()
    )
    judged = delivery.alias()
    is_judged = (
        select(judged.c.id)
        .where(
            judged.c.conn_id == conn_id,
            judged.c.job_id == delivery.c.job_id,
            judged.c.is_meaningful.is_not(None),
        )
        .exists()
    )
    unjudged = (
        ACTIVE.with_only_columns(AssetModel.uri)
        .join(newest, newest.c.asset_id == AssetModel.id)
        .join(delivery, delivery.c.id == newest.c.delivery_id)
        .where(~is_judged)
        .order_by(AssetModel.uri)
    )
    with transaction(engine) as connection:
        uris = connection.scalars(unjudged).all()
    return [unquote(uri.split("/")[-2]) for uri in uris if is_meaningful_uri(uri)]


class AssetEvents:
    """Registers asset events in a thread that runs from `start` until `close`.

    :param engine: Airflow's engine.
    :param store: the delivery store in Airflow's database.
    """

    def __init__(self, engine: Engine, store: DeliveryStore) -> None:
        self._engine = engine
        self._store = store
        self._cursor = -1
        # The URIs with scheduled DAGs at the last check, by connection.
        self._scheduled: Mapping[str, set[str]] = {}
        self._outdated_at = 0.0
        # At the last check, queued events changed scheduled assets. Others wait for a DAG to be scheduled or unpaused.
        self._waiting = False
        self._pause = INTERVAL
        self._woken = threading.Event()
        self._closing = False

    def start(self) -> None:
        """Register events of deliveries that any server has stored or will store."""
        # A daemon thread: a hanging database must not prevent the process from exiting.
        threading.Thread(target=self._work, name="webdata-asset-events", daemon=True).start()

    def close(self) -> None:
        """Stop the thread. The next start continues at the cursor."""
        self._closing = True
        self._woken.set()

    def notice(self, deliveries: Sequence[NewDelivery]) -> None:
        """Wake the thread if one of the committed deliveries may start a DAG. Does not query the database."""
        if any(self._may_start_dag(new) for new in deliveries):
            self._woken.set()

    def register(self) -> None:
        """Queue the deliveries after the cursor, and register all events for which DAGs are ready.

        :raises StoreUnavailableError: the database is unavailable. The cursor is unchanged.
        """
        if self._store.has_news(self._cursor) or self._waiting or self._may_have_become_ready():
            self._store.publish()
            while self._register_next():
                pass

    def _may_have_become_ready(self) -> bool:
        """Check without a lock for queued events and for changes of the scheduled assets since the last check."""
        with lone_statement(self._engine) as connection:
            if connection.execute(_ANY_QUEUED).first() is None:
                return False
            uris = connection.scalars(SCHEDULED.with_only_columns(AssetModel.uri))
            return _by_connection(uris) != self._scheduled

    def _may_start_dag(self, new: NewDelivery) -> bool:
        envelope = new.envelope
        operation = envelope.operation or ""
        if not _subject_of(envelope.name, operation, envelope.monitor_id):
            return False
        if time.monotonic() > self._outdated_at:
            return True
        scheduled = self._scheduled.get(new.conn_id)
        if not scheduled:
            return False
        uris = _uris_of(new.conn_id, envelope.name, operation, envelope.monitor_id, envelope.monitor_name)
        return not scheduled.isdisjoint(uris)

    def _work(self) -> None:
        failing = False
        while not self._closing:
            failure = self._register_safely()
            if failure and not failing:
                log.warning(
                    "Asset events of completed checks and jobs are delayed, and start no DAGs yet: %s",
                    failure,
                )
            elif failing and not failure:
                log.info("Asset events of completed checks and jobs are registered again")
            failing = bool(failure)
            if failing:
                # Further deliveries must not increase the load on a failing database.
                time.sleep(INTERVAL)
            else:
                self._woken.wait(self._pause)
            self._woken.clear()

    def _register_safely(self) -> str:
        """Register all possible events; return the error for the rest, or an empty string."""
        try:
            self.register()
        except TablesMissingError:
            # Without tables, no delivery was accepted; the sender received this error.
            return ""
        except StoreUnavailableError as error:
            return error.brief()
        except Exception as error:
            # The thread must continue.
            log.debug("Failed to register asset events", exc_info=True)
            return type(error).__name__
        return ""

    def _register_next(self) -> bool:
        """Process the next deliveries in one transaction; return whether there may be more."""
        callbacks: list[Callable[[], None]] = []
        with transaction(self._engine) as connection, Session(connection) as session:
            cursor = _locked_cursor(connection)
            end = sequencer.end(connection)
            assets = {asset.uri: asset for asset in session.scalars(QUEUEABLE)}
            scheduled = _by_connection(session.scalars(SCHEDULED.with_only_columns(AssetModel.uri)))
            rows = _completed_between(connection, _by_connection(assets), cursor, end)
            _queue(connection, assets, rows)
            is_full = len(rows) == ROUND
            processed = rows[-1].position if is_full else end
            if processed > cursor:
                connection.execute(_LOCK.values(last_position=processed))
            registered, held = _register_oldest(session, connection, callbacks)
            session.commit()
        self._cursor = processed
        self._scheduled = scheduled
        self._outdated_at = time.monotonic() + INTERVAL
        self._waiting = bool(registered) or held
        if registered:
            self._pause = SHORTEST_PAUSE / 2
        else:
            self._pause = min(2 * self._pause, INTERVAL) if held else INTERVAL
        for call in callbacks:
            call()
        return is_full or registered > 0


def _locked_cursor(connection: Connection) -> int:
    if connection.execute(_LOCK).rowcount == 0:
        new = insert_or_ignore(counter, connection.dialect)
        connection.execute(new.values(id=_CURSOR_ROW, last_position=0))
        connection.execute(_LOCK)
    return int(connection.execute(_CURSOR).scalar_one())


def _by_connection(uris: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for uri in uris:
        found.setdefault(unquote(urlsplit(uri).netloc), set()).add(uri)
    return found


def _completed_between(
    connection: Connection, conn_ids: Collection[str], after: int, end: int
) -> Sequence[Any]:
    if not conn_ids or end <= after:
        return []
    found = _COMPLETED.where(
        delivery.c.conn_id.in_(conn_ids), delivery.c.position > after, delivery.c.position <= end
    )
    return connection.execute(found.order_by(delivery.c.position).limit(ROUND)).all()


def _queue(connection: Connection, assets: Mapping[str, AssetModel], rows: Iterable[Any]) -> None:
    """Queue the events of deliveries once for each asset, and again if its registration failed."""
    events = [
        {"asset_id": assets[uri].id, "job_id": row.job_id, "conn_id": row.conn_id, "delivery_id": row.id}
        for row in rows
        for uri in _uris_of_row(row) & assets.keys()
        if not is_meaningful_uri(uri) or _is_meaningful(connection, row)
    ]
    if not events:
        return
    new = insert_or_ignore(asset_event, connection.dialect).values(
        [{**event, "state": QUEUED} for event in events]
    )
    if connection.execute(new).rowcount < len(events):
        again = [{f"of_{name}": value for name, value in event.items()} for event in events]
        connection.execute(_QUEUE_AGAIN, again)


def _is_meaningful(connection: Connection, row: Any) -> bool:
    """Return whether a page of a check was judged meaningful, or may have been: its delivery is missing."""
    facts = _facts_of(row)
    summary = facts.get("summary")
    counts = [summary.get(name) for name in MEANINGFUL_STATUSES] if isinstance(summary, dict) else [None]
    known = [count for count in counts if isinstance(count, int)]
    pages = sum(known) if len(known) == len(counts) else MAX_PAGES
    if pages <= 0 or str(facts.get("status")).startswith(("failed", "skipped")):
        return False
    judged = (
        select(delivery.c.is_meaningful)
        .where(
            delivery.c.conn_id == row.conn_id,
            delivery.c.job_id == row.job_id,
            delivery.c.is_meaningful.is_not(None),
            # A replay is no further page.
            delivery.c.replay_of.is_(None),
        )
        .order_by(delivery.c.is_meaningful.desc())
        .limit(min(pages, MAX_PAGES))
    )
    found = connection.scalars(judged).all()
    return any(found) or len(found) < min(pages, MAX_PAGES)


def _register_oldest(
    session: Session, connection: Connection, callbacks: list[Callable[[], None]]
) -> tuple[int, bool]:
    """Register the oldest queued event of each scheduled asset whose DAGs are ready.

    :param callbacks: extended by the calls to make after the commit.
    :return: the number of events that left the queue, and whether any waits for a DAG.
    """
    unconsumed = set(session.scalars(UNCONSUMED))
    queued = session.execute(SCHEDULED.add_columns(_OLDEST_QUEUED).where(_OLDEST_QUEUED.is_not(None))).all()
    ready: dict[int, list[AssetModel]] = {}
    for asset, delivery_id in queued:
        if asset.id not in unconsumed:
            ready.setdefault(delivery_id, []).append(asset)
    oldest = sorted(ready)[:ROUND]
    found = _DELIVERIES.where(delivery.c.id.in_(oldest)).order_by(delivery.c.id)
    rows = connection.execute(found).all() if oldest else ()
    if missing := set(oldest).difference(row.id for row in rows):
        # Deliveries that were deleted meanwhile, by hand or by retention; their events would block their assets.
        connection.execute(delete(asset_event).where(asset_event.c.delivery_id.in_(missing)))
    for row in rows:
        changed = ready[row.id]
        state = _register(session, changed, row, callbacks)
        done = update(asset_event).where(
            asset_event.c.asset_id.in_([asset.id for asset in changed]), asset_event.c.job_id == row.job_id
        )
        connection.execute(done.values(state=state))
    return len(oldest), any(asset.id in unconsumed for asset, _ in queued)


def _register(
    session: Session, assets: Iterable[AssetModel], row: Any, callbacks: list[Callable[[], None]]
) -> str:
    """Register a delivery's event atomically; return its state.

    :raises SQLAlchemyError: the database is unavailable.
    """
    extra = {"payload": _payload_of(row)}
    try:
        callbacks.extend(register_event(session, assets, extra))
    except Exception as error:
        if isinstance(error, SQLAlchemyError) and not isinstance(store_error(error), RefusedError):
            raise
        log.debug("Failed to register the event of delivery %d", row.id, exc_info=True)
        callbacks.append(
            partial(
                log.error,
                "The completed %s %s of connection %s starts no DAG: registering its asset event failed (%s). Later "
                "events continue. Fix the cause, whose traceback this logger writes at level DEBUG, and run `airflow "
                "webdata inbox replay %d`.",
                f"check of monitor {row.monitor_id}" if row.name == _CHECK else row.operation,
                row.job_id,
                row.conn_id,
                type(error).__name__,
                row.id,
            )
        )
        return FAILED
    return REGISTERED


def _subject_of(name: str | None, operation: str, monitor_id: str | None) -> str:
    """Return the monitor's id or the job's kind of a completed check or job; an empty string for other deliveries."""
    if name == JOB_COMPLETED:
        return operation if operation in DELIVERED_KINDS else ""
    is_check = name == _CHECK and operation in _MONITOR_OPERATIONS
    return monitor_id if is_check and monitor_id and monitor_id.strip() else ""


def _uris_of_row(row: Any) -> set[str]:
    return _uris_of(row.conn_id, row.name, row.operation, row.monitor_id, row.monitor_name)


def _uris_of(
    conn_id: str, name: str | None, operation: str, monitor_id: str | None, monitor_name: str | None
) -> set[str]:
    """Return the assets that a delivery may change: a monitor's by id and, with a managed webhook, by name."""
    subject = _subject_of(name, operation, monitor_id)
    if not subject:
        return set()
    if name == JOB_COMPLETED:
        return {job_uri(subject, conn_id)}
    monitors = [subject, monitor_name] if monitor_name and monitor_name.strip() else [subject]
    return {
        monitor_uri(monitor, conn_id, only_if_meaningful=only_if_meaningful)
        for monitor in monitors
        for only_if_meaningful in (False, True)
    }


def _facts_of(row: Any) -> dict[str, Any]:
    """Return the facts in a delivery's body."""
    facts: dict[str, Any] = from_json(row.facts) if row.facts else {}
    return facts


def _payload_of(row: Any) -> dict[str, Any]:
    """Return the facts about the check or job, in the format of the triggers' events."""
    facts = _facts_of(row)
    payload = {"conn_id": row.conn_id, "via": "webhook", "delivery_id": row.id}
    if row.name == JOB_COMPLETED:
        view = JobView(row.operation, row.job_id, JOB_COMPLETED)
        return {
            **view.outcome("webhook").serialize(),
            **payload,
            "credits_used": facts.get("creditsUsed"),
            "metadata": facts.get("metadata"),
            "page_url": page_url(delivery_page(row.id)),
        }
    return {
        **payload,
        "monitor_id": row.monitor_id,
        "check_id": row.job_id,
        "check_status": facts.get("status"),
        "summary": facts.get("summary"),
        "page_url": page_url(monitor_page(row.conn_id, row.monitor_id, row.job_id)),
    }
