"""The inbox of this Airflow: its database, its connections, its configuration."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

from airflow.configuration import conf
from airflow.models.connection import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.inbox.server.db_manager import make_tables, makes_tables
from airflow_provider_webdata.inbox.server.http.app import InboxApplication
from airflow_provider_webdata.inbox.server.http.auth import Gate
from airflow_provider_webdata.inbox.server.http.responses import retry_later
from airflow_provider_webdata.inbox.server.storage.errors import StoreUnavailableError
from airflow_provider_webdata.inbox.server.storage.inbox import Inbox
from airflow_provider_webdata.inbox.server.storage.retention import retention_days

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)


def create_application() -> InboxApplication:
    """Return the inbox of this Airflow: its database, its connections, its configuration.

    :raises StoreUnavailableError: this process has no access to Airflow's database.
    :raises ValueError: an option of `[webdata]` cannot be used.
    """
    inbox = Inbox.open(prepare=make_tables if makes_tables() else None)

    def gate(conn_id: str) -> Gate:
        return _gate(conn_id, inbox.store.end)

    application = InboxApplication(inbox, gate, most_bytes=most_body_bytes(), keep_days=retention_days())
    # An API server holds hundreds of thousands of objects that live as long as it does. Looking through them all
    # for garbage, again and again under load, would stop every request for a third of a second.
    gc.freeze()
    return application


def application_or_unavailable() -> ASGIApp:
    """Return the inbox of this Airflow; where it cannot be had, what answers 503 until the process is restarted.

    Meant for the plugin: there is nobody to raise to but the sender of a delivery.
    """
    try:
        return create_application()
    except (StoreUnavailableError, ValueError) as error:
        log.error("The inbox cannot start; deliveries get a 503: %s", error)

        async def unavailable(scope: Scope, receive: Receive, send: Send) -> None:
            await retry_later(503, "the inbox is not set up, see its log", 60)(scope, receive, send)

        return unavailable


def most_body_bytes() -> int:
    """Return the size of the largest delivery that is accepted (`[webdata] inbox_max_body_mb`, 16).

    :raises ValueError: it is no number above 0.
    """
    megabytes = conf.getfloat("webdata", "inbox_max_body_mb", fallback=16.0)
    if not 0 < megabytes < float("inf"):
        raise ValueError(f"[webdata] inbox_max_body_mb must be above 0 (given: {megabytes})")
    return int(megabytes * 2**20)


def _gate(conn_id: str, database_answers: Callable[[], object]) -> Gate:
    """Return the gate of an Airflow connection, a closed one if there is none that receives deliveries.

    :param conn_id: id of the connection.
    :param database_answers: raises `StoreUnavailableError` if the database does not: Airflow calls a connection
        missing that it could not read.
    """
    try:
        connection = Connection.get_connection_from_secrets(conn_id)
    except AirflowNotFoundException:
        database_answers()
        return Gate.closed(conn_id)
    if connection.conn_type != "webdata":
        return Gate.closed(conn_id)
    try:
        return Gate.of(settings_of(connection))
    except ConfigurationError as error:
        log.error("Deliveries for a connection with unusable settings are refused: %s", error)
        return Gate.closed(conn_id)
