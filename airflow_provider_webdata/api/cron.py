"""The cron expressions that the service reads: five numeric fields, and never closer than five minutes.

The service's cron is not quite the common one: `5/15` means 5 only, and with both day
fields set both must match. So the expression is read here: croniter was tried, it reads `5/15` as a series and takes
names, `@daily` and ranges that end before they begin.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise

MINIMUM_INTERVAL = 5
"""Minutes between two runs, at least."""

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
    """The expression is not one that the service accepts."""


@dataclass(frozen=True)
class Cron:
    """A cron expression as the service reads it.

    :param minutes: minutes of the hour at which it fires.
    :param hours: hours of the day.
    :param days: days of the month.
    :param months: months, 1 to 12.
    :param weekdays: days of the week, 0 is Sunday.
    :param warnings: what reads differently elsewhere, one sentence each.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def fires_on(self, day: date) -> bool:
        """Return whether there is a run on this day."""
        return day.month in self.months and day.day in self.days and day.isoweekday() % 7 in self.weekdays

    def shortest_gap(self) -> int | None:
        """Return the fewest minutes between two runs, or None when successive runs are hours apart."""
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
        # 28 years: after that, dates and weekdays fall together as before.
        days = (date(2024, 1, 1) + timedelta(days=number) for number in range(28 * 365 + 7))
        return any(self.fires_on(day) and self.fires_on(day + timedelta(days=1)) for day in days)


def read_cron(text: str) -> Cron:
    """Read a cron expression.

    :param text: five fields, minute hour day month weekday, numbers only.
    :raises CronError: it is malformed, never fires, or fires more often than every five minutes.
    """
    parts = text.split()
    if text.strip().startswith("@"):
        raise CronError("cron shorthands such as @daily are not read; write five fields, as in '0 0 * * *'")
    if len(parts) != len(_FIELDS):
        raise CronError(
            "a cron expression has five fields (minute hour day-of-month month day-of-week), "
            f"this one has {len(parts)}"
        )
    warnings: list[str] = []
    sets = [
        _read_field(part, name, low, high, warnings)
        for part, (name, low, high) in zip(parts, _FIELDS, strict=True)
    ]
    if not parts[2].startswith("*") and not parts[4].startswith("*"):
        warnings.append(
            "cron: day of month and day of week are both set; the service wants both to match, where most "
            "crons take either"
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
        raise CronError("this cron expression never fires: no chosen month has the chosen day")
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
            f"the {name} field is numeric; names such as MON or JAN are not read (given: '{text}')"
        )
    values: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if not match or bool(match["all"]) == bool(match["first"]):
            raise CronError(f"the {name} field holds '{item}', which is no number, range, step or *")
        step = int(match["step"] or 1)
        if not step:
            raise CronError(f"the {name} field has a step of 0")
        first, last = (
            (low, high) if match["all"] else (int(match["first"]), int(match["last"] or match["first"]))
        )
        if not low <= first <= high or not low <= last <= high:
            raise CronError(f"the {name} field goes from {low} to {high} (given: '{item}')")
        if last < first:
            raise CronError(f"the {name} field has a range that ends before it begins: '{item}'")
        if match["step"] and match["first"] and not match["last"]:
            warnings.append(
                f"cron: '{item}' in the {name} field means {first} only; "
                f"write '{first}-{high}/{step}' for a series"
            )
        values.update(range(first, last + 1, step))
    return frozenset(values)
