# SPDX-License-Identifier: Apache-2.0
"""The time span of a DAG run's data, and the time zone of its days."""

from __future__ import annotations

import re
from datetime import datetime, time, timezone, tzinfo
from typing import Any

import pendulum

from airflow_provider_webdata.common.dates import moment

# Keys of Airflow's temporal mappers that name a period: `2026-01-05`, `2026-01-05 (W02)`, `2026-01`, `2026-Q1`, `2026`.
_PERIOD = re.compile(
    r"(?P<year>\d{4})(-(?P<month>\d\d)(-(?P<day>\d\d)(?P<week> \(W\d\d\))?)?|-Q(?P<quarter>[1-4]))?"
)


def run_span(dag_run: Any, tz: tzinfo | None = None) -> tuple[datetime, datetime]:
    """Return the start (inclusive) and end (exclusive) of a run's data.

    These are the run's partition, else its data interval, else its due time (`run_after`). For a partition key without
    a period, and for a due time, start and end are equal.

    :param dag_run: a DAG run of Airflow's task SDK.
    :param tz: time zone of the DAG's days, see `time_zone_of`; None: UTC for partitions, otherwise unchanged.
    """
    start, end = _partition(dag_run, tz or timezone.utc) or (
        # A run that was triggered manually or by an asset may have no data interval.
        getattr(dag_run, "data_interval_start", None) or dag_run.run_after,
        getattr(dag_run, "data_interval_end", None) or dag_run.run_after,
    )
    return (start, end) if tz is None else (start.astimezone(tz), end.astimezone(tz))


def time_zone_of(dag: Any) -> tzinfo | None:
    """Return the time zone of a DAG's days: that of its timetable, or else of its start date."""
    timetable = getattr(dag, "timetable", None)
    inner = [getattr(timetable, "timetable", None), *getattr(timetable, "timetables", ())]
    zones = (getattr(owner, "timezone", None) for owner in (timetable, *inner, dag))
    zone = next((zone for zone in zones if zone is not None), None)
    return pendulum.timezone(zone) if isinstance(zone, str) else zone


def _partition(dag_run: Any, tz: tzinfo) -> tuple[datetime, datetime] | None:
    key = getattr(dag_run, "partition_key", None)
    # New in Airflow 3.3.
    date: datetime | None = getattr(dag_run, "partition_date", None)
    # A bare number is a year only if Airflow has parsed it as a date.
    if key is not None and re.match(r"[12]\d{3}-" if date is None else r"[12]\d{3}(-|$)", key):
        if (period := _period(key, tz)) is not None:
            return period
        if (written := moment(key, zone=None)) is not None:
            if written.tzinfo is not None:
                date = written
            elif date is None and not hasattr(dag_run, "partition_date"):
                # Airflow 3.2 writes its keys in UTC, later versions in the time zone of the timetable or mapper:
                # docs/contributing/upstream/partition_keys_in_utc.md
                date = written.replace(tzinfo=timezone.utc)
            elif date is None or written != date.astimezone(timezone.utc).replace(tzinfo=None):
                date = written.replace(tzinfo=tz)
    return None if date is None else (date, date)


def _period(key: str, tz: tzinfo) -> tuple[datetime, datetime] | None:
    """Return the period of a partition key, in the time zone of the DAG, whose days the key contains."""
    if not (match := _PERIOD.fullmatch(key)):
        return None
    quarter = match["quarter"]
    month = int(match["month"] or 3 * int(quarter or 1) - 2)
    months = 1 if match["month"] else 3 if quarter else 12
    try:
        start = pendulum.date(int(match["year"]), month, int(match["day"] or 1))
    except ValueError:
        return None
    end = start.add(**({"days": 7 if match["week"] else 1} if match["day"] else {"months": months}))
    # Pendulum would begin a day without a midnight, because clocks change then, at 01:00.
    return datetime.combine(start, time(), tz), datetime.combine(end, time(), tz)
