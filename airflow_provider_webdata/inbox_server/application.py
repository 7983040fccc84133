"""The inbox of this Airflow: its database, its connections, its configuration."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

from airflow._shared.secrets_masker import mask_secret

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.connection import webhook_settings_of
from airflow_provider_webdata.hooks.masking import mask
from airflow_provider_webdata.inbox_server.airflow_connections import (
    UndecryptableError,
    find_webdata_connection,
)
from airflow_provider_webdata.inbox_server.db_manager import make_tables
from airflow_provider_webdata.inbox_server.http.app import InboxApplication
from airflow_provider_webdata.inbox_server.http.auth import Gate
from airflow_provider_webdata.inbox_server.http.responses import retry_later
from airflow_provider_webdata.inbox_server.options import (
    creates_tables,
    freezes_objects,
    max_body_bytes,
    retention_days,
)
from airflow_provider_webdata.inbox_server.storage.errors import StoreUnavailableError
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)


def create_application() -> InboxApplication:
    """Return the inbox of this Airflow: its database, its connections, its configuration.

    :raises StoreUnavailableError: this process has no access to Airflow's database.
    :raises OptionError: an option of `[webdata]` cannot be used.
    """
    inbox = Inbox(prepare=make_tables if creates_tables() else None)
    application = InboxApplication(inbox, _gate, most_bytes=max_body_bytes(), keep_days=retention_days())
    # An API server holds hundreds of thousands of permanent objects. Scanning all of them for garbage, several times
    # a second under load, stops every request for a third of a second.
    if freezes_objects():
        gc.freeze()
    return application


def application_or_unavailable() -> ASGIApp:
    """Return the inbox of this Airflow; if it is unavailable, an application that answers 503 until a restart.

    For the plugin: an error could only reach the sender of a delivery.
    """
    try:
        application = create_application()
        # Alone in a DMZ, the inbox may write no other tables: the API servers register what it stores.
        application.inbox.asset_events.start()
        return application
    except (StoreUnavailableError, ValueError) as error:
        log.error("The inbox cannot start; deliveries get a 503: %s", error)

        async def unavailable(scope: Scope, receive: Receive, send: Send) -> None:
            await retry_later(503, "the inbox is not set up, see its log", 60)(scope, receive, send)

        return unavailable


def _gate(conn_id: str) -> Gate:
    """Return the gate of an Airflow connection, a closed one if there is none that receives deliveries.

    :raises StoreUnavailableError: it is not known whether there is one.
    """
    connection = find_webdata_connection(conn_id)
    if connection is None:
        return Gate.closed(conn_id)
    try:
        webhook = webhook_settings_of(connection)
    except ConfigurationError as error:
        log.error("Deliveries for a connection with unusable settings are refused: %s", error)
        return Gate.closed(conn_id)
    except Exception as error:  # noqa: BLE001
        # The extras are decrypted when they are read.
        raise UndecryptableError.of(conn_id, error) from None
    # Airflow has two maskers, the core's and the SDK's.
    for secret in (*webhook.secrets, *webhook.signing_secrets):
        mask([secret])
        mask_secret(secret)
    return Gate.of(conn_id, webhook)
