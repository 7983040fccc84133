"""Asset events of completed checks and jobs, registered by the API server: they start DAGs without a triggerer.

A thread reads stored deliveries from a cursor onward. One transaction queues the deliveries that start a DAG and
advances the cursor. It then registers the oldest queued event that changes a scheduled asset, for each monitor and job
kind, unless a DAG has not yet started its run for the previous event: Airflow would merge both into one run, or lose
the later one. If a server dies, another server or the next start continues. Servers take turns, because the cursor's
row is locked from the start of the transaction.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow.assets.manager import asset_manager
from airflow.models.asset import (
    AssetDagRunQueue,
    AssetModel,
    DagScheduleAssetAliasReference,
    DagScheduleAssetNameReference,
    DagScheduleAssetReference,
    DagScheduleAssetUriReference,
)
from airflow.models.dag import DagModel
from sqlalchemy import and_, case, func, or_, select, tuple_, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from airflow_provider_webdata.assets.uri import SCHEME, job_uri, monitor_uri
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.common.page_urls import check_page, job_page, page_url
from airflow_provider_webdata.inbox.envelope import NotJSONError, first_of, parse_body, split_event
from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES, MONITOR_NAME
from airflow_provider_webdata.states.checks import CHECK_COMPLETED
from airflow_provider_webdata.states.jobs import JOB_COMPLETED, JobView

from . import sequencer
from .database import insert_or_ignore, lone_statement, store_error, transaction
from .errors import RefusedError, StoreUnavailableError, TablesMissingError
from .tables import FAILED, QUEUED, REGISTERED, asset_event, counter, delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sqlalchemy.engine import Connection, Engine

    from .records import NewDelivery
    from .store import DeliveryStore

log = logging.getLogger(__name__)

INTERVAL = 5.0
"""Poll interval in seconds for deliveries that other servers stored, and the delay after a failure."""
SHORTEST_PAUSE = 0.25
"""Seconds until the first check for DAGs that have started their runs for an event; doubles with each check."""
ROUND = 200
"""Maximum number of deliveries, and of registered events, in one transaction."""

_CURSOR_ROW = 2
_CHECK = split_event(CHECK_COMPLETED)[1]
_MONITOR_OPERATIONS = ("", "monitor")

# Excludes assets with a watcher, which handles them. Airflow keeps watchers only for assets with an active DAG, too.
_SCHEDULED = select(AssetModel).where(
    AssetModel.uri.startswith(f"{SCHEME}://", autoescape=True),
    AssetModel.active.has(),
    AssetModel.scheduled_dags.any(
        DagScheduleAssetReference.dag.has(DagModel.is_stale.is_(False) & DagModel.is_paused.is_(False))
    ),
    ~AssetModel.watchers.any(),
)
# A DAG that also waits for other assets may never start its run.
_SCHEDULED_ON_ONE = (
    select(DagScheduleAssetReference.dag_id)
    .group_by(DagScheduleAssetReference.dag_id)
    .having(func.count() == 1)
)
_OTHER_REFERENCES = (
    DagScheduleAssetAliasReference,
    DagScheduleAssetNameReference,
    DagScheduleAssetUriReference,
)
_UNCONSUMED = (
    select(AssetDagRunQueue.asset_id)
    .join(DagModel, DagModel.dag_id == AssetDagRunQueue.target_dag_id)
    .where(
        DagModel.is_stale.is_(False),
        DagModel.is_paused.is_(False),
        DagModel.dag_id.in_(_SCHEDULED_ON_ONE),
        *(DagModel.dag_id.not_in(select(reference.dag_id)) for reference in _OTHER_REFERENCES),
    )
)
_CURSOR = select(counter.c.last_position).where(counter.c.id == _CURSOR_ROW)
# Locks without a prior read, which SQLite could not upgrade to a write.
_LOCK = update(counter).where(counter.c.id == _CURSOR_ROW).values(last_position=counter.c.last_position)
_SMALL_BODY = case((delivery.c.size <= INLINE_BODY_BYTES, delivery.c.body)).label("body")
_DELIVERIES = select(
    *(
        delivery.c[name]
        for name in ("id", "position", "conn_id", "name", "operation", "monitor_id", "job_id")
    ),
    _SMALL_BODY,
)
_COMPLETED = _DELIVERIES.where(
    or_(
        and_(
            delivery.c.name == _CHECK,
            delivery.c.operation.in_(_MONITOR_OPERATIONS),
            delivery.c.monitor_id.is_not(None),
        ),
        and_(delivery.c.name == JOB_COMPLETED, delivery.c.operation.in_(ALL_JOB_KINDS)),
    ),
    delivery.c.job_id.is_not(None),
)
_ANY_QUEUED = select(asset_event.c.delivery_id).where(asset_event.c.state == QUEUED).limit(1)
# Without bodies: the queue of a paused DAG may be long.
_QUEUED_IDS = (
    select(asset_event.c.delivery_id).where(asset_event.c.state == QUEUED).order_by(asset_event.c.delivery_id)
)


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
        # Ids of queued deliveries that change none of these assets. Ids are never reused.
        self._passed: set[int] = set()
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
            uris = connection.scalars(_SCHEDULED.with_only_columns(AssetModel.uri))
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
        payload = _payload_of(new.body if len(new.body) <= INLINE_BODY_BYTES else None)
        return not scheduled.isdisjoint(
            _uris_of(new.conn_id, envelope.name, operation, envelope.monitor_id, payload)
        )

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
            return str(error)
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
            assets = {asset.uri: asset for asset in session.scalars(_SCHEDULED)}
            scheduled = _by_connection(assets)
            rows = _completed_between(connection, scheduled, cursor, end)
            for row in rows:
                if not scheduled[row.conn_id].isdisjoint(_uris_of_row(row)):
                    _queue(connection, row)
            is_full = len(rows) == ROUND
            processed = rows[-1].position if is_full else end
            if processed > cursor:
                connection.execute(_LOCK.values(last_position=processed))
            passed = self._passed if scheduled == self._scheduled else set()
            registered, held = _register_oldest(session, connection, assets, passed, callbacks)
            session.commit()
        self._cursor = processed
        self._scheduled, self._passed = scheduled, passed
        self._outdated_at = time.monotonic() + INTERVAL
        self._waiting = registered or held
        if registered:
            self._pause = SHORTEST_PAUSE / 2
        else:
            self._pause = min(2 * self._pause, INTERVAL) if held else INTERVAL
        for call in callbacks:
            call()
        return is_full or registered


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


def _key_of(row: Any) -> dict[str, Any]:
    subject = _subject_of(row.name, row.operation, row.monitor_id)
    return {"conn_id": row.conn_id, "subject": subject, "job_id": row.job_id}


def _queue(connection: Connection, row: Any) -> None:
    """Queue a delivery's event once, and again if its registration failed."""
    key, queued = _key_of(row), {"delivery_id": row.id, "state": QUEUED}
    new = insert_or_ignore(asset_event, connection.dialect).values(**key, **queued)
    if not connection.execute(new).rowcount:
        failed = update(asset_event).filter_by(**key, state=FAILED)
        connection.execute(failed.values(queued))


