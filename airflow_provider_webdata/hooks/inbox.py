"""The inbox of a connection: its URL and the key for reader tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.configuration import conf

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.webhooks import inbox_url
from airflow_provider_webdata.inbox.reader import AsyncInboxReader, InboxAddress, InboxReader

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.connection import ConnectionSettings


def inbox_reader(settings: ConnectionSettings) -> InboxReader:
    """Return a reader of a connection's deliveries; see `inbox_address`."""
    return InboxReader(inbox_address(settings))


def async_inbox_reader(settings: ConnectionSettings) -> AsyncInboxReader:
    """Return a reader of a connection's deliveries; see `inbox_address`."""
    return AsyncInboxReader(inbox_address(settings))


def inbox_address(settings: ConnectionSettings) -> InboxAddress:
    """Return the URL, secret, and TLS settings for reading the connection's deliveries.

    The API server's certificate is verified against Airflow's own (`[api] ssl_cert`) and the connection's CA bundle.

    :raises ConfigurationError: the connection has no secret, or the inbox URL is unknown.
    """
    secret = settings.webhook.signing_secret or settings.webhook.secret
    if not secret:
        raise ConfigurationError(
            f"connection {settings.conn_id!r}: webhook_secret (or signing_secret) is not set, so its deliveries "
            "cannot be read; set it, or wait by polling"
        )
    trusted = (conf.get("api", "ssl_cert", fallback=""), settings.client.ca_file)
    return InboxAddress(
        url=inbox_url(settings),
        conn_id=settings.conn_id,
        secret=secret,
        verify=settings.client.verify,
        ca_files=tuple(str(path) for path in trusted if path),
    )
