# SPDX-License-Identifier: Apache-2.0
"""Search queries and time filters."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import StrictUndefined, Undefined

from airflow_provider_webdata.api.models import SearchRequest
from airflow_provider_webdata.api.query import QueryError, check_tbs, phrase, recent, tbs, words


@pytest.mark.rule("search-operator-text")
@pytest.mark.parametrize(
    "given, written",
    [
        ("", ""),
        ("  apache \n airflow\t", "apache airflow"),
        ("c++ 12:30 well-known a_b AT&T 50% a - b", "c++ 12:30 well-known a_b AT&T 50% a - b"),
        ("website:x", "website:x"),
        # Text that would be an operator.
        ("SITE:evil.example -x --y", '"SITE:evil.example" "-x" "--y"'),
        ("allintitle: a", '"allintitle:" a'),
        ('say "hello world" now', "say hello world now"),
        ('x"-y', 'x "-y"'),
        ("“curly” „low“ «guillemets» ＂wide＂", "curly low guillemets wide"),
        ("(site:a.com) |intitle:x (-y +-z a-b", '"(site:a.com)" "|intitle:x" "(-y" "+-z" a-b'),
    ],
)
def test_words(given: str, written: str) -> None:
    assert words(given) == written


@pytest.mark.rule("search-operator-text")
def test_a_phrase() -> None:
    assert phrase('with "quotes"  -site:a.com in it') == '"with quotes -site:a.com in it"'
    with pytest.raises(QueryError, match="must not be blank"):
        phrase(' "" ')


@pytest.mark.rule("search-operator-text")
@given(st.text(max_size=60), st.sampled_from([words, phrase]))
def test_no_text_becomes_an_operator(text: str, quoting: Callable[[str], str]) -> None:
    try:
        written = quoting(text)
    except QueryError:
        return
    assert written.count('"') % 2 == 0
    outside = re.sub(r'"[^"]*"', "", written)
    assert not re.search(
        r"\b(site|filetype|inurl|allinurl|intitle|allintitle|related|imagesize|larger):", outside
    )
    assert all(not token.startswith("-") or not token.strip("-") for token in outside.split())


@pytest.mark.rule("search-tbs")
@pytest.mark.parametrize(
    "value",
    [
        "sbd:1",
        "sbd:1,qdr:w",
        "qdr:w,sbd:1",
        "cdr:1,cd_min:05/01/2026,cd_max:05/31/2026",
        "cdr:1,cd_min:05/01/2026,cd_max:05/01/2026",
        "cdr:1,cd_min:02/29/2024,cd_max:12/31/2024",
        "sbd:1,cdr:1,cd_min:05/01/2026,cd_max:05/31/2026",
        "cdr:1,cd_min:05/01/2026,cd_max:05/31/2026,sbd:1",
    ],
)
def test_time_filters_of_the_reference(value: str) -> None:
    check_tbs(value)
    assert SearchRequest(query="q", tbs=value).tbs == value


@pytest.mark.rule("search-tbs")
@pytest.mark.parametrize(
    "value, rule",
    [
        ("", "use qdr:h"),
        ("qdr:x", "'qdr:x'"),
        ("qdr:h6", "'qdr:h6'"),
        ("QDR:D", "'QDR:D'"),
        ("qdr:d\n", "'qdr:d\\n'"),
        ("sbd:0", "'sbd:0'"),
        ("sbd:1, qdr:w", "' qdr:w'"),
        ("qdr:d,qdr:w", "of the same kind"),
        ("qdr:d,cdr:1,cd_min:05/01/2026,cd_max:05/31/2026", "keep one of them"),
        ("cdr:1", "'cdr:1'"),
        ("cdr:1,cd_min:05/01/2026", "'cdr:1'"),
        ("cd_min:05/01/2026,cd_max:05/31/2026", "'cd_min"),
        ("cdr:1,cd_max:05/31/2026,cd_min:05/01/2026", "'cdr:1'"),
        ("cdr:1,cd_min:5/31/2026,cd_max:5/1/2026", "ends (5/1/2026) before it begins (5/31/2026)"),
        (
            "cdr:1,cd_min:5/1/26,cd_max:5/31/2026",
            "'5/1/26', which is not a valid date in the form MM/DD/YYYY",
        ),
        ("cdr:1,cd_min:005/1/2026,cd_max:5/31/2026", "in the form MM/DD/YYYY"),
        ("cdr:1,cd_min:,cd_max:5/31/2026", "in the form MM/DD/YYYY"),
        ("cdr:1,cd_min:2026/05/01,cd_max:05/31/2026", "in the form MM/DD/YYYY"),
        ("cdr:1,cd_min:02/30/2026,cd_max:05/31/2026", "not a valid date"),
        ("cdr:1,cd_min:05/01/2026,cd_max:05/31/2026,cdr:1,cd_min:05/01/2026,cd_max:05/31/2026", "'cdr:1'"),
    ],
)
def test_refused_time_filters(value: str, rule: str) -> None:
    with pytest.raises(QueryError, match=re.escape(rule)):
        check_tbs(value)
    with pytest.raises(ValueError, match=re.escape(rule)):
        SearchRequest(query="q", tbs=value)


@pytest.mark.rule("search-tbs-short-dates")
@pytest.mark.parametrize(
    ("value", "short"),
    [
        ("cdr:1,cd_min:5/1/2026,cd_max:5/31/2026", ["5/1/2026", "5/31/2026"]),
        ("cdr:1,cd_min:12/01/2025,cd_max:1/05/2026", ["1/05/2026"]),
        ("cdr:1,cd_min:12/01/2025,cd_max:12/31/2025", []),
        ("sbd:1,qdr:w", []),
    ],
)
def test_a_date_without_leading_zeros_is_sent_as_given_with_a_warning(value: str, short: list[str]) -> None:
    for field in ({"tbs": value}, {"sources": [{"type": "web", "tbs": value}]}):
        request = SearchRequest(query="q", **field)
        assert request.to_wire() == {"query": "q", **field}
        assert [warning.split()[1] for warning in request.warnings()] == short


def at(text: str, zone: str = "UTC") -> pendulum.DateTime:
    return pendulum.parse(text, tz=zone)  # type: ignore[return-value]


BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    "start, end, first, last",
    [
        # Data intervals: the end is not part of them.
        (at("2026-05-01"), at("2026-05-02"), "05/01/2026", "05/01/2026"),
        (at("2025-12-01"), at("2026-01-01"), "12/01/2025", "12/31/2025"),
        (at("2026-05-01T23:00"), at("2026-05-02"), "05/01/2026", "05/01/2026"),
        (at("2026-05-01T12:00"), at("2026-05-02T12:00"), "05/01/2026", "05/02/2026"),
        (at("2026-05-01"), at("2026-05-02T00:00:00.000001"), "05/01/2026", "05/02/2026"),
        # Intervals of no length, as cron timetables have them.
        (at("2026-05-01T06:00"), at("2026-05-01T06:00"), "05/01/2026", "05/01/2026"),
        # Days of the zone they are written in.
        (at("2026-05-01", BERLIN), at("2026-05-02", BERLIN), "05/01/2026", "05/01/2026"),
        (at("2026-05-01", BERLIN), at("2026-05-01T22:00"), "05/01/2026", "05/01/2026"),
        (at("2026-04-30T22:00"), at("2026-05-02", BERLIN), "04/30/2026", "05/01/2026"),
        # The standard library's, without zone, and plain dates, whose end is part of them.
        (datetime(2026, 5, 1), datetime(2026, 5, 3), "05/01/2026", "05/02/2026"),
        (date(2026, 5, 1), date(2026, 5, 31), "05/01/2026", "05/31/2026"),
        (pendulum.date(2026, 5, 1), pendulum.date(2026, 5, 2), "05/01/2026", "05/02/2026"),
        (date(2026, 5, 1), at("2026-05-03"), "05/01/2026", "05/02/2026"),
        (at("2026-05-01T09:00"), date(2026, 5, 3), "05/01/2026", "05/03/2026"),
        # Text, as templates give it.
        ("2026-05-01", "2026-05-01", "05/01/2026", "05/01/2026"),
        ("2026-05-01T00:00:00+00:00", "2026-05-02T00:00:00Z", "05/01/2026", "05/01/2026"),
        (date(1, 1, 1), date(9999, 12, 31), "01/01/0001", "12/31/9999"),
    ],
)
def test_a_range_of_moments_becomes_days(start: Any, end: Any, first: str, last: str) -> None:
    value = f"cdr:1,cd_min:{first},cd_max:{last}"
    assert tbs(start, end) == value
    assert tbs(start, end, sort_by_date=True) == f"sbd:1,{value}"
    check_tbs(tbs(start, end, sort_by_date=True))


@pytest.mark.parametrize("tz", [BERLIN, pendulum.timezone(BERLIN)], ids=["name", "zone"])
def test_the_days_of_another_zone(tz: Any) -> None:
    # The interval of a DAG that runs daily at midnight in Berlin, as Airflow hands it to templates.
    start, end = at("2026-04-30T22:00"), at("2026-05-01T22:00")
    assert tbs(start, end, tz=tz) == "cdr:1,cd_min:05/01/2026,cd_max:05/01/2026"
    assert tbs(start, end) == "cdr:1,cd_min:04/30/2026,cd_max:05/01/2026"


@pytest.mark.parametrize(
    "interval",
    [
        pendulum.interval(at("2026-05-01"), at("2026-05-08")),
        pendulum.interval(pendulum.date(2026, 5, 1), pendulum.date(2026, 5, 7)),
        SimpleNamespace(start=at("2026-05-01"), end=at("2026-05-08")),
    ],
)
def test_an_interval(interval: Any) -> None:
    assert tbs(interval) == "cdr:1,cd_min:05/01/2026,cd_max:05/07/2026"


@pytest.mark.parametrize(
    "start, end, first, last",
    [
        (at("2026-05-01"), at("2026-05-08"), "05/01/2026", "05/07/2026"),
        # Started by hand or by an asset, without a logical date.
        (None, None, "05/09/2026", "05/09/2026"),
    ],
)
def test_a_dag_run_is_its_data_interval_or_the_day_on_which_it_was_due(
    start: Any, end: Any, first: str, last: str
) -> None:
    run = SimpleNamespace(
        data_interval_start=start,
        data_interval_end=end,
        run_after=datetime(2026, 5, 9, 15, 30, tzinfo=timezone.utc),
        start_date=at("2026-05-10"),
        end_date=None,
    )
    assert tbs(run) == f"cdr:1,cd_min:{first},cd_max:{last}"


@pytest.mark.parametrize(
    "start, end, rule",
    [
        (at("2026-05-02"), at("2026-05-01"), "before it begins"),
        (date(2026, 5, 2), date(2026, 5, 1), "before it begins"),
        (None, None, "no start: a run that was triggered manually or by an asset"),
        (at("2026-05-01"), None, "no end: a run"),
        (Undefined(name="data_interval_start"), Undefined(), "no start: a run"),
        (at("2026-05-01"), StrictUndefined(name="data_interval_end"), "no end: a run"),
        (datetime(2026, 5, 1), at("2026-05-02"), "only one end of the range has a time zone"),
        ("yesterday", "2026-05-01", "must be an ISO 8601 date"),
        (StrictUndefined(name="data_interval"), None, "no start: a run"),
        (5, 6, "(given: int)"),
        (timedelta(days=1), at("2026-05-01"), "(given: timedelta)"),
    ],
)
def test_refused_ranges(start: Any, end: Any, rule: str) -> None:
    with pytest.raises(QueryError, match=re.escape(rule)):
        tbs(start, end)


def test_a_zone_that_does_not_exist_is_refused() -> None:
    with pytest.raises(QueryError, match="unknown time zone 'Mars'"):
        tbs("2026-05-01", "2026-05-01", tz="Mars")


moments = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.timezones())


@pytest.mark.rule("search-tbs")
@given(moments, moments)
def test_every_range_in_order_is_a_valid_filter(one: datetime, other: datetime) -> None:
    start, end = sorted((one, other))
    check_tbs(tbs(start, end))


@pytest.mark.rule("search-tbs")
@pytest.mark.parametrize(
    "period, value",
    [
        ("hour", "qdr:h"),
        ("day", "qdr:d"),
        ("week", "qdr:w"),
        ("month", "qdr:m"),
        ("year", "qdr:y"),
        (timedelta(hours=24), "qdr:d"),
        (pendulum.duration(days=7), "qdr:w"),
    ],
)
def test_a_recent_period(period: Any, value: str) -> None:
    assert recent(period) == value
    assert recent(period, sort_by_date=True) == f"sbd:1,{value}"
    check_tbs(recent(period, sort_by_date=True))


@pytest.mark.parametrize("period", ["", "decade", timedelta(hours=6), None])
def test_unknown_periods(period: Any) -> None:
    with pytest.raises(QueryError, match=r"pass two dates to tbs\(\)"):
        recent(period)
