"""Parsing of ISO 8601 text, and human-readable durations."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone, tzinfo

_FRACTION = re.compile(r"\.(\d+)")
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def moment(text: str | None, zone: tzinfo | None = timezone.utc) -> datetime | None:
    """Parse an ISO 8601 date or datetime; return None for other text.

    :param text: for example `2026-01-31` or `2026-01-31T10:00:00.123Z`.
    :param zone: time zone of a text without one; None: return a naive datetime.
    """
    if not text:
        return None
    # Python 3.10 does not support Z, nor fractions with other than three or six digits.
    plain = re.sub(r"[Zz]$", "+00:00", text.strip())
    plain = _FRACTION.sub(lambda match: f".{match[1][:6]:0<6}", plain, count=1)
    try:
        found = datetime.fromisoformat(plain)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=zone)


def utc_text(moment: float) -> str:
    """Format a time as ISO 8601, to the second.

    :param moment: seconds since the epoch.
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def ago(value: datetime, now: datetime | None = None) -> str:
    """Format a time relative to now, such as `5 minutes ago` or `in 2 hours`.

    :param value: an aware datetime.
    :param now: an aware datetime. Default: the current time.
    """
    ahead = (value - (now or datetime.now(timezone.utc))).total_seconds()
    length = span(abs(ahead))
    return f"in {length}" if ahead > 0 else f"{length} ago"


def span(seconds: float, *, exact: bool = False) -> str:
    """Format a duration in its largest unit, such as `5 minutes`.

    :param seconds: at least 0.
    :param exact: include a fraction of the unit, such as `1.5 hours`.
    """
    units = (*_UNITS, (0.001, "millisecond")) if exact else _UNITS
    length, unit = next((one for one in units if seconds >= one[0]), units[-1])
    count = f"{seconds / length:.3g}" if exact else f"{seconds // length:.0f}"
    return f"{count} {unit}{'' if count == '1' else 's'}"
