"""Numbers among an operator's arguments, which a template may have turned into text."""

from __future__ import annotations

from typing import Any


def checked_number(operation: str, name: str, given: Any, most: float = float("inf")) -> float | None:
    """Return a number of at least 0, or None where none is given.

    :param operation: what the error calls the call.
    :param name: name of the argument.
    :param given: its value, rendered: a number, text, or nothing.
    :param most: the largest that is allowed; infinity itself never is.
    :raises InvalidRequestError: it is no such number.
    """
    from airflow_provider_webdata.api.errors import InvalidRequestError

    if given is None or given == "":
        return None
    try:
        number = float("nan") if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        number = float("nan")
    if not (0 <= number <= most and number < float("inf")):
        limit = "" if most == float("inf") else f" and at most {most:g}"
        raise InvalidRequestError(
            operation, [f"{name}: must be a number of at least 0{limit} (given: {given!r})"]
        )
    return number
