"""Errors of storing and reading deliveries."""

from __future__ import annotations

from airflow_provider_webdata.common.coded_errors import CodedError

_NO_TABLES = (
    "the inbox's tables are missing or old: run `airflow db migrate`, or set `inbox_create_tables = True` in "
    "`[webdata]` of Airflow's configuration and the inbox makes them itself"
)


class StoreUnavailableError(CodedError):
    """The database could not do it now; the message says why, and holds neither address nor content."""

    help_code = "WD-050"


class TablesMissingError(StoreUnavailableError):
    """The inbox's tables are not there, or older than this package."""

    help_code = "WD-051"

    def __init__(self, message: str = _NO_TABLES) -> None:
        super().__init__(message)


class ContendedError(StoreUnavailableError):
    """Another transaction has locked a row that is needed; what does not need that row may still work."""


class TooManyReadersError(StoreUnavailableError):
    """As many readers wait for deliveries as this process allows."""


class RefusedError(StoreUnavailableError):
    """The database rejects this content; other deliveries may still be stored."""


class OptionError(CodedError, ValueError):
    """An option of `[webdata]` in Airflow's configuration cannot be used; the message names its rule."""

    help_code = "WD-006"


class DeliveryNotFoundError(Exception):
    """No such delivery is in the inbox."""

    def __init__(self, missing: list[int]) -> None:
        super().__init__(f"no delivery {', '.join(map(str, missing))} is in the inbox")


class CursorPastEndError(Exception):
    """The cursor lies beyond all that was ever published: the database was reset or restored.

    :param end: the newest position there is, from which to go on.
    """

    def __init__(self, end: int) -> None:
        super().__init__(f"the cursor is beyond the newest position, {end}: the inbox was reset or restored")
        self.end = end
