"""Moments and lengths of time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.dates import ago, moment, span

T0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text,expected",
    [
        ("2026-01-01T00:00:00z", T0),
        ("2026-01-01T09:00:00+09:00", T0),
        ("2026-01-01T00:00:00.5Z", T0 + timedelta(milliseconds=500)),
        ("2026-01-01T00:00:00.123456789Z", T0 + timedelta(microseconds=123456)),
        ("2026-01-01T00:00:00.1234567+00:00", T0 + timedelta(microseconds=123456)),
        ("2026-01-01T00:00:00", T0),
        ("2026-01-01", T0),
        (" 2026-01-01T00:00:00Z ", T0),
        ("", None),
        (None, None),
        ("tomorrow", None),
        ("2026-13-01T00:00:00Z", None),
    ],
)
def test_moments(text: str | None, expected: datetime | None) -> None:
    assert moment(text) == expected


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    found = moment(text)
    assert found is None or found.tzinfo is not None


def test_a_moment_without_a_time_zone_on_request() -> None:
    assert moment("2026-01-01", zone=None) == T0.replace(tzinfo=None)
    assert moment("2026-01-01T01:00+01:00", zone=None) == T0


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(seconds=0), "0 seconds ago"),
        (timedelta(seconds=-1), "1 second ago"),
        (timedelta(seconds=-59.9), "59 seconds ago"),
        (timedelta(seconds=-60), "1 minute ago"),
        (timedelta(minutes=-119), "1 hour ago"),
        (timedelta(hours=-48), "2 days ago"),
        (timedelta(hours=3), "in 3 hours"),
        (timedelta(days=400), "in 400 days"),
    ],
)
def test_how_long_ago(distance: timedelta, words: str) -> None:
    assert ago(NOW + distance, NOW) == words


def test_an_exact_length() -> None:
    assert [span(seconds, exact=True) for seconds in (5400, 3600, 0.5)] == [
        "1.5 hours",
        "1 hour",
        "500 milliseconds",
    ]
