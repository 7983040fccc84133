# SPDX-License-Identifier: Apache-2.0
"""JSON values that every database of Airflow can store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_webdata.common.surrogates import is_utf8

_REPLACEMENT = "\ufffd"
_INT64 = 2**63


def storable(value: Any) -> Any:
    """Return a JSON value as Airflow can store it; the same object if nothing has to change.

    NUL, which PostgreSQL refuses, and lone surrogates, which UTF-8 cannot encode, become U+FFFD. NaN and infinities
    become null. Integers of more than 64 bits become floating-point numbers, or null if they exceed these.
    """
    if isinstance(value, str):
        return value if value.isascii() and "\0" not in value else _text(value)
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else _number(value)
    if isinstance(value, Mapping):
        items = {storable(name): storable(part) for name, part in value.items()}
        is_same = all(
            name is other and part is kept
            for (name, part), (other, kept) in zip(value.items(), items.items(), strict=False)
        )
        return value if is_same and len(items) == len(value) else items
    if isinstance(value, (list, tuple)):
        parts = [storable(part) for part in value]
        return value if all(part is kept for part, kept in zip(value, parts, strict=True)) else parts
    return value


def _text(value: str) -> str:
    text = value.replace("\0", _REPLACEMENT)
    if is_utf8(text):
        return text if text != value else value
    return "".join(_REPLACEMENT if "\ud800" <= one <= "\udfff" else one for one in text)


def _number(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
