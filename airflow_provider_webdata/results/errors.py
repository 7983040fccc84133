"""Errors of stored results."""

from __future__ import annotations

from airflow_provider_webdata.common.coded_errors import CodedError


class OutputError(CodedError, ValueError):
    """Results cannot be written where they should go; the message says what to change."""

    help_code = "WD-005"


def damage(error: Exception) -> str:
    """Return the reason why a stored file cannot be read, without its content.

    :param error: raised while it was parsed.
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {error}"
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
