# SPDX-License-Identifier: Apache-2.0
"""Phrases, the cron dialect, and the next run."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from tests.support.tables import each_row
from webdata_sandbox.reference.schedule import cron_of_text, parse_cron

UTC = timezone.utc


@pytest.mark.rule("schedule-phrases")
@each_row(
    "phrase, cron",
    [
        ("every 30 minutes", "*/30 * * * *"),
        ("Every 5 mins.", "*/5 * * * *"),
        ("every 15 min starting at :05", "5-59/15 * * * *"),
        ("every 15 minutes start on 10", "10-59/15 * * * *"),
        ("every 20 minutes, starting :0", "*/20 * * * *"),
        ("hourly", "0 * * * *"),
        ("every hour at :45", "45 * * * *"),
        ("hourly starting at 7", "7 * * * *"),
        ("every 6 hours", "0 */6 * * *"),
        ("every 24 hrs", "0 */24 * * *"),
        ("daily", "0 0 * * *"),
        ("every day at 9", "0 9 * * *"),
        ("daily at 9:05 pm", "5 21 * * *"),
        ("daily at 12am", "0 0 * * *"),
        ("daily at 12:30 PM", "30 12 * * *"),
        ("weekly", "0 0 * * 0"),
        ("every week", "0 0 * * 0"),
    ],
)
def test_phrases(phrase: str, cron: str) -> None:
    assert cron_of_text(phrase) == cron


@pytest.mark.rule("schedule-phrases")
@each_row(
    "phrase",
    [
        "every 7 minutes",
        "every 0 minutes",
        "every 4 minutes",
        "every 5 hours",
        "every 0 hours",
        "daily at 25",
        "daily at 13 pm",
        "daily at 9:60",
        "daily at 0 am",
        "hourly at :60",
        "every monday",
        "weekly at 9",
        "twice a day",
        "monthly",
        "",
        "every 15 minutes starting at :75",
    ],
)
def test_phrases_that_are_refused(phrase: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        cron_of_text(phrase)


@pytest.mark.rule("schedule-interval", "schedule-cron")
@each_row(
    "cron",
    [
        "* * * *",
        "* * * * * *",
        "@daily",
        "0 0 * * mon",
        "0 0 * jan *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "5-1 * * * *",
        "-5 * * * *",
        "1,,2 * * * *",
        "a * * * *",
        "1.5 * * * *",
        "٣ * * * *",
    ],
)
def test_crons_that_are_refused(cron: str) -> None:
    with pytest.raises(ValueError, match="cron"):
        parse_cron(cron)


@pytest.mark.rule("schedule-timezone", "schedule-cron", "schedule-cron-days", "schedule-cron-step")
@each_row(
    "cron, zone, start, expected",
    [
        (
            "*/30 * * * *",
            "UTC",
            "2026-01-01T00:00",
            ["2026-01-01T00:30", "2026-01-01T01:00", "2026-01-01T01:30"],
        ),
        ("0 9 * * *", "Europe/Paris", "2026-01-01T08:30", ["2026-01-02T08:00", "2026-01-03T08:00"]),
        ("0 9 * * *", "Europe/Paris", "2026-03-28T09:00", ["2026-03-29T07:00", "2026-03-30T07:00"]),
        # 02:30 does not exist on the day clocks go forward
        ("30 2 * * *", "Europe/Paris", "2026-03-28T02:00", ["2026-03-30T00:30"]),
        # step after a single value: that value only
        ("5/15 * * * *", "UTC", "2026-01-01T00:00", ["2026-01-01T00:05", "2026-01-01T01:05"]),
        # both day fields must match
        ("0 0 13 * 5", "UTC", "2026-01-01T00:00", ["2026-02-13T00:00", "2026-03-13T00:00"]),
        ("0 0 * * 7", "UTC", "2026-01-01T00:00", ["2026-01-04T00:00"]),
        ("0 0 29 2 *", "UTC", "2027-03-01T00:00", ["2028-02-29T00:00"]),
        (
            "10-20/5,50 3 * * *",
            "UTC",
            "2026-01-01T00:00",
            ["2026-01-01T03:10", "2026-01-01T03:15", "2026-01-01T03:20", "2026-01-01T03:50"],
        ),
    ],
)
def test_next_runs(cron: str, zone: str, start: str, expected: list[str]) -> None:
    after = datetime.fromisoformat(start).replace(tzinfo=UTC)
    runs = islice(parse_cron(cron).after(after, ZoneInfo(zone)), len(expected))
    assert [run.strftime("%Y-%m-%dT%H:%M") for run in runs] == expected


def test_common_cron_takes_either_day() -> None:
    runs = parse_cron("0 0 13 * 5", either_day=True).after(datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("UTC"))
    assert [run.day for run in islice(runs, 3)] == [2, 9, 13]
