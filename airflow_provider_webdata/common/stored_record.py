"""Validation of records in Airflow's task state store, which may be damaged."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, Any

import msgspec

_FIRST = datetime(1971, 1, 1, tzinfo=timezone.utc)
_LAST = datetime(2999, 1, 1, tzinfo=timezone.utc)

Text = Annotated[str, msgspec.Meta(pattern=r"^[ -~]{1,2000}$")]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**6)]
Credits = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Epoch = Annotated[float, msgspec.Meta(ge=0, le=_LAST.timestamp())]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


def damage_of(value: Any, kind: Any) -> str | None:
    """Describe why a stored JSON value does not have a type, without its content; return None if it does."""
    try:
        record = msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        return str(error) if isinstance(error, msgspec.ValidationError) else type(error).__name__
    for name, item in record.items() if isinstance(record, dict) else ():
        if isinstance(item, datetime) and not _FIRST <= item.replace(tzinfo=timezone.utc) <= _LAST:
            return f"{name}: date out of range"
    return None


def place_of(key: str) -> str:
    """Return the instruction to delete a damaged record, for a message."""
    return f"delete the key {key} from the task's state store, and clear the task"
