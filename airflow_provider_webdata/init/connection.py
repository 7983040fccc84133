"""The connection that `airflow webdata init` creates or updates."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_webdata.airflow_db import connections
from airflow_provider_webdata.airflow_db.connections import Connection
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.hooks.webdata import WebDataHook

if TYPE_CHECKING:
    from airflow_provider_webdata.api.servers import Kind

_SECRET_BYTES = 32
_PORTS = {"http": 80, "https": 443}


def existing(conn_id: str, *, replace: bool) -> Connection:
    """Return the stored connection with this id, or a new one that is not stored yet.

    :param replace: accept an existing connection.
    :raises ConfigurationError: the connection cannot be created or updated; the message says what to do instead.
    """
    new = Connection(conn_id=conn_id, conn_type=WebDataHook.conn_type)
    if new.conn_id != conn_id:
        raise ConfigurationError(
            f"--conn-id is {conn_id!r}; an id has at most 250 letters, digits, and the characters _ # ! ( ) - . : / \\"
        )
    if backend := connections.backend_with(conn_id):
        raise ConfigurationError(
            f"connection {conn_id!r} comes from {backend}, which takes precedence over Airflow's database; remove it "
            "there, or choose another id with --conn-id"
        )
    found = connections.stored_connection(conn_id)
    if found is None:
        return new
    if found.conn_type != WebDataHook.conn_type:
        raise ConfigurationError(
            f"connection {conn_id!r} is of type {found.conn_type!r}; choose another id with --conn-id"
        )
    if not replace:
        raise ConfigurationError(
            f"connection {conn_id!r} exists; --force updates its address and key and keeps its other fields, "
            "--conn-id creates another one"
        )
    return found


def fill_in(
    connection: Connection, base_url: str, key: str, webhook_url: str, server: Kind | None = None
) -> None:
    """Set these fields of a connection, and a webhook secret if it has none; its other fields are unchanged.

    :param key: the API key; empty for a self-hosted server that requires none.
    :param webhook_url: public address of this Airflow; empty for none.
    :param server: the kind of server. None: the stored one, or self-hosted without a key.
    :raises ConfigurationError: a field is invalid; the message names it.
    """
    extra = {
        # Keep an existing secret: the webhooks of monitors contain it.
        "webhook_secret": secrets.token_hex(_SECRET_BYTES),
        **connection.extra_dejson,
        "webhook_url": webhook_url,
    }
    if server is None and not key and not extra.get("server"):
        server = "self-hosted"
    if server is not None:
        extra["server"] = server
    connection.host, connection.schema, connection.port = base_url, None, None
    connection.password = key
    connection.extra = json.dumps({name: value for name, value in extra.items() if value != ""})
    parts = urlsplit(settings_of(connection).client.base_url)
    # Separate, because the form of Airflow 3.3.1 and 3.3.2 tests no connection without a port.
    connection.port = parts.port or _PORTS[parts.scheme]
    connection.host = parts._replace(netloc=parts.netloc.removesuffix(f":{connection.port}")).geturl()


def set_server(connection: Connection, kind: Kind) -> None:
    """Set the kind of a connection's server.

    :raises ConfigurationError: a hosted server needs a key, which is missing.
    """
    connection.extra = json.dumps({**connection.extra_dejson, "server": kind})
    if not connection.password and kind == "hosted":
        raise ConfigurationError(
            "the server reports a balance, so it bills calls and needs an API key; enter one, or any text if a gateway "
            "adds the key"
        )


def store(connection: Connection) -> None:
    """Insert or update a connection.

    :raises ConfigurationError: the database refuses it.
    """
    try:
        connections.store(connection)
    except SQLAlchemyError as error:
        # The error's text contains the values.
        raise ConfigurationError(
            f"Airflow's database refuses the connection: {type(error).__name__}"
        ) from None


def address(connection: Connection) -> str | None:
    """Return the base URL of a connection; None if it is missing or invalid."""
    try:
        return settings_of(connection).client.base_url
    except ConfigurationError:
        return None
