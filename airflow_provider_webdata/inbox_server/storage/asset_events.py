"""Asset events of completed checks, registered by the API server: they start DAGs without a watcher or a triggerer.

A thread reads stored deliveries from a cursor onward. One transaction registers the event, marks its check, and
advances the cursor. When a server dies, another one or the next start continues at the cursor. The cursor's row is
locked from the start of the transaction, so that servers take turns.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow.assets.manager import asset_manager
from airflow.models.asset import AssetModel, DagScheduleAssetReference
from airflow.models.dag import DagModel
from sqlalchemy import case, select, update
from sqlalchemy.orm import Session

from airflow_provider_webdata.assets.monitor import SCHEME, monitor_uri
from airflow_provider_webdata.common.page_urls import check_page, page_url
from airflow_provider_webdata.inbox.envelope import NotJSONError, first_of, parse_body, split_event
from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES, MONITOR_NAME
from airflow_provider_webdata.states.checks import CHECK_COMPLETED

from . import sequencer
from .database import insert_or_ignore, transaction
from .errors import StoreUnavailableError, TablesMissingError
from .tables import asset_event, counter, delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sqlalchemy.engine import Connection, Engine

    from .records import NewDelivery
    from .store import DeliveryStore

log = logging.getLogger(__name__)

INTERVAL = 5.0
"""Seconds between two looks for deliveries that other servers stored, and until a failure is retried."""
ROUND = 200
"""Most deliveries in one transaction."""

_CURSOR_ROW = 2
_NAME = split_event(CHECK_COMPLETED)[1]
_OPERATIONS = ("", "monitor")

# An asset with a watcher is left to it. Airflow keeps watchers only of assets with an active DAG, too.
_SCHEDULED = select(AssetModel).where(
    AssetModel.uri.startswith(f"{SCHEME}://", autoescape=True),
    AssetModel.active.has(),
    AssetModel.scheduled_dags.any(
        DagScheduleAssetReference.dag.has(DagModel.is_stale.is_(False) & DagModel.is_paused.is_(False))
    ),
    ~AssetModel.watchers.any(),
)
_CURSOR = select(counter.c.last_position).where(counter.c.id == _CURSOR_ROW)
# It takes the lock without reading first, which SQLite could not turn into a write later.
_LOCK = update(counter).where(counter.c.id == _CURSOR_ROW).values(last_position=counter.c.last_position)
_SMALL_BODY = case((delivery.c.size <= INLINE_BODY_BYTES, delivery.c.body)).label("body")
_CHECKS = select(
    *(delivery.c[name] for name in ("id", "position", "conn_id", "monitor_id", "job_id")), _SMALL_BODY
).where(
    delivery.c.name == _NAME,
    delivery.c.operation.in_(_OPERATIONS),
    delivery.c.monitor_id.is_not(None),
    delivery.c.job_id.is_not(None),
)


class AssetEvents:
    """Registers asset events in a thread that runs from `start` until `close`.

    :param engine: Airflow's engine.
    :param store: the deliveries in its database.
    """

    def __init__(self, engine: Engine, store: DeliveryStore) -> None:
        self._engine = engine
        self._store = store
        self._cursor = -1
        # The URIs on which DAGs were scheduled at the last look, by connection.
        self._scheduled: Mapping[str, set[str]] = {}
        self._outdated_at = 0.0
        self._woken = threading.Event()
        self._closing = False

    def start(self) -> None:
        """Register what was stored before, and from now on what any server stores."""
        # A daemon: a hanging database must not keep the process from ending.
        threading.Thread(target=self._work, name="webdata-asset-events", daemon=True).start()

    def close(self) -> None:
        """End the thread. The next start continues at the cursor."""
        self._closing = True
        self._woken.set()

    def notice(self, deliveries: Sequence[NewDelivery]) -> None:
        """Wake the thread if one of the committed deliveries may start a DAG. Does not query the database."""
        if any(self._may_start_dag(new) for new in deliveries):
            self._woken.set()

    def register(self) -> None:
        """Register the events of all deliveries after the cursor.

        :raises StoreUnavailableError: the database cannot do it now. The cursor stays where it is.
        """
        if self._store.has_news(self._cursor):
            self._store.publish()
            while self._register_next():
                pass

    def _may_start_dag(self, new: NewDelivery) -> bool:
        envelope = new.envelope
        if envelope.name != _NAME or (envelope.operation or "") not in _OPERATIONS or not envelope.monitor_id:
            return False
        if time.monotonic() > self._outdated_at:
            return True
        scheduled = self._scheduled.get(new.conn_id)
        if not scheduled:
            return False
        payload = _payload_of(new.body if len(new.body) <= INLINE_BODY_BYTES else None)
        return not scheduled.isdisjoint(_uris_of(new.conn_id, envelope.monitor_id, payload))

    def _work(self) -> None:
        failing = False
        while not self._closing:
            failure = self._register_safely()
            if failure and not failing:
                log.warning(
                    "Completed checks start no DAGs now; their events are registered later: %s", failure
                )
            elif failing and not failure:
                log.info("Completed checks start DAGs again")
            failing = bool(failure)
            if failing:
                # Further deliveries must not hurry a database that fails.
                time.sleep(INTERVAL)
            else:
                self._woken.wait(INTERVAL)
            self._woken.clear()

    def _register_safely(self) -> str:
        """Register what is possible; return why something is not, or an empty text."""
        try:
            self.register()
        except TablesMissingError:
            # Without tables, no delivery was accepted: its sender got this error.
            return ""
        except StoreUnavailableError as error:
            return str(error)
        except Exception as error:
            # The thread must live on.
            log.debug("Asset events cannot be registered", exc_info=True)
            return type(error).__name__
        return ""

    def _register_next(self) -> bool:
        """Process the next deliveries in one transaction; return whether there are more."""
        notifications: list[Callable[[], None]] = []
        with transaction(self._engine) as connection, Session(connection) as session:
            cursor = _locked_cursor(connection)
            end = sequencer.end(connection)
            assets = {asset.uri: asset for asset in session.scalars(_SCHEDULED)}
            scheduled = _by_connection(assets)
            rows = _checks_between(connection, scheduled, cursor, end)
            for row in rows:
                payload = _payload_of(row.body)
                uris = _uris_of(row.conn_id, row.monitor_id, payload)
                changed = [asset for uri, asset in assets.items() if uri in uris]
                if changed and _mark(connection, row):
                    extra = {"payload": _facts_of(row, payload)}
                    for asset in changed:
                        # Airflow 3.2 ignores the sink and notifies its listeners before the commit.
                        asset_manager.register_asset_change(
                            asset=asset, extra=extra, session=session, callback_sink=notifications
                        )
            is_full = len(rows) == ROUND
            processed = rows[-1].position if is_full else end
            if processed > cursor:
                connection.execute(_LOCK.values(last_position=processed))
            session.commit()
        self._cursor = processed
        self._scheduled, self._outdated_at = scheduled, time.monotonic() + INTERVAL
        for notify in notifications:
            notify()
        return is_full


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


def _checks_between(connection: Connection, conn_ids: Collection[str], after: int, end: int) -> Sequence[Any]:
    if not conn_ids or end <= after:
        return []
    checks = _CHECKS.where(
        delivery.c.conn_id.in_(conn_ids), delivery.c.position > after, delivery.c.position <= end
    )
    return connection.execute(checks.order_by(delivery.c.position).limit(ROUND)).all()


def _mark(connection: Connection, row: Any) -> bool:
    """Mark a check; return False if it is marked already."""
    new = insert_or_ignore(asset_event, connection.dialect).values(
        conn_id=row.conn_id, monitor_id=row.monitor_id, check_id=row.job_id, delivery_id=row.id
    )
    return bool(connection.execute(new).rowcount)


def _payload_of(body: bytes | None) -> dict[str, Any]:
    try:
        payload = parse_body(body or b"{}")
    except NotJSONError:
        payload = {}
    return payload if isinstance(payload, dict) else {}


def _uris_of(conn_id: str, monitor_id: str, payload: Mapping[str, Any]) -> set[str]:
    """Return the URIs of a check's monitor: by its id and, from a managed webhook, by its name."""
    metadata = payload.get("metadata")
    name = metadata.get(MONITOR_NAME) if isinstance(metadata, dict) else None
    names = [monitor_id, name] if isinstance(name, str) and name.strip() else [monitor_id]
    return {monitor_uri(name, conn_id) for name in names}


def _facts_of(row: Any, payload: dict[str, Any]) -> dict[str, Any]:
    """Return what the event says of the check, in the words of `WebDataMonitorCheckEventTrigger`."""
    data = first_of(payload)
    return {
        "conn_id": row.conn_id,
        "monitor_id": row.monitor_id,
        "check_id": row.job_id,
        "check_status": data.get("status"),
        "summary": data.get("summary"),
        "via": "webhook",
        "delivery_id": row.id,
        "page_url": page_url(check_page(row.conn_id, row.monitor_id, row.job_id)),
    }
