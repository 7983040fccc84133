# SPDX-License-Identifier: Apache-2.0
"""Airflow's database: transactions with timeouts, and errors without content in their text."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from airflow import settings
from sqlalchemy import exc, insert, text
from sqlalchemy.dialects import postgresql, sqlite

from airflow_provider_webdata.airflow_db.errors import (
    ContendedError,
    RefusedError,
    StoreUnavailableError,
    TablesMissingError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Dialect, Insert, Table
    from sqlalchemy.engine import Connection, Engine

LOCK_SECONDS = 2
"""Row lock timeout of a transaction, in seconds."""
FILE_LOCK_SECONDS = 4
"""Timeout in seconds for SQLite's single write lock."""
STATEMENT_SECONDS = 4
"""Statement timeout in seconds, if the database supports one."""

_LIMITS = text(
    "SELECT set_config('lock_timeout', :lock, true), set_config('statement_timeout', :statement, true), "
    # A process that is suspended within a transaction must not block the others.
    "set_config('idle_in_transaction_session_timeout', :idle, true)"
).bindparams(lock=f"{LOCK_SECONDS}s", statement=f"{STATEMENT_SECONDS}s", idle=f"{STATEMENT_SECONDS}s")

_NOT_MIGRATED = {"42P01", "42703", "3F000", 1146, 1054}
_NOT_MIGRATED_IN_SQLITE = ("no such table", "no such column", "no column named")
_CONTENDED = {"55P03", "40P01", "40001", 1205, 1213}
_TOO_LONG = {"57014", 3024}
_READ_ONLY = {"25006", 1290}
_FORBIDDEN = {"42501", 1044, 1142}
_FULL = {"53100", "53200", "53300", 1021, 1040}
_REFUSED_CLASSES = ("22", "23", "54")


def airflow_engine() -> Engine:
    """Return the engine of Airflow's metadata database.

    :raises StoreUnavailableError: this process has no access to the database.
    """
    if settings.engine is None:
        raise StoreUnavailableError("this process has no access to Airflow's metadata database")
    return settings.engine


def airflow_url() -> str:
    """Return the URL of Airflow's metadata database, with its password; empty without access to it."""
    return settings.SQL_ALCHEMY_CONN or ""


@contextlib.contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that commits at the end, or rolls back on any error.

    No statement waits longer than `LOCK_SECONDS` (on SQLite `FILE_LOCK_SECONDS`) for a lock. On PostgreSQL, no
    statement runs longer than `STATEMENT_SECONDS`. The limits end with the transaction, because Airflow uses the same
    connections.

    :raises StoreUnavailableError: the transaction failed. A failed commit may have taken effect.
    """
    with (
        _store_errors(engine),
        engine.connect() as connection,
        _limits(connection),
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(_LIMITS)
        yield connection


@contextlib.contextmanager
def lone_statement(engine: Engine) -> Iterator[Connection]:
    """Open a connection for a single read statement: a transaction would need several more round trips.

    :raises StoreUnavailableError: the statement failed.
    """
    with (
        _store_errors(engine),
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
    ):
        yield connection


@contextlib.contextmanager
def _store_errors(engine: Engine) -> Iterator[None]:
    driver_error = engine.dialect.loaded_dbapi.Error
    try:
        yield
    except exc.SQLAlchemyError as error:
        # The original error contains the statement with its values: bodies, ids, keys.
        raise store_error(error) from None
    except driver_error as error:
        # SQLAlchemy does not wrap what the driver raises when the isolation level changes.
        raise store_error(exc.DBAPIError.instance(None, None, error, driver_error)) from None


@contextlib.contextmanager
def _limits(connection: Connection) -> Iterator[None]:
    """Set the lock timeout if it is a property of the connection, and restore it afterwards."""
    get, put, value = {
        "sqlite": ("PRAGMA busy_timeout", "PRAGMA busy_timeout = {}", FILE_LOCK_SECONDS * 1000),
        "mysql": (
            "SELECT @@SESSION.innodb_lock_wait_timeout",
            "SET SESSION innodb_lock_wait_timeout = {}",
            LOCK_SECONDS,
        ),
    }.get(connection.dialect.name, ("", "", 0))
    if not get:
        yield
        return
    cursor = connection.connection.cursor()
    try:
        cursor.execute(get)
        before = int(cursor.fetchone()[0])  # type: ignore[index]
        cursor.execute(put.format(value))
        yield
    finally:
        with contextlib.suppress(Exception):
            cursor.execute(put.format(before))
        cursor.close()


def insert_or_ignore(table: Table, dialect: Dialect) -> Insert:
    """Return an insert that skips rows with an existing unique key."""
    if dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    if dialect.name == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return insert(table).prefix_with("IGNORE")


def store_error(error: exc.SQLAlchemyError) -> StoreUnavailableError:
    """Return an error without the statement, values, or addresses in its text."""
    if isinstance(error, exc.TimeoutError):
        return StoreUnavailableError("all connections of Airflow's database pool are in use")
    if not isinstance(error, exc.DBAPIError) or error.orig is None:
        return RefusedError(f"the database rejects a value ({type(error).__name__})")
    code = error_code(error.orig)
    words = str(error.orig).lower() if error.orig.__class__.__module__ == "sqlite3" else ""
    name = type(error.orig).__name__
    if code in _NOT_MIGRATED or any(sign in words for sign in _NOT_MIGRATED_IN_SQLITE):
        return TablesMissingError()
    if code in _CONTENDED:
        return ContendedError("rows of the inbox are locked by another transaction")
    if "locked" in words or "busy" in words:
        return StoreUnavailableError("the database is locked by another transaction")
    if code in _TOO_LONG:
        return StoreUnavailableError(f"the database took longer than {STATEMENT_SECONDS} s")
    if code in _FORBIDDEN:
        return StoreUnavailableError(
            "Airflow's database role lacks a permission for the inbox's tables. Grant it, or run `airflow db migrate` "
            "with the role that owns Airflow's tables"
        )
    if code in _READ_ONLY or "readonly" in words:
        return StoreUnavailableError("the database is read-only")
    if code in _FULL or "is full" in words:
        return StoreUnavailableError("the database has run out of disk space, memory, or connections")
    if str(code)[:2] in _REFUSED_CLASSES or isinstance(error, (exc.DataError, exc.IntegrityError)):
        return RefusedError(f"the database rejects the content ({name})")
    if error.connection_invalidated or isinstance(error, (exc.OperationalError, exc.InterfaceError)):
        return StoreUnavailableError(f"the database cannot be reached ({name})")
    return StoreUnavailableError(f"the database failed ({name})")


def error_code(original: object) -> Any:
    """Return the code of a driver's error: MySQL's error number, which is more specific, or the SQLSTATE."""
    first = next(iter(getattr(original, "args", ())), None)
    if isinstance(first, int):
        return first
    return getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
