"""Errors of loads into tables."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.common.coded_errors import CodedError


class TableError(CodedError, AirflowFailException):
    """The results cannot be loaded: the table or the file has an unsuitable form."""

    help_code = "WD-060"
