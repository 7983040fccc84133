# SPDX-License-Identifier: Apache-2.0
"""The managed webhook, which the service calls to report to this Airflow's inbox, and the inbox's address."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from airflow.sdk import conf

from airflow_provider_webdata.api.errors import ConfigurationError, WebDataError
from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.inbox.reader import InboxAddress, InboxReader
from airflow_provider_webdata.inbox.wire import SECRET_HEADER, delivery_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.hooks.connection import ConnectionSettings

_EXECUTION_PATH = "/execution"


def new_key() -> str:
    """Return an unguessable correlation key."""
    return secrets.token_urlsafe(24)


def can_receive(settings: ConnectionSettings) -> bool:
    """Return whether deliveries can reach this Airflow: the connection has a public URL and a secret."""
    return bool(settings.webhook.url and (settings.webhook.secret or settings.webhook.signing_secret))


def inbox_error(settings: ConnectionSettings) -> WebDataError | None:
    """Return why the connection's inbox does not answer, so that waits must poll; None if it answers.

    :param settings: of a connection that can receive deliveries.
    """
    try:
        with InboxReader(inbox_address(settings)) as inbox:
            inbox.check()
    except WebDataError as error:
        return error
    return None


def no_deliveries_reason(settings: ConnectionSettings) -> str:
    """Return the error message for a wait by webhook if `can_receive` is false."""
    return (
        f"The inbox cannot receive deliveries: connection {settings.conn_id!r} has no webhook_url with a "
        "webhook_secret or signing_secret. Set them, or wait by polling"
    )


def webhook_for(
    settings: ConnectionSettings,
    key: str,
    events: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the managed webhook, with wire names. It contains the webhook secret: keep it out of logs and XCom.

    :param key: correlation key, from `new_key`.
    :param events: names of the events to report. None: all.
    :param metadata: strings that every delivery carries.
    :raises ConfigurationError: the connection has no public URL or no secret.
    """
    webhook = settings.webhook
    if not can_receive(settings) or webhook.url is None:
        missing = "webhook_url" if not webhook.url else "webhook_secret (or signing_secret)"
        raise ConfigurationError(
            f"connection {settings.conn_id!r}: {missing} is not set, so no webhook can reach this Airflow; "
            "set it, or wait by polling"
        )
    made: dict[str, Any] = {"url": delivery_url(webhook.url, settings.conn_id, key)}
    if webhook.secret:
        made["headers"] = {SECRET_HEADER: webhook.secret}
    if events is not None:
        made["events"] = as_list("events", events)
    if metadata:
        made["metadata"] = dict(metadata)
    return made


def inbox_url(settings: ConnectionSettings) -> str:
    """Return the base URL of the inbox to read, without the inbox's own path.

    The connection's `inbox_url`, else `[webdata] inbox_url`, else the URL at which workers and triggerers reach the API
    server: `[core] execution_api_server_url`, else `[api] base_url`, else this machine's, as in Airflow's workers.
    """
    return str(
        settings.webhook.inbox_url
        or conf.get("webdata", "inbox_url", fallback="")
        or conf.get("core", "execution_api_server_url", fallback="").rstrip("/").removesuffix(_EXECUTION_PATH)
        or _api_server_url()
    ).rstrip("/")


def _api_server_url() -> str:
    """Return `[api] base_url`, which may be only a path or empty: then the host is this machine."""
    base_url = conf.get("api", "base_url", fallback="")
    if base_url and not base_url.startswith("/"):
        return str(base_url)
    scheme = "https" if conf.get("api", "ssl_cert", fallback="") else "http"
    return f"{scheme}://localhost:{conf.get('api', 'port', fallback='8080')}{base_url}"


def inbox_address(settings: ConnectionSettings) -> InboxAddress:
    """Return the URL, secret, and TLS settings for reading the connection's deliveries.

    The API server's certificate is verified against Airflow's own (`[api] ssl_cert`) and the connection's CA bundle.

    :raises ConfigurationError: the connection has no secret.
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
