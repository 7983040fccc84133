# SPDX-License-Identifier: Apache-2.0
"""Errors of storing and reading deliveries."""

from __future__ import annotations

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.coded_errors import CodedError


class TooManyReadersError(StoreUnavailableError):
    """The limit of waiting readers in this process is reached."""


class OptionError(CodedError, ValueError):
    """An option of `[webdata]` in Airflow's configuration is invalid."""

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
