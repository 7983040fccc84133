# SPDX-License-Identifier: Apache-2.0
"""Errors of loads into tables."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowOptionalProviderFeatureException,
)

from airflow_provider_webdata.common.clean_text import cleaned
from airflow_provider_webdata.common.coded_errors import CodedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

REPLACING_INSTANCES = (
    "mode='replace' in a mapped task: each instance would replace the rows of the others. Use mode='upsert' or "
    "'append', or pass all files to one task: path=[...]"
)
"""Message about a mapped load."""

# Names of PEP 249, which all drivers follow. Retries of these errors fail again.
_REJECTIONS = frozenset({"DataError", "IntegrityError", "ProgrammingError", "NotSupportedError"})
_FAILURES = frozenset({"DatabaseError", "InterfaceError"})
_REJECTED_STATES = ("54", "P0001")
"""PostgreSQL's states for values that are too large, for example for an index, and for exceptions of triggers."""
_RIGHTS_MISSING = "42501"
_TURNS = "then clear the task. A pool with one slot lets loads take turns"
_STATES: Mapping[str, str] = {
    "25006": "Connect to the primary server, or let the role write, then clear the task",
    "28P01": "Correct the login and the password of the connection, then clear the task",
    "3D000": "Correct the database's name in the connection, or create the database, then clear the task",
    "40001": "Another session changed the same rows. Wait until it ends, then clear the task",
    "40P01": "Another session changed the same rows. Wait until it ends, then clear the task",
    "54000": "An index of PostgreSQL holds values of up to about 2,700 bytes. Drop the index, or omit its column from "
    "columns. Then clear the task",
    "53100": "Free space on the database's server, then clear the task",
    "53300": "End other sessions, or raise max_connections, then clear the task",
    "55P03": "Another session locks the table. End it, or raise lock_timeout, then clear the task",
    "57014": "Raise statement_timeout for the role, or load fewer files at a time, then clear the task",
}
"""The next steps by PostgreSQL's states."""
_REASONS = tuple(
    (re.compile(pattern, re.IGNORECASE), step)
    for pattern, step in (
        (
            "set lock on file",
            f"Another process has the file open, and DuckDB allows one. Close it there, {_TURNS}",
        ),
        (
            "database( table| schema)? is locked",
            f"Another program writes to the file. End its transaction, {_TURNS}",
        ),
        (
            "write-write conflict|conflict on |transaction conflict",
            f"Another program changed the table. Wait until it ends, {_TURNS}",
        ),
        (
            'permission denied for database ("[^"]*")',
            "As an administrator, run: GRANT CONNECT ON DATABASE {0} TO the login of the connection. Then clear the "
            "task",
        ),
        (
            "read-?only (database|mode)|permission denied",
            "Let the worker write to the file and its folder, and open it without a read-only option, then clear the "
            "task",
        ),
        (
            "unable to open database file|cannot open file|is a directory",
            "Correct the path in the connection, or create its folder, writable for the worker; then clear the task",
        ),
        ("disk is full|no space left", "Free space where the file is, then clear the task"),
        (
            "is not a database|not a valid duckdb database",
            "Correct the path in the connection: the file is of another kind; then clear the task",
        ),
        (
            "version number|newer version of duckdb",
            "Upgrade the package duckdb on the workers, then clear the task",
        ),
        (
            "out of memory",
            "Raise memory_limit of the connection, or load fewer files at a time, then clear the task",
        ),
        (
            "unknown database",
            "Use a table without a schema, or attach a database of this name to the connection",
        ),
        ("password authentication failed", _STATES["28P01"]),
        ('database ".*" does not exist', _STATES["3D000"]),
        ("too many clients|too many connections", _STATES["53300"]),
        (
            "connection refused",
            "Start the server, or correct the host and port of the connection, then clear the task",
        ),
    )
)
"""The next steps by a pattern of the driver's message, in English."""
_MAX_LENGTH = 300
# A quoted text that is longer than a name.
_LONG_VALUE = re.compile(r"""(["'])(?:(?!\1).){64,}\1""")


class TableError(CodedError, AirflowFailException):
    """The results cannot be loaded: the table or the file has an unsuitable form."""

    help_code = "WD-060"


class MissingPackageError(TableError, AirflowOptionalProviderFeatureException):
    """The package that a load needs is not installed."""


class LoadError(CodedError, AirflowException):
    """The database failed during a load in a way that a retry may fix; the table is unchanged."""

    help_code = "WD-069"


def state_of(error: BaseException) -> str:
    """Return PostgreSQL's state of a driver's error; empty for other databases."""
    return str(getattr(error, "pgcode", None) or getattr(error, "sqlstate", None) or "")


def is_rejection(error: BaseException) -> bool:
    """Return whether a driver's error rejects a value or a statement, so that a retry fails again."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _FAILURES) and bool(
        names & _REJECTIONS or state_of(error).startswith(_REJECTED_STATES)
    )


def lacks_rights(error: BaseException) -> bool:
    """Return whether the role lacks a privilege of PostgreSQL."""
    return state_of(error) == _RIGHTS_MISSING


@contextmanager
def database_errors(failed: Callable[[], str], step: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Translate the errors of a database's driver within this block.

    :param failed: returns the failed operation, such as `The table pages cannot be loaded`.
    :param step: returns the next step as a sentence, if the database knows it; empty otherwise.
    :raises TableError: the database rejects a value or a statement.
    :raises LoadError: the database failed.
    """
    try:
        yield
    except CodedError:
        raise
    except Exception as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        if not names & _FAILURES:
            raise
        state = state_of(error)
        # The other lines of a driver's error contain the row and the statement.
        first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        reason = _LONG_VALUE.sub(r"\1…\1", cleaned(first))[:_MAX_LENGTH]
        kind = TableError if is_rejection(error) else LoadError
        raised = kind(f"{failed()}: {reason}")
        raised.advice = step() or (_STATES.get(state, "") if state else _step_by_reason(first))
        raise raised from error


def _step_by_reason(text: str) -> str:
    found = ((pattern.search(text), step) for pattern, step in _REASONS)
    return next((step.format(*match.groups()) for match, step in found if match), "")
