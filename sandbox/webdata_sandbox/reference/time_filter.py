# SPDX-License-Identifier: Apache-2.0
"""The time filter of a search (``tbs``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

QDR = {
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "m": timedelta(days=30),
    "y": timedelta(days=365),
}
"""The period of each ``qdr`` letter; a month has 30 days and a year 365."""


@dataclass(frozen=True)
class TimeFilter:
    """A parsed ``tbs``: the period before now, the range of days, and the order."""

    within: timedelta | None = None
    first: datetime | None = None
    last: datetime | None = None
    by_date: bool = False

    def admits(self, moment: datetime | None, now: datetime) -> bool:
        """Return whether a page published at ``moment`` passes. A page without a date passes only an empty filter."""
        if self.within is None and self.first is None:
            return True
        if moment is None:
            return False
        if self.within is not None and not now - self.within <= moment <= now:
            return False
        return self.first is None or self.last is None or self.first <= moment < self.last


def parse_tbs(text: str) -> TimeFilter:
    """Parse a ``tbs`` value.

    :raises ValueError: a part is invalid; the error names it.
    """
    parts: dict[str, str] = {}
    for part in text.split(","):
        name, colon, value = part.strip().partition(":")
        if not colon or name not in ("qdr", "cdr", "cd_min", "cd_max", "sbd"):
            raise ValueError(f"tbs has an unknown part {part.strip()!r}")
        if name in parts:
            raise ValueError(f"tbs contains {name} twice")
        parts[name] = value
    for flag in ("cdr", "sbd"):
        if parts.get(flag, "1") != "1":
            raise ValueError(f"tbs supports only {flag}:1")
    within = None
    if "qdr" in parts:
        if parts["qdr"] not in QDR:
            raise ValueError("tbs supports qdr:h, qdr:d, qdr:w, qdr:m, and qdr:y")
        within = QDR[parts["qdr"]]
    range_parts = {"cdr", "cd_min", "cd_max"} & parts.keys()
    if not range_parts:
        return TimeFilter(within, by_date="sbd" in parts)
    if len(range_parts) < 3:
        raise ValueError("a custom range of tbs requires cdr:1, cd_min, and cd_max")
    if within is not None:
        raise ValueError("tbs supports either qdr or a custom range, not both")
    first, last = _day(parts["cd_min"]), _day(parts["cd_max"])
    if last < first:
        raise ValueError("cd_max of tbs is before cd_min")
    return TimeFilter(None, first, last + timedelta(days=1), "sbd" in parts)


def _day(text: str) -> datetime:
    # The reference documents MM/DD/YYYY; guides omit leading zeros.
    if not re.fullmatch(r"[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}", text):
        raise ValueError(f"dates of tbs must have the form MM/DD/YYYY, not {text!r}")
    try:
        return datetime.strptime(text, "%m/%d/%Y").replace(tzinfo=timezone.utc)
    except ValueError:
        raise ValueError(f"tbs contains a date that does not exist: {text!r}") from None
