# SPDX-License-Identifier: Apache-2.0
"""The inbox of this Airflow, with its database, connections, and configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.connections import (
    UndecryptableError,
    find_webdata_connection,
)
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.airflow_db.masking import mask_secret
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.hooks.connection import webhook_settings_of
from airflow_provider_webdata.hooks.masking import mask
from airflow_provider_webdata.inbox_server.db_manager import create_tables
from airflow_provider_webdata.inbox_server.http.app import InboxApplication
from airflow_provider_webdata.inbox_server.http.auth import Gate
from airflow_provider_webdata.inbox_server.http.responses import retry_later
from airflow_provider_webdata.inbox_server.options import (
    creates_tables,
    max_body_bytes,
    retention_days,
)
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logger(__name__)


def create_application() -> InboxApplication:
    """Return the inbox of this Airflow, with its database, connections, and configuration.

    :raises StoreUnavailableError: this process has no access to Airflow's database.
    :raises OptionError: an option of `[webdata]` is invalid.
    """
    inbox = Inbox(prepare=create_tables if creates_tables() else None)
    return InboxApplication(inbox, _gate, most_bytes=max_body_bytes())


def application_or_unavailable() -> ASGIApp:
    """Return the inbox of this Airflow; if it is unavailable, an application that responds with 503 until a restart.

    For the plugin, because an exception would reach only the sender of a delivery.
    """
    try:
        days = retention_days()
        application = create_application()
        application.inbox.start_pruning(days)
        # A standalone inbox in a DMZ may write no other tables: the API servers register events for its deliveries.
        application.inbox.asset_events.start()
        return application
    except (StoreUnavailableError, ValueError) as error:
        log.error("The inbox cannot start and responds to deliveries with 503: %s", error)

        async def unavailable(scope: Scope, receive: Receive, send: Send) -> None:
            await retry_later(503, "the inbox is not configured, see its log", 60)(scope, receive, send)

        return unavailable


def _gate(conn_id: str) -> Gate:
    """Return the gate of an Airflow connection; a closed gate if it is missing or receives no deliveries.

    :raises StoreUnavailableError: the lookup failed.
    """
    connection = find_webdata_connection(conn_id)
    if connection is None:
        return Gate.closed(conn_id)
    try:
        webhook = webhook_settings_of(connection)
    except ConfigurationError as error:
        log.error("Rejecting deliveries for a connection with invalid settings: %s", error)
        return Gate.closed(conn_id)
    except Exception as error:  # noqa: BLE001
        # Airflow decrypts the extras on access.
        raise UndecryptableError.of(conn_id, error) from None
    # Airflow has two secrets maskers: docs/contributing/upstream/two_maskers.md
    for secret in (*webhook.secrets, *webhook.signing_secrets):
        mask([secret])
        mask_secret(secret)
    return Gate.of(conn_id, webhook, str(connection.conn_id))
