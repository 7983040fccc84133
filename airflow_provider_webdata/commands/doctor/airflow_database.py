# SPDX-License-Identifier: Apache-2.0
"""Checks that use Airflow's database: the inbox's tables, the last deliveries, and the triggerer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pendulum
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_webdata.airflow_db.components import START_TRIGGERER, triggerers
from airflow_provider_webdata.airflow_db.database import airflow_engine, store_error
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.common.links import docs_link
from airflow_provider_webdata.hooks.webhooks import can_receive
from airflow_provider_webdata.inbox_server import db_manager
from airflow_provider_webdata.inbox_server.options import creates_tables, inbox_enabled
from airflow_provider_webdata.inbox_server.storage.asset_events import unjudged_assets
from airflow_provider_webdata.inbox_server.storage.refusals import next_step
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore

from .finding import failed, passed, skipped, warning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.inbox_server.storage.refusals import RefusedDeliveries

    from .finding import Finding

_MAX_MONITORS = 10
_MAX_DELIVERIES = 20
_MAX_SENDERS = 3
_NEEDS_DATABASE = "The doctor needs Airflow's database: run it on a scheduler or the API server."
_CHECK_DATABASE = (
    "The doctor needs Airflow's database: check that it is running, and check [database] sql_alchemy_conn."
)


def tables() -> Finding:
    """Check that the inbox's tables exist at this package's revision, if the inbox is on."""
    if not inbox_enabled():
        return passed("none needed: the inbox is off")
    try:
        engine = airflow_engine()
    except StoreUnavailableError as error:
        return skipped(error.brief(), _NEEDS_DATABASE)
    try:
        current = DeliveryStore(engine).revision()
    except StoreUnavailableError as error:
        return failed(error.brief(), _CHECK_DATABASE)
    if current == db_manager.revisions()[0]:
        return passed(f"up to date (revision {current})")
    if current and current not in db_manager.revisions():
        return failed(
            f"at revision {current}, created by a newer airflow-provider-webdata",
            "Install that version here too, or first downgrade the tables with it: "
            + docs_link("webhooks.md#the-tables"),
        )
    seen = f"at the old revision {current}" if current else "missing"
    if creates_tables():
        return passed(f"{seen}; the inbox creates them at its first request")
    return failed(
        f"{seen}, so the inbox cannot store deliveries",
        "Run `airflow db migrate`, or set inbox_create_tables = True in [webdata] of Airflow's configuration.",
    )


def triggerer() -> Finding:
    """Check that a triggerer runs, or that no task or watcher needs one yet."""
    try:
        found = triggerers()
    except StoreUnavailableError as error:
        return skipped(error.brief(), _NEEDS_DATABASE)
    except SQLAlchemyError as error:
        reason = store_error(error)
        if isinstance(reason, TablesMissingError):
            return failed("Airflow's own tables are missing", "Run `airflow db migrate`.")
        return failed(reason.brief(), _CHECK_DATABASE)
    if found.hosts:
        return passed(f"{len(found.hosts)} running ({', '.join(sorted(set(found.hosts))[:5])})")
    if problem := found.problem():
        return failed(problem, START_TRIGGERER)
    return warning(
        "no triggerer is running, and nothing needs one yet",
        "Before you use deferrable=True or a watcher, start one with `airflow triggerer` (`airflow standalone` does).",
    )


def last_delivery(settings: ConnectionSettings) -> Finding:
    """Report the last delivery of a connection, those that failed to start DAGs, and checks without judgments."""
    if not can_receive(settings):
        return passed("none expected: tasks wait by polling")
    try:
        store = DeliveryStore(airflow_engine())
        found = store.last_received(settings.conn_id)
        refused = [one for one in store.refusals([settings.conn_id]) if not one.is_before_accepted]
        unregistered = [str(delivery_id) for delivery_id in store.without_event(settings.conn_id)]
        unjudged = unjudged_assets(airflow_engine(), settings.conn_id)
    except TablesMissingError:
        return skipped("see tables" if inbox_enabled() else "the inbox is off")
    except StoreUnavailableError as error:
        return skipped(error.brief(), _NEEDS_DATABASE)
    if found is None and not refused:
        return skipped(
            "the inbox has no deliveries yet",
            "Run a task that waits for a job or check by webhook, then run the doctor again.",
        )
    if unregistered:
        ids = " ".join(unregistered[:_MAX_DELIVERIES])
        more = " Then run the doctor again for the next ones." if len(unregistered) > _MAX_DELIVERIES else ""
        return failed(
            f"the asset events of {len(unregistered)} could not be registered, so they started no DAG",
            f"Find the cause in the API server's log, fix it, and run `airflow webdata inbox replay {ids}`.{more}",
        )
    if found is None or refused:
        return _refused_since(found, refused)
    if unjudged:
        monitors = ", ".join(map(repr, unjudged[:_MAX_MONITORS]))
        return warning(
            f"no page of the last check was judged, so DAGs on only_if_meaningful run after each change: {monitors}",
            "Give the monitor a goal, and webhook_events=['monitor.check.completed', 'monitor.page'].",
        )
    return passed(f"the last one arrived {_ago(found)}")


def _refused_since(accepted: datetime | None, refused: Sequence[RefusedDeliveries]) -> Finding:
    counts: Counter[str] = Counter()
    for one in refused:
        counts[one.text()] += one.number
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    senders = ", ".join([*dict.fromkeys(one.sender or "others" for one in refused)][:_MAX_SENDERS])
    after = (
        "none was accepted"
        if accepted is None
        else f"the last accepted one arrived before it, {_ago(accepted)}"
    )
    return warning(
        f"{counts.total()} refused since {min(one.since for one in refused):%Y-%m-%d %H:%M} UTC: {reasons}, from "
        f"{senders}; the last one {_ago(max(one.last for one in refused))}; {after}",
        next_step([one.reason for one in refused]),
    )


def _ago(moment: datetime) -> str:
    then = pendulum.instance(moment).in_timezone("UTC")
    return f"{then.diff_for_humans()} ({then:%Y-%m-%d %H:%M} UTC)"
