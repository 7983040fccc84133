# SPDX-License-Identifier: Apache-2.0
"""Validation of records in Airflow's task state store, which may be damaged."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, Any, TypeVar

import msgspec

RecordT = TypeVar("RecordT")

_FIRST = datetime(1971, 1, 1, tzinfo=timezone.utc)
_LAST = datetime(2999, 1, 1, tzinfo=timezone.utc)

Text = Annotated[str, msgspec.Meta(pattern=r"^[ -~]{1,2000}$")]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**6)]
Credits = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Epoch = Annotated[float, msgspec.Meta(ge=0, le=_LAST.timestamp())]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


def read_record(value: Any, kind: type[RecordT]) -> RecordT:
    """Return a stored JSON value as a type.

    :raises ValueError: the value does not have the type. The message does not contain the value.
    """
    try:
        record = msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        damage = str(error) if isinstance(error, msgspec.ValidationError) else type(error).__name__
        raise ValueError(damage) from None
    values = msgspec.structs.asdict(record) if isinstance(record, msgspec.Struct) else record
    for name, item in values.items() if isinstance(values, dict) else ():
        if isinstance(item, datetime) and not _FIRST <= item.replace(tzinfo=timezone.utc) <= _LAST:
            raise ValueError(f"{name}: date out of range")
    return record


def damage_of(value: Any, kind: Any) -> str | None:
    """Describe why a stored JSON value does not have a type, without its content; return None if it does."""
    try:
        read_record(value, kind)
    except ValueError as error:
        return str(error)
    return None


def place_of(key: str) -> str:
    """Return the instruction to delete a damaged record, for a message."""
    return f"delete the key {key} from the task's state store, and clear the task"
