# SPDX-License-Identifier: Apache-2.0
"""Strict parsing of ISO 8601 text."""

from __future__ import annotations

import pickle
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.dates import moment

T0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
# What follows a date in a time, and what pendulum reads in addition.
PARTS = st.sampled_from(
    ["T", " ", "10", ":", ".5", "Z", "+", "-", "W01", "/", "P1D", "é", "2026-01-01", "20260101"]
)


@pytest.mark.parametrize(
    "text,expected",
    [
        ("2026-01-01T00:00:00z", T0),
        ("2026-01-01t00:00:00Z", T0),
        ("2026-01-01T09:00:00+09:00", T0),
        ("2026-01-01T09:00:00+0900", T0),
        ("2026-01-01T00:00:00.5Z", T0 + timedelta(milliseconds=500)),
        ("2026-01-01T00:00:00.123456789Z", T0 + timedelta(microseconds=123456)),
        ("2026-01-01T00:00:00.1234567+00:00", T0 + timedelta(microseconds=123456)),
        ("2026-01-01T00:00:00.1234567890123Z", T0 + timedelta(microseconds=123456)),
        ("2026-01-01T00:00:00", T0),
        ("2026-01-01 00:00:00", T0),
        ("2026-01-01T00", T0),
        ("2026-01-01T00:00:00 Z", T0),
        ("2026-01-01 09:00:00 +09:00", T0),
        ("20260101T000000Z", T0),
        ("2026-01-01", T0),
        ("20260101", T0),
        (" 2026-01-01T00:00:00Z ", T0),
        ("", None),
        (None, None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-02-29", None),
        ("2026-01-01T00:00:00+24:00", None),
    ],
)
def test_moments(text: str | None, expected: datetime | None) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "now",
            "tomorrow",
            "2026",
            "2026-01",
            "202601",
            "2026-W05",
            "2026-W05-3",
            "2026-032",
            "2026032",
            "10:30",
        ),
        *("P1D", "2026-01-01/2026-02-01", "2026-01-01/P1D", "2026/01/01", "1 January 2026", "1767225600"),
    ],
)
def test_a_text_that_names_no_day_is_no_moment(text: str) -> None:
    """pendulum reads most of these, and completes them to a day."""
    assert moment(text) is None


@given(st.text() | st.lists(PARTS, max_size=8).map("".join))
def test_no_text_is_too_odd(text: str) -> None:
    found = moment(text)
    assert found is None or found.utcoffset() is not None


@given(st.datetimes(timezones=st.none() | OFFSETS))
def test_what_python_writes_is_read(value: datetime) -> None:
    assert moment(value.isoformat(), zone=None) == value


def test_a_moment_survives_a_process() -> None:
    """Triggers and rows of a database store moments."""
    found = moment("2026-01-01T09:00:00+09:00")
    assert (type(found), pickle.loads(pickle.dumps(found))) == (datetime, T0)


def test_a_moment_without_a_time_zone_on_request() -> None:
    assert moment("2026-01-01", zone=None) == T0.replace(tzinfo=None)
    assert moment("2026-01-01T01:00+01:00", zone=None) == T0
