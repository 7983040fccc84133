# SPDX-License-Identifier: Apache-2.0
"""Connections in Airflow's database and secrets backends. Lookup distinguishes missing from unavailable."""

from __future__ import annotations

import contextlib
import os
import re

from airflow.configuration import conf, ensure_secrets_loaded
from airflow.models.connection import Connection as Connection
from airflow.models.connection import sanitize_conn_id
from airflow.secrets.environment_variables import CONN_ENV_PREFIX
from airflow.secrets.metastore import MetastoreBackend
from cryptography.fernet import InvalidToken
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine, error_code
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError

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


def find_connection(conn_id: str, asked: list[str] | None = None) -> Connection | None:
    """Return a connection, or None if no backend has it.

    Airflow's own lookup treats a failed backend like one without the connection. This function does so only for a
    database whose connections this process may not read. Invalid ids reach no backend; see `is_conn_id`.

    :param asked: receives the name of each backend before it is queried, so that the caller can name one that hangs.
    :raises UndecryptableError: the connection's password was encrypted with another key.
    :raises StoreUnavailableError: a backend that may have the connection failed.
    """
    if not is_conn_id(conn_id):
        return None
    failures = []
    of_team = _of_team(conn_id)
    for backend in ensure_secrets_loaded():
        if asked is not None:
            asked.append(type(backend).__name__)
        try:
            connection: Connection | None = backend.get_connection(conn_id=conn_id, **of_team)
        except Exception as error:  # noqa: BLE001
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


def _of_team(conn_id: str) -> dict[str, str]:
    """Return the argument by which backends find a connection of a team, to which Airflow's database assigns it."""
    # If the database fails, its backend reports that.
    with contextlib.suppress(SQLAlchemyError):
        if conf.getboolean("core", "multi_team", fallback=False) and (
            team := Connection.get_team_name(conn_id)
        ):
            return {"team_name": team}
    return {}


def find_webdata_connection(conn_id: str, asked: list[str] | None = None) -> Connection | None:
    """Return a connection of type `webdata`, or None; see `find_connection`."""
    connection = find_connection(conn_id, asked)
    return connection if connection is not None and connection.conn_type == "webdata" else None


def stored_conn_ids(conn_type: str) -> list[str]:
    """Return the ids of the connections of a type in Airflow's database.

    :raises StoreUnavailableError: this process has no access to the database.
    :raises SQLAlchemyError: the database is unavailable.
    """
    with Session(airflow_engine()) as session:
        wanted = select(Connection.conn_id).where(Connection.conn_type == conn_type)
        return [str(conn_id) for conn_id in session.scalars(wanted)]


def common_spelling(conn_id: str) -> str:
    """Return the id by which `conn_ids_in_environment` lists a connection: environment variables ignore letter case."""
    return conn_id.upper().lower()


def environment_variable(conn_id: str) -> str | None:
    """Return the name of the environment variable that defines a connection, if it is set."""
    name = f"{CONN_ENV_PREFIX}{conn_id.upper()}"
    return name if name in os.environ else None


def team_variable(conn_id: str) -> str | None:
    """Return the name of an environment variable that defines a connection for one team, if any is set."""
    ending = f"___{conn_id.upper()}"
    return next(
        (name for name in os.environ if name.startswith(f"{CONN_ENV_PREFIX}_") and name.endswith(ending)),
        None,
    )


def webdata_conn_ids_in_environment() -> list[str]:
    """Return the ids of the connections of type `webdata` in environment variables. Invalid variables are skipped."""
    found = []
    for conn_id in conn_ids_in_environment():
        with contextlib.suppress(StoreUnavailableError):
            if find_webdata_connection(conn_id):
                found.append(conn_id)
    return found


def conn_ids_in_environment() -> list[str]:
    """Return the ids of the connections of any type, and of invalid ones, in environment variables."""
    return [
        name.removeprefix(CONN_ENV_PREFIX).lower() for name in os.environ if name.startswith(CONN_ENV_PREFIX)
    ]


def stored_connection(conn_id: str) -> Connection | None:
    """Return a connection in Airflow's database, detached from its session, or None."""
    with Session(airflow_engine()) as session:
        found: Connection | None = session.scalar(select(Connection).where(Connection.conn_id == conn_id))
        if found is not None:
            session.expunge(found)
        return found


def store(connection: Connection) -> None:
    """Insert or update a connection.

    :raises StoreUnavailableError: this process has no access to the database.
    :raises SQLAlchemyError: the database refuses it; the error's text contains the values.
    """
    with Session(airflow_engine()) as session, session.begin():
        session.merge(connection)


def backend_with(conn_id: str) -> str | None:
    """Return the name of the secrets backend, other than Airflow's database, that has the connection."""
    of_team = _of_team(conn_id)
    for backend in ensure_secrets_loaded():
        # A backend that fails with any error is skipped, as Airflow does.
        with contextlib.suppress(Exception):
            if not isinstance(backend, MetastoreBackend) and backend.get_connection(conn_id, **of_team):
                return type(backend).__name__
    return None
