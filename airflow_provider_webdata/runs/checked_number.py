"""Numbers among the rendered arguments of a task that is about to make a call."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.common.coded_errors import ArgumentError


def checked_number(operation: str, name: str, given: Any, most: float = float("inf")) -> float | None:
    """Return what `number` does, for an operator that is about to make a call.

    :param operation: what the error calls the call.
    :raises InvalidRequestError: it is no such number.
    """

    try:
        return number(name, given, most)
    except ArgumentError as error:
        raise InvalidRequestError(operation, [error.text()]) from None
