# SPDX-License-Identifier: Apache-2.0
"""Parser for the service's cron expressions: five numeric fields, with runs at least five minutes apart.

The dialect differs from common cron: `5/15` means 5 only, and if both day fields are set, both must match. croniter is
no substitute: it reads `5/15` as a series, and accepts names, `@daily`, and ranges that end before they begin.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise

MINIMUM_INTERVAL = 5
"""Minimum number of minutes between two runs."""

_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 7),
)
_ITEM = re.compile(
    r"(?P<all>\*)?(?:(?P<first>[0-9]{1,4})(?:-(?P<last>[0-9]{1,4}))?)?(?:/(?P<step>[0-9]{1,4}))?"
)


class CronError(ValueError):
    """The service does not accept the expression."""


@dataclass(frozen=True)
class Cron:
    """A parsed cron expression, in the service's dialect.

    :param minutes: minutes of the hour at which it fires.
    :param hours: hours of the day.
    :param days: days of the month.
    :param months: months, 1 to 12.
    :param weekdays: days of the week; 0 is Sunday.
    :param warnings: one sentence for each part that other cron implementations interpret differently.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def fires_on(self, day: date) -> bool:
        """Return whether the expression fires on this day."""
        return day.month in self.months and day.day in self.days and day.isoweekday() % 7 in self.weekdays

    def shortest_gap(self) -> int | None:
        """Return the minimum number of minutes between two runs, or None if runs are more than an hour apart."""
        minutes = sorted(self.minutes)
        gaps = [later - earlier for earlier, later in pairwise(minutes)]
        if self._has_successive_hours():
            gaps.append(60 - minutes[-1] + minutes[0])
        return min(gaps, default=None)

    def _has_successive_hours(self) -> bool:
        if any(hour + 1 in self.hours for hour in self.hours):
            return True
        if not {0, 23} <= self.hours:
            return False
        # The combinations of dates and weekdays repeat after 28 years.
        days = (date(2024, 1, 1) + timedelta(days=number) for number in range(28 * 365 + 7))
        return any(self.fires_on(day) and self.fires_on(day + timedelta(days=1)) for day in days)


def read_cron(text: str) -> Cron:
    """Parse a cron expression.

    :param text: five fields: minute, hour, day, month, and weekday, as numbers.
    :raises CronError: the expression is malformed, never fires, or fires more often than every five minutes.
    """
    parts = text.split()
    if text.strip().startswith("@"):
        raise CronError(
            "cron shorthands such as @daily are not supported; write five fields, such as '0 0 * * *'"
        )
    if len(parts) != len(_FIELDS):
        raise CronError(
            "a cron expression must have five fields (minute hour day-of-month month day-of-week); "
            f"this one has {len(parts)}"
        )
    warnings: list[str] = []
    sets = [
        _read_field(part, name, low, high, warnings)
        for part, (name, low, high) in zip(parts, _FIELDS, strict=True)
    ]
    if not parts[2].startswith("*") and not parts[4].startswith("*"):
        warnings.append(
            "cron: day of month and day of week are both set. The service requires both to match; most cron "
            "implementations require only one"
        )
    cron = Cron(
        minutes=sets[0],
        hours=sets[1],
        days=sets[2],
        months=sets[3],
        weekdays=frozenset(day % 7 for day in sets[4]),
        warnings=tuple(warnings),
    )
    if not any(day <= monthrange(2024, month)[1] for month in cron.months for day in cron.days):
        raise CronError("this cron expression never fires: none of its months has any of its days")
    gap = cron.shortest_gap()
    if gap is not None and gap < MINIMUM_INTERVAL:
        raise CronError(
            f"a monitor must not run more often than every {MINIMUM_INTERVAL} minutes; "
            f"this cron expression has runs {gap} minute{'s' * (gap != 1)} apart"
        )
    return cron


def _read_field(text: str, name: str, low: int, high: int, warnings: list[str]) -> frozenset[int]:
    if re.search(r"[A-Za-z]", text):
        raise CronError(
            f"the {name} field must be numeric; names such as MON or JAN are not supported (given: '{text}')"
        )
    values: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if not match or bool(match["all"]) == bool(match["first"]):
            raise CronError(f"the {name} field contains '{item}', which is not a number, range, step, or *")
        step = int(match["step"] or 1)
        if not step:
            raise CronError(f"the {name} field has a step of 0")
        first, last = (
            (low, high) if match["all"] else (int(match["first"]), int(match["last"] or match["first"]))
        )
        if not low <= first <= high or not low <= last <= high:
            raise CronError(f"the {name} field must be in the range {low} to {high} (given: '{item}')")
        if last < first:
            raise CronError(f"the {name} field has a range that ends before it begins: '{item}'")
        if match["step"] and match["first"] and not match["last"]:
            warnings.append(
                f"cron: '{item}' in the {name} field means {first} only; "
                f"write '{first}-{high}/{step}' for a series"
            )
        values.update(range(first, last + 1, step))
    return frozenset(values)
