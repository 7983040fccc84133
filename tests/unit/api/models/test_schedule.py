# SPDX-License-Identifier: Apache-2.0
"""Schedules: cron as the service reads it, phrases, and time zones."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

import pytest
from croniter import CroniterBadDateError, croniter
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api.cron import CronError, read_cron
from airflow_provider_webdata.api.models import MonitorSchedule
from tests.unit.api.models.tables import problems


@pytest.mark.rule("schedule-interval", "schedule-cron")
@pytest.mark.parametrize(
    "cron",
    [
        "*/5 * * * *",
        "0,5 * * * *",
        "0-55/5 * * * *",
        "59 23 31 12 7",
        "0 0 * * 1-5",
        "  0   9 * * *  ",
        "0 0 29 2 *",
        "58 23 * * *",
        # A minute apart over midnight, but Mondays are not adjacent.
        "0,58 0,23 * * 1",
        "5/15 * * * *",
        "0 0 */2 * *",
        "0 0 1-7 * 1",
    ],
)
def test_accepted_cron(cron: str) -> None:
    assert MonitorSchedule(cron=cron).to_wire() == {"cron": cron}


@pytest.mark.rule("schedule-interval", "schedule-cron")
@pytest.mark.parametrize(
    "cron, rule",
    [
        ("", "blank"),
        ("*/30 * * *", "five fields"),
        ("0 */30 * * * *", "five fields"),
        ("@daily", "shorthands"),
        ("0 0 * * MON", "names such as MON"),
        ("60 * * * *", "range 0 to 59"),
        ("0 24 * * *", "range 0 to 23"),
        ("0 0 0 * *", "range 1 to 31"),
        ("0 0 * 0 *", "range 1 to 12"),
        ("0 0 * 13 *", "range 1 to 12"),
        ("0 0 * * 8", "range 0 to 7"),
        ("30-10 * * * *", "ends before it begins"),
        ("*/0 * * * *", "step of 0"),
        ("*5 * * * *", "not a number"),
        ("0,, * * * *", "not a number"),
        ("-1 * * * *", "not a number"),
        ("? * * * *", "not a number"),
        ("0 0 * * 1#2", "not a number"),
        ("٥ * * * *", "not a number"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 2,4,6,9,11 *", "never fires"),
        ("* * * * *", "runs 1 minute apart"),
        ("0,4 * * * *", "runs 4 minutes apart"),
        ("*/7 * * * *", "runs 4 minutes apart"),
        ("2,58 * * * *", "runs 4 minutes apart"),
        ("0,58 0,23 * * 1,2", "runs 2 minutes apart"),
        ("0,58 0,23 31,1 * *", "runs 2 minutes apart"),
        (" " * 120 + "0 0 * * *", "at most 128"),
    ],
)
def test_refused_cron(cron: str, rule: str) -> None:
    assert rule in problems(MonitorSchedule, {"cron": cron})["cron"]


@pytest.mark.rule("schedule-cron-days", "schedule-cron-step")
@pytest.mark.parametrize(
    "cron, words",
    [
        ("0 0 1 * *", []),
        ("0 0 * * 1", []),
        ("0 0 */2 * 1", []),
        ("5/15 * * * *", ["means 5 only; write '5-59/15'"]),
        ("0 0 1 * 1", ["both to match"]),
        ("5/15 3/2 1 * 1", ["means 5 only", "means 3 only", "both to match"]),
    ],
)
def test_cron_that_other_programs_read_differently(cron: str, words: list[str]) -> None:
    warnings = MonitorSchedule(cron=cron).warnings()
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))


NUMBERS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]


@st.composite
def cron_fields(draw: st.DrawFn) -> str:
    """Draw a cron expression on which the service and common crons agree."""
    fields = []
    for low, high in NUMBERS:
        # The library reads a range of one number as all numbers.
        first = draw(st.integers(low, high - 1))
        last = draw(st.integers(first + 1, high))
        step = draw(st.integers(1, high - low))
        forms = ["*", f"*/{step}", f"{first}", f"{first}-{last}", f"{first}-{last}/{step}"]
        fields.append(draw(st.sampled_from([*forms, f"{first},{last}"])))
    # With both day fields set, other crons take either.
    fields[draw(st.sampled_from([2, 4]))] = "*"
    return " ".join(fields)


@pytest.mark.rule("schedule-cron")
@given(cron_fields(), st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)))
def test_runs_agree_with_a_cron_library(text: str, start: datetime) -> None:
    runs = croniter(text, start.replace(microsecond=0), max_years_between_matches=9)
    try:
        times = [runs.get_next(datetime) for _ in range(200)]
    except CroniterBadDateError:
        with pytest.raises(CronError, match="never fires"):
            read_cron(text)
        return
    gaps = [round((later - earlier) / timedelta(minutes=1)) for earlier, later in itertools.pairwise(times)]
    try:
        cron = read_cron(text)
    except CronError as error:
        message = str(error)
        assert "apart" in message
        assert min(gaps) < 5
        return
    assert min(gaps) >= 5
    assert all(
        cron.fires_on(time.date()) and time.hour in cron.hours and time.minute in cron.minutes
        for time in times
    )


@pytest.mark.rule("schedule-phrases")
@pytest.mark.parametrize(
    "text",
    [
        "every 5 minutes",
        "every 60 min",
        "Every 15 Mins.",
        "every 30 minutes starting at :07",
        "every 30 minutes, starting at 7",
        "every 30 minutes starting :0",
        "hourly",
        "hourly at :15",
        "every hour starting at :59",
        "every 1 hour",
        "every 2 hours",
        "every 24 hrs",
        "daily",
        "daily at 23:59",
        "every day at 9 pm",
        "daily at 9:30 a.m.",
        "daily at 12am",
        "daily at 0",
        "weekly",
        "EVERY WEEK",
        "  every   week ",
    ],
)
def test_accepted_phrases(text: str) -> None:
    assert MonitorSchedule(text=text).to_wire() == {"text": text}


@pytest.mark.rule("schedule-phrases")
@pytest.mark.parametrize(
    "text, rule",
    [
        ("", "blank"),
        ("every 4 minutes", "divides 60 and is at least 5"),
        ("every 0 minutes", "divides 60"),
        ("every 30 minutes starting at :60", "0 to 59"),
        ("every 5 hours", "divides 24"),
        ("every 48 hours", "divides 24"),
        ("hourly at :60", "0 to 59"),
        ("daily at 24", "0 to 23"),
        ("daily at 9:60", "0 to 59"),
        ("daily at 13 pm", "1 to 12"),
        ("daily at 0 am", "1 to 12"),
        ("daily at noon", "cron for other schedules"),
        ("every monday", "cron for other schedules"),
        ("weekly at 9", "cron for other schedules"),
        ("twice a day", "cron for other schedules"),
        ("every ٥ minutes", "cron for other schedules"),
        ("hourly" + " " * 123, "at most 128"),
    ],
)
def test_refused_phrases(text: str, rule: str) -> None:
    assert rule in problems(MonitorSchedule, {"text": text})["text"]


@pytest.mark.rule("schedule-length")
def test_a_schedule_of_128_characters() -> None:
    for field, text in (("text", "hourly"), ("cron", "0 0 * * *")):
        assert MonitorSchedule.model_validate({field: text.ljust(128)})


@pytest.mark.rule("schedule-timezone")
@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST"]
)
def test_accepted_time_zones(zone: str) -> None:
    for form in ({"cron": "0 9 * * *"}, {"text": "daily at 9:00"}):
        body = {**form, "timezone": zone}
        assert MonitorSchedule.model_validate(body).to_wire() == body


@pytest.mark.rule("schedule-timezone")
@pytest.mark.parametrize(
    "zone",
    ["", "Mars/Olympus", "CEST", "Europe", "+02:00", "/etc/passwd", "../zone", "localtime", "posix/UTC"],
)
def test_refused_time_zones(zone: str) -> None:
    assert list(problems(MonitorSchedule, {"cron": "0 9 * * *", "timezone": zone})) == ["timezone"]
