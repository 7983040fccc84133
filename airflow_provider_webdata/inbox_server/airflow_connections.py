"""Connection lookup that distinguishes missing from unavailable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow.configuration import ensure_secrets_loaded
from airflow.models.connection import sanitize_conn_id
from cryptography.fernet import InvalidToken

from airflow_provider_webdata.inbox_server.storage.database import error_code
from airflow_provider_webdata.inbox_server.storage.errors import StoreUnavailableError

if TYPE_CHECKING:
    from airflow.models.connection import Connection

_NO_RIGHTS = ("42501", 1142)
"""Error codes of PostgreSQL and MySQL for missing read permission on a table."""

_ACCESS_DENIED = "AirflowSecretsBackendAccessDenied"
"""The error by which a backend stops the lookup in further backends; Airflow 3.2 has none."""


class UndecryptableError(StoreUnavailableError):
    """A connection was encrypted with another Fernet key."""

    @classmethod
    def of(cls, conn_id: str, error: Exception) -> UndecryptableError:
        """Return the error for a connection."""
        return cls(
            f"connection {conn_id!r} cannot be decrypted ({type(error).__name__}). Set [core] fernet_key to the key "
            "that encrypted it"
        )


_DOT_SEGMENT = re.compile(r"(^|[/\\])\.*($|[/\\])")
"""A path segment that would leave the connections' folder in backends that build paths from ids."""


def is_conn_id(text: str) -> bool:
    """Return whether a text is a valid connection id by Airflow's rule, without dot segments.

    The inbox and the UI pages query secrets backends only for valid ids.
    """
    return sanitize_conn_id(text) == text and not _DOT_SEGMENT.search(text)


def find_connection(conn_id: str) -> Connection | None:
    """Return a connection, or None if no backend has it.

    Airflow's own lookup treats a failed backend like one without the connection. This function does so only for a
    database whose connections this process may not read. Invalid ids reach no backend; see `is_conn_id`.

    :raises UndecryptableError: the connection's password was encrypted with another key.
    :raises StoreUnavailableError: a backend that may have the connection failed.
    """
    if not is_conn_id(conn_id):
        return None
    failures = []
    for backend in ensure_secrets_loaded():
        try:
            connection: Connection | None = backend.get_connection(conn_id=conn_id)
        except Exception as error:  # noqa: BLE001, PERF203
            if isinstance(error, InvalidToken):
                raise UndecryptableError.of(conn_id, error) from None
            if error_code(getattr(error, "orig", None)) in _NO_RIGHTS:
                continue
            failures.append(f"{type(backend).__name__} failed ({type(error).__name__})")
            if type(error).__name__ == _ACCESS_DENIED:
                break
        else:
            if connection is not None:
                return connection
    if failures:
        raise StoreUnavailableError(f"connection {conn_id!r} cannot be read: {', '.join(failures)}")
    return None


def find_webdata_connection(conn_id: str) -> Connection | None:
    """Return a connection of type `webdata`, or None; see `find_connection`."""
    connection = find_connection(conn_id)
    return connection if connection is not None and connection.conn_type == "webdata" else None


def named_connection(conn_id: str) -> Connection:
    """Return the connection of type `webdata` that a command's user named.

    :raises SystemExit: the connection is missing or of another type.
    :raises StoreUnavailableError: see `find_connection`.
    """
    connection = find_connection(conn_id)
    if connection is None:
        raise SystemExit(f"Connection {conn_id!r} does not exist. Set --conn-id")
    if connection.conn_type != "webdata":
        raise SystemExit(
            f"Connection {conn_id!r} is of type {connection.conn_type!r}. Set --conn-id to one of type webdata"
        )
    return connection
