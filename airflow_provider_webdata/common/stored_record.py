"""Records of earlier attempts in Airflow's task state store, which may be damaged."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    return _odd_moment(record) if isinstance(record, dict) else None


def _odd_moment(record: Mapping[str, Any]) -> str | None:
    odd = (
        name
        for name, item in record.items()
        if isinstance(item, datetime) and not _FIRST <= item.replace(tzinfo=timezone.utc) <= _LAST
    )
    return next((f"{name}: no moment of this era" for name in odd), None)


def place_of(key: str) -> str:
    """Return where a record is and what to do about it, for a message."""
    return f"delete the key {key} from the task's state store, and clear the task"
