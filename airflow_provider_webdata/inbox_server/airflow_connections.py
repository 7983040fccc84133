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
"""PostgreSQL's and MySQL's code for a table that one may not read."""

_ACCESS_DENIED = "AirflowSecretsBackendAccessDenied"
"""What a backend raises that must be the last one asked; Airflow 3.2 has none such."""


class UndecryptableError(StoreUnavailableError):
    """A connection was encrypted with another Fernet key."""

    @classmethod
    def of(cls, conn_id: str, error: Exception) -> UndecryptableError:
        """Return the error for a connection."""
        return cls(
            f"connection {conn_id!r} cannot be decrypted ({type(error).__name__}): is [core] fernet_key the one that "
            "encrypted it?"
        )


_DOT_SEGMENT = re.compile(r"(^|[/\\])\.*($|[/\\])")
"""A segment that leaves the folder of connections in a backend that builds paths from ids."""


def is_conn_id(text: str) -> bool:
    """Return whether a text can be the id of a connection, by Airflow's rule, and without dot segments.

    The inbox and the pages ask no secrets backend for any other.
    """
    return sanitize_conn_id(text) == text and not _DOT_SEGMENT.search(text)


def find_connection(conn_id: str) -> Connection | None:
    """Return a connection, None if no backend has it.

    Airflow's own way takes a backend that fails for one that has no such connection. So is here a database whose
    connections this process has no right to read. No backend sees what cannot be an id, see `is_conn_id`.

    :raises UndecryptableError: its password was encrypted with another key.
    :raises StoreUnavailableError: a backend failed that may have it.
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
    """Return a connection of type `webdata`, None if there is none; see `find_connection`."""
    connection = find_connection(conn_id)
    return connection if connection is not None and connection.conn_type == "webdata" else None


def named_connection(conn_id: str) -> Connection:
    """Return the connection of type `webdata` that a command's user named.

    :raises SystemExit: it is missing or of another type.
    :raises StoreUnavailableError: see `find_connection`.
    """
    connection = find_connection(conn_id)
    if connection is None:
        raise SystemExit(f"There is no connection {conn_id!r}: name one with --conn-id")
    if connection.conn_type != "webdata":
        raise SystemExit(
            f"Connection {conn_id!r} is of type {connection.conn_type!r}: name one of type webdata"
        )
    return connection
