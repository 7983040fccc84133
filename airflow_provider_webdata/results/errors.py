# SPDX-License-Identifier: Apache-2.0
"""Errors of stored results."""

from __future__ import annotations

from airflow_provider_webdata.common.coded_errors import CodedError


class OutputError(CodedError, ValueError):
    """Results cannot be written to their destination."""

    help_code = "WD-005"


class StorageError(CodedError, OSError):
    """Storage failed in a way that a retry may fix: it is full, unavailable, or refuses the access."""

    help_code = "WD-065"


class MissingFileError(StorageError, FileNotFoundError):
    """A file to read does not exist."""
