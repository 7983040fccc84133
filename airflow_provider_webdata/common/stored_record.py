"""Records of earlier attempts in Airflow's task state store, which may be damaged."""

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
    """Return what keeps a stored JSON value from being of a type, without its content; None: it is of the type."""
    try:
        record = msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        return str(error) if isinstance(error, msgspec.ValidationError) else type(error).__name__
    for name, item in record.items() if isinstance(record, dict) else ():
        if isinstance(item, datetime) and not _FIRST <= item.replace(tzinfo=timezone.utc) <= _LAST:
            return f"{name}: no moment of this era"
    return None


def place_of(key: str) -> str:
    """Return where a record is and what to do about it, for a message."""
    return f"delete the key {key} from the task's state store, and clear the task"
