# SPDX-License-Identifier: Apache-2.0
"""The schedule of a monitor: phrases, cron dialect, and the next run.

croniter is no substitute: it reads `5/15` as a series, accepts names, `@daily`, and reversed ranges, and moves runs
that fall into the gap of a change to daylight saving time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

MINIMUM = timedelta(minutes=5)
TOO_OFTEN = "Monitor schedule must not run more often than every 5 minutes"

_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 7),
)
_PART = re.compile(r"(?:(\*)|([0-9]+)(?:-([0-9]+))?)(?:/([0-9]+))?")


@dataclass(frozen=True)
class Cron:
    """A cron expression as the allowed values of each field. Both day fields must match, as at the service.

    :param either_day: as in standard cron, one match is enough if both day fields are restricted.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool = False

    def on(self, day: date) -> bool:
        """Return whether the schedule runs on a day."""
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        if self.either_day and len(self.days) < 31 and len(self.weekdays) < 7:
            return by_date or by_weekday
        return by_date and by_weekday

    def after(self, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Yield the runs after ``moment``, in UTC, up to 366 days ahead."""
        first = moment.astimezone(zone).date()
        for offset in range(367):
            day = first + timedelta(days=offset)
            if not self.on(day):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    run = datetime.combine(day, time(hour, minute), zone).astimezone(timezone.utc)
                    # A local time in the gap of a change to daylight saving time differs after the round trip.
                    exists = run.astimezone(zone).time() == time(hour, minute)
                    if run > moment and exists:
                        yield run

    def runs_in_30_days(self, start: date) -> int:
        """Return the number of runs in 30 days."""
        days = sum(self.on(start + timedelta(days=offset)) for offset in range(30))
        return days * len(self.hours) * len(self.minutes)


def parse_cron(text: str, *, either_day: bool = False) -> Cron:
    """Parse a cron expression.

    :raises ValueError: a field is invalid; the error names it.
    """
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"a cron expression has five fields, not {len(fields)}")
    sets = [_values(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)]
    sets[4] = frozenset(day % 7 for day in sets[4])
    return Cron(sets[0], sets[1], sets[2], sets[3], sets[4], either_day)


def _values(text: str, name: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"cron cannot read {part!r} as {name}")
        star, first, last, step = match.groups()
        start = low if star else int(first)
        # At the service, "5/15" means only 5, not "every 15 from 5 on".
        stop = high if star else int(last or first)
        if not low <= start <= stop <= high or step == "0":
            raise ValueError(f"cron {name} must be within {low} to {high}, not {part!r}")
        values.update(range(start, stop + 1, int(step or 1)))
    return frozenset(values)


_MINUTES = re.compile(r"every (\d+) (?:minutes?|mins?)(?: (?:start|starting)(?: (?:at|on))? :?(\d{1,2}))?")
_HOURLY = re.compile(r"(?:hourly|every hour)(?: (?:starting )?at :?(\d{1,2}))?")
_HOURS = re.compile(r"every (\d+) (?:hours?|hrs?)")
_DAILY = re.compile(r"(?:daily|every day)(?: at (\d{1,2})(?::(\d{2}))? ?(am|pm)?)?")
_WEEKLY = re.compile(r"weekly|every week")


def cron_of_text(text: str) -> str:
    """Convert a phrase to the cron expression that the service stores.

    :raises ValueError: the service does not support the phrase.
    """
    phrase = " ".join(re.sub(r"[.,]", "", text.lower()).split())
    cron = _cron_of(phrase)
    if cron is None:
        raise ValueError(f"Could not understand the schedule {text!r}; use cron")
    return cron


def _cron_of(phrase: str) -> str | None:
    if match := _MINUTES.fullmatch(phrase):
        step, start = int(match[1]), int(match[2] or 0)
        if step < 5 and step > 0:
            raise ValueError(TOO_OFTEN)
        if step == 0 or 60 % step or start > 59:
            return None
        return f"{start}-59/{step} * * * *" if match[2] and start else f"*/{step} * * * *"
    if match := _HOURLY.fullmatch(phrase):
        return f"{int(match[1] or 0)} * * * *" if int(match[1] or 0) <= 59 else None
    if match := _HOURS.fullmatch(phrase):
        step = int(match[1])
        return f"0 */{step} * * *" if step and 24 % step == 0 else None
    if match := _DAILY.fullmatch(phrase):
        return _daily(*match.groups())
    return "0 0 * * 0" if _WEEKLY.fullmatch(phrase) else None


def _daily(hour_text: str | None, minute_text: str | None, half: str | None) -> str | None:
    hour, minute = int(hour_text or 0), int(minute_text or 0)
    if minute > 59 or hour > 23 or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return f"{minute} {hour} * * *"


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone with an IANA name.

    :raises ValueError: the name is unknown.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"Unknown time zone {name!r}") from None


def check_interval(cron: Cron, zone: ZoneInfo, now: datetime) -> None:
    """Validate a schedule's next two runs.

    :raises ValueError: it does not run within a year, or the runs are less than 5 minutes apart.
    """
    runs = cron.after(now, zone)
    first, second = next(runs, None), next(runs, None)
    if first is None:
        raise ValueError("Monitor schedule never runs within a year")
    if second is not None and second - first < MINIMUM:
        raise ValueError(TOO_OFTEN)
