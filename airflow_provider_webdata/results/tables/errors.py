"""Errors of loads into tables."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.url_secrets import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Names of PEP 249, which all drivers follow. Retries of these errors fail again.
_REJECTIONS = frozenset({"DataError", "IntegrityError", "ProgrammingError", "NotSupportedError"})
_FAILURES = frozenset({"DatabaseError", "InterfaceError"})
_LIMIT_EXCEEDED = "54"
"""PostgreSQL's class of states for values that are too large, for example for an index."""
_MAX_LENGTH = 300
# A quoted text that is longer than a name.
_LONG_VALUE = re.compile(r"""(["'])(?:(?!\1).){64,}\1""")


class TableError(CodedError, AirflowFailException):
    """The results cannot be loaded: the table or the file has an unsuitable form."""

    help_code = "WD-060"


class LoadError(CodedError, AirflowException):
    """The database failed during a load in a way that a retry may fix; the table is unchanged."""

    help_code = "WD-069"


@contextmanager
def database_errors(failed: Callable[[], str]) -> Iterator[None]:
    """Translate the errors of a database's driver within this block.

    :param failed: returns the failed operation, such as `The table pages cannot be loaded`.
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
        state = str(getattr(error, "pgcode", None) or getattr(error, "sqlstate", None) or "")
        is_final = names & _REJECTIONS or state.startswith(_LIMIT_EXCEEDED)
        # The other lines of a driver's error contain the row and the statement.
        first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        reason = _LONG_VALUE.sub(r"\1…\1", without_secrets(first))[:_MAX_LENGTH]
        # A value may contain escape sequences.
        reason = "".join(sign if sign.isprintable() else "\ufffd" for sign in reason)
        raise (TableError if is_final else LoadError)(f"{failed()}: {reason}") from error