def _register_oldest(
    session: Session,
    connection: Connection,
    assets: Mapping[str, AssetModel],
    passed: set[int],
    callbacks: list[Callable[[], None]],
) -> tuple[bool, bool]:
    """Register the oldest queued event of each subject that changes a scheduled asset and whose DAGs are ready.

    :param passed: ids of deliveries that change no scheduled asset, to skip; extended by the ids found.
    :param callbacks: extended by the calls to make after the commit.
    :return: whether any event left the queue, and whether any waits for a DAG.
    """
    registered, held = 0, False
    unconsumed = set(session.scalars(_UNCONSUMED))
    queued = _QUEUED_IDS.where(asset_event.c.conn_id.in_(_by_connection(assets)))
    decided: set[tuple[str, str]] = set()
    ids: Sequence[int] = connection.scalars(queued.limit(ROUND)).all() if assets else ()
    while ids:
        unknown = [delivery_id for delivery_id in ids if delivery_id not in passed]
        found = _DELIVERIES.where(delivery.c.id.in_(unknown)).order_by(delivery.c.id)
        for row in connection.execute(found).all() if unknown else ():
            key = _key_of(row)
            subject = (key["conn_id"], key["subject"])
            if subject in decided:
                continue
            changed = {assets[uri].id: assets[uri] for uri in sorted(_uris_of_row(row) & assets.keys())}
            if not changed:
                passed.add(row.id)
                continue
            decided.add(subject)
            if not unconsumed.isdisjoint(changed):
                held = True
                continue
            state = _register(session, changed.values(), row, callbacks)
            connection.execute(update(asset_event).filter_by(**key).values(state=state))
            unconsumed.update(changed)
            registered += 1
            if registered == ROUND:
                return True, held
        # Far fewer rows than the queue: the events of a burst have one subject.
        more = queued.where(asset_event.c.delivery_id > ids[-1])
        if decided:
            more = more.where(tuple_(asset_event.c.conn_id, asset_event.c.subject).not_in(decided))
        ids = connection.scalars(more.limit(ROUND)).all()
    return registered > 0, held


