# SPDX-License-Identifier: Apache-2.0
"""Strict parsing of ISO 8601 text."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timezone, tzinfo

from pendulum.parsing import parse_iso8601

_SPACE = re.compile(r"(?<=\d) (?=Z$|[+-]\d)")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}")


def moment(text: str | None, zone: tzinfo | None = timezone.utc) -> datetime | None:
    """Parse an ISO 8601 date or datetime; return None for other text.

    :param text: for example `2026-01-31` or `2026-01-31T10:00:00.123Z`. Dates of weeks are not read.
    :param zone: time zone of a text without one; None: return a naive datetime.
    """
    # `pendulum.parse` turns `now`, `2026`, `10:30`, and an interval into a day that the text does not name, and is a
    # hundred times slower, which counts for the entries of a sitemap. `parse_iso8601` also reads a year or a month.
    if not text or not _DAY.match(text := _SPACE.sub("", text.strip().upper())):
        return None
    try:
        found = parse_iso8601(text)
        if isinstance(found, datetime):
            # Its own time zones cannot be pickled, and may be a day or more from UTC, which fails here.
            offset = found.utcoffset()
            return found.replace(tzinfo=zone if offset is None else timezone(offset))
    except ValueError:
        return None
    return datetime.combine(found, time(tzinfo=zone)) if isinstance(found, date) else None
