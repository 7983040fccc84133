"""Checks that use Airflow's database: the inbox's tables, the last deliveries, and the triggerer."""

from __future__ import annotations

from datetime import timezone
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_webdata.airflow_db.components import triggerers, work_of_triggerers
from airflow_provider_webdata.airflow_db.database import airflow_engine, store_error
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.base.service_task import is_deferrable
from airflow_provider_webdata.common.dates import ago
from airflow_provider_webdata.common.links import docs_link
from airflow_provider_webdata.hooks.webhooks import can_receive
from airflow_provider_webdata.inbox_server import db_manager
from airflow_provider_webdata.inbox_server.options import creates_tables
from airflow_provider_webdata.inbox_server.storage.asset_events import unjudged_assets
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore

from .finding import ok, unknown, warning, wrong

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.connection import ConnectionSettings

    from .finding import Finding

_MAX_MONITORS = 10
_MAX_DELIVERIES = 20
_START_TRIGGERER = (
    "Start one with `airflow triggerer`. Until then, use deferrable=False, which waits in the worker."
)
_WHERE = "Run the doctor where Airflow's database is reachable: on a scheduler or the API server."
_DATABASE = "Check that the database is running, and check [database] sql_alchemy_conn."


def tables(*, needed: bool = True) -> Finding:
    """Check that the inbox's tables exist at this package's revision.

    :param needed: whether a connection receives deliveries, which the tables store.
    """
    try:
        engine = airflow_engine()
    except StoreUnavailableError as error:
        return unknown(error.brief(), _WHERE)
    try:
        current = DeliveryStore(engine).revision()
    except StoreUnavailableError as error:
        return wrong(error.brief(), _DATABASE)
    if current == db_manager.revisions()[0]:
        return ok(f"up to date (revision {current})")
    if current and current not in db_manager.revisions():
        return wrong(
            f"at revision {current}, created by a newer airflow-provider-webdata",
            "Install that version here too, or first downgrade the tables with it: "
            + docs_link("webhooks.md#the-tables"),
        )
    seen = f"at the old revision {current}" if current else "missing"
    if creates_tables():
        return ok(f"{seen}; the inbox creates them at its first request")
    advice = (
        "Run `airflow db migrate`, or set inbox_create_tables = True in [webdata] of Airflow's configuration."
    )
    if needed:
        return wrong(f"{seen}, so the inbox cannot store deliveries", advice)
    return warning(f"{seen}; no connection has a Webhook URL, which requires them", advice)


def triggerer() -> Finding:
    """Check that a triggerer runs, or that no task or watcher needs one yet."""
    try:
        alive, last_heartbeat = triggerers()
        deferred, watchers = (0, 0) if alive else work_of_triggerers()
    except StoreUnavailableError as error:
        return unknown(error.brief(), _WHERE)
    except SQLAlchemyError as error:
        reason = store_error(error)
        if isinstance(reason, TablesMissingError):
            return wrong("Airflow's own tables are missing", "Run `airflow db migrate`.")
        return wrong(reason.brief(), _DATABASE)
    if alive:
        return ok(f"{len(alive)} running ({', '.join(sorted(set(alive))[:5])})")
    last = f"; the last heartbeat was {ago(last_heartbeat)}" if last_heartbeat else ""
    waiting = [_counted(deferred, "deferred task"), _counted(watchers, "asset watcher")]
    waiting += ["[operators] default_deferrable = True"] if is_deferrable(None) else []
    if needs := ", ".join(filter(None, waiting)):
        return wrong(f"no triggerer is running{last}, but needed by: {needs}", _START_TRIGGERER)
    if last:
        return wrong(f"no triggerer is running{last}, so deferred tasks never resume", _START_TRIGGERER)
    return warning(
        "no triggerer is running, and nothing needs one yet",
        "Before you use deferrable=True or a watcher, start one with `airflow triggerer` (`airflow standalone` does).",
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""


def last_delivery(settings: ConnectionSettings, *, names: bool = True) -> Finding:
    """Report the last delivery of a connection, those that failed to start DAGs, and checks without judgments.

    :param names: whether the finding names monitors, which belong to DAGs.
    """
    if not can_receive(settings):
        return ok("none expected: tasks wait by polling")
    try:
        store = DeliveryStore(airflow_engine())
        found = store.last_received(settings.conn_id)
        failed = [str(delivery_id) for delivery_id in store.without_event(settings.conn_id)]
        unjudged = unjudged_assets(airflow_engine(), settings.conn_id)
    except TablesMissingError:
        return unknown("see tables")
    except StoreUnavailableError as error:
        return unknown(error.brief(), _WHERE)
    if found is None:
        return unknown(
            "the inbox has no deliveries yet",
            "Run a task that waits for a job or check by webhook, then run the doctor again.",
        )
    if failed:
        ids = " ".join(failed[:_MAX_DELIVERIES])
        more = " Then run the doctor again for the next ones." if len(failed) > _MAX_DELIVERIES else ""
        return wrong(
            f"the asset events of {len(failed)} could not be registered, so they started no DAG",
            f"Find the cause in the API server's log, fix it, and run `airflow webdata inbox replay {ids}`.{more}",
        )
    if unjudged:
        monitors = ", ".join(map(repr, unjudged[:_MAX_MONITORS]))
        if not names:
            monitors = f"{_counted(len(unjudged), 'monitor')} (`airflow webdata doctor` names them)"
        return warning(
            f"no page of the last check was judged, so DAGs on only_if_meaningful run after each change: {monitors}",
            "Give the monitor a goal, and webhook_events=['monitor.check.completed', 'monitor.page'].",
        )
    return ok(f"the last one arrived {ago(found)} ({found.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC)")