def _register(
    session: Session, assets: Iterable[AssetModel], row: Any, callbacks: list[Callable[[], None]]
) -> str:
    """Register a delivery's event atomically; return its state.

    :raises SQLAlchemyError: the database is unavailable.
    """
    extra = {"payload": _facts_of(row, _payload_of(row.body))}
    notifications: list[Callable[[], None]] = []
    try:
        with session.begin_nested():
            for asset in assets:
                # Airflow 3.2 ignores the sink and notifies its listeners before the commit.
                asset_manager.register_asset_change(
                    asset=asset, extra=extra, session=session, callback_sink=notifications
                )
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
    callbacks.extend(notifications)
    return REGISTERED


def _payload_of(body: bytes | None) -> dict[str, Any]:
    try:
        payload = parse_body(body or b"{}")
    except NotJSONError:
        payload = {}
    return payload if isinstance(payload, dict) else {}


def _subject_of(name: str | None, operation: str, monitor_id: str | None) -> str:
    """Return the monitor's id or the job's kind of a completed check or job; an empty string for other deliveries."""
    if name == JOB_COMPLETED:
        return operation if operation in ALL_JOB_KINDS else ""
    is_check = name == _CHECK and operation in _MONITOR_OPERATIONS
    return monitor_id if is_check and monitor_id and monitor_id.strip() else ""


def _uris_of_row(row: Any) -> set[str]:
    return _uris_of(row.conn_id, row.name, row.operation, row.monitor_id, _payload_of(row.body))


def _uris_of(
    conn_id: str, name: str | None, operation: str, monitor_id: str | None, payload: Mapping[str, Any]
) -> set[str]:
    """Return the assets that a delivery changes: a monitor's by id and, with a managed webhook, by name."""
    subject = _subject_of(name, operation, monitor_id)
    if not subject:
        return set()
    if name == JOB_COMPLETED:
        return {job_uri(subject, conn_id)}
    metadata = payload.get("metadata")
    named = metadata.get(MONITOR_NAME) if isinstance(metadata, dict) else None
    monitors = [subject, named] if isinstance(named, str) and named.strip() else [subject]
    return {monitor_uri(monitor, conn_id) for monitor in monitors}


def _facts_of(row: Any, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about the check or job, in the format of the triggers' events."""
    data = first_of(payload)
    facts = {"conn_id": row.conn_id, "via": "webhook", "delivery_id": row.id}
    if row.name == JOB_COMPLETED:
        view = JobView(row.operation, row.job_id, JOB_COMPLETED)
        return {
            **view.event("webhook"),
            **facts,
            "credits_used": data.get("creditsUsed"),
            "metadata": payload.get("metadata"),
            "page_url": page_url(job_page(row.conn_id, row.operation, row.job_id)),
        }
    return {
        **facts,
        "monitor_id": row.monitor_id,
        "check_id": row.job_id,
        "check_status": data.get("status"),
        "summary": data.get("summary"),
        "page_url": page_url(check_page(row.conn_id, row.monitor_id, row.job_id)),
    }
