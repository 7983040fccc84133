"""Errors of storing and reading deliveries."""

from __future__ import annotations

from airflow_provider_webdata.common.coded_errors import CodedError

_NO_TABLES = (
    "the inbox's tables are missing or outdated. Run `airflow db migrate`, or set `inbox_create_tables = True` in "
    "`[webdata]` of Airflow's configuration to let the inbox create them"
)


class StoreUnavailableError(CodedError):
    """The database is unavailable or failed; the message has the reason, without addresses or content."""

    help_code = "WD-050"


class TablesMissingError(StoreUnavailableError):
    """The inbox's tables are missing, or older than this package."""

    help_code = "WD-051"

    def __init__(self, message: str = _NO_TABLES) -> None:
        super().__init__(message)


class ContendedError(StoreUnavailableError):
    """Another transaction has locked a required row; operations on other rows may still succeed."""


class TooManyReadersError(StoreUnavailableError):
    """The limit of waiting readers in this process is reached."""


class RefusedError(StoreUnavailableError):
    """The database rejects this content; storing other deliveries may still succeed."""


class OptionError(CodedError, ValueError):
    """An option of `[webdata]` in Airflow's configuration is invalid; the message names the rule."""

    help_code = "WD-006"


class DeliveryNotFoundError(Exception):
    """A delivery does not exist."""

    def __init__(self, missing: list[int]) -> None:
        super().__init__(f"the inbox has no delivery {', '.join(map(str, missing))}")


class CursorPastEndError(Exception):
    """The cursor is beyond the end of the feed: the database was reset or restored.

    :param end: the newest position, from which to continue.
    """

    def __init__(self, end: int) -> None:
        super().__init__(f"the cursor is beyond the newest position, {end}: the inbox was reset or restored")
        self.end = end
