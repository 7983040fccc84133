# SPDX-License-Identifier: Apache-2.0
"""Errors of Airflow's database, without addresses, statements, or values in their text."""

from __future__ import annotations

from airflow_provider_webdata.common.coded_errors import CodedError

_NO_TABLES = (
    "the inbox's tables are missing or outdated. Run `airflow db migrate`, or set `inbox_create_tables = True` in "
    "`[webdata]` of Airflow's configuration to let the inbox create them. Both need `inbox = True` there"
)


class StoreUnavailableError(CodedError):
    """The inbox's database is unavailable or failed. Messages contain neither addresses nor content."""

    help_code = "WD-050"


class TablesMissingError(StoreUnavailableError):
    """The inbox's tables are missing, or older than this package."""

    help_code = "WD-051"

    def __init__(self, message: str = _NO_TABLES) -> None:
        super().__init__(message)


class ContendedError(StoreUnavailableError):
    """Another transaction has locked a required row; operations on other rows may still succeed."""


class RefusedError(StoreUnavailableError):
    """The database rejects this content; storing other deliveries may still succeed."""
