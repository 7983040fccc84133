"""Search queries and time filters."""

from __future__ import annotations

import copy
import pickle
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
from airflow_provider_webdata.api.query import MAX_QUERY_LENGTH, Query, QueryError, check_tbs, recent, tbs

Build = Callable[[Query], Query]


@pytest.mark.rule("search-operator-text", "search-operator-sites", "search-operator-words")
@pytest.mark.rule("search-operator-images")
@pytest.mark.parametrize(
    "build, text",
    [
        (lambda q: q, ""),
        (lambda q: q.words("  apache \n airflow\t"), "apache airflow"),
        (lambda q: q.words("c++ 12:30 well-known a_b AT&T 50%"), "c++ 12:30 well-known a_b AT&T 50%"),
        (lambda q: q.words("a - b"), "a - b"),
        # Foreign text does not become an operator.
        (lambda q: q.words("site:evil.example"), '"site:evil.example"'),
        (lambda q: q.words("SITE:evil.example -x --y"), '"SITE:evil.example" "-x" "--y"'),
        (lambda q: q.words("allintitle: a"), '"allintitle:" a'),
        (lambda q: q.words('say "hello world" now'), "say hello world now"),
        (lambda q: q.words('x"-y'), "x -y".replace("-y", '"-y"')),
        (lambda q: q.words("“curly” „low“ «guillemets» ＂wide＂"), "curly low guillemets wide"),
        (lambda q: q.words("website:x"), "website:x"),
        (
            lambda q: q.words("(site:a.com) |intitle:x (-y +-z a-b"),
            '"(site:a.com)" "|intitle:x" "(-y" "+-z" a-b',
        ),
        # Phrases and exclusions.
        (lambda q: q.phrase("exact words"), '"exact words"'),
        (lambda q: q.phrase('with "quotes" in it'), '"with quotes in it"'),
        (lambda q: q.phrase("site:a.com"), '"site:a.com"'),
        (lambda q: q.exclude("jobs", "two words"), '-jobs -"two words"'),
        (lambda q: q.exclude("-x"), '-"-x"'),
        (lambda q: q.exclude("site:a.com"), '-"site:a.com"'),
        # Operators.
        (lambda q: q.site("a.com").site("a.com/b", exclude=True), "site:a.com -site:a.com/b"),
        (lambda q: q.site(".gov"), "site:.gov"),
        (lambda q: q.filetype("pdf").filetype("doc", exclude=True), "filetype:pdf -filetype:doc"),
        (lambda q: q.inurl("a").inurl("b", exclude=True), "inurl:a -inurl:b"),
        (lambda q: q.intitle("a").intitle("b c", exclude=True), 'intitle:a -intitle:"b c"'),
        (lambda q: q.intitle("-x"), 'intitle:"-x"'),
        (lambda q: q.related("a.com").related("b.com", exclude=True), "related:a.com -related:b.com"),
        (lambda q: q.image_size(8, 6).image_size(1, 2, exclude=True), "imagesize:8x6 -imagesize:1x2"),
        (lambda q: q.larger(1920, 1080).larger(1, 1, exclude=True), "larger:1920x1080 -larger:1x1"),
        (lambda q: q.allinurl("docs", "api"), "allinurl:docs api"),
        # Claims all words after it, so it goes last.
        (
            lambda q: q.allintitle("user", "guide").site("a.com").words("x"),
            "site:a.com x allintitle:user guide",
        ),
        (lambda q: q.allinurl("site:a.com"), 'allinurl:"site:a.com"'),
        # Together.
        (
            lambda q: q.words("airflow").phrase("data interval").site("a.com").filetype("pdf", exclude=True),
            'airflow "data interval" site:a.com -filetype:pdf',
        ),
    ],
)
def test_terms_are_quoted(build: Build, text: str) -> None:
    assert str(build(Query())) == text


def test_a_query_starts_with_words() -> None:
    assert str(Query("airflow -site:x").site("a.com")) == 'airflow "-site:x" site:a.com'


@pytest.mark.rule("search-operator-text")
@pytest.mark.parametrize(
    "build, rule",
    [
        (lambda q: q.phrase(""), "phrase must not be blank"),
        (lambda q: q.exclude(" "), "exclude must not be blank"),
        (lambda q: q.inurl(""), "inurl must not be blank"),
        (lambda q: q.allinurl(), "at least one word"),
        (lambda q: q.allintitle(" "), "at least one word"),
        (lambda q: q.allintitle("a").allinurl("b"), "applies to all words after it"),
        (lambda q: q.site("https://example.com"), "domain without protocol"),
        (lambda q: q.site("a.com -site:b.com"), "domain without protocol"),
        (lambda q: q.site('a.com"'), "domain without protocol"),
        (lambda q: q.site(None), "domain without protocol"),
        (lambda q: q.related("a b"), "domain without protocol"),
        (lambda q: q.filetype(".pdf"), "without the dot"),
        (lambda q: q.image_size(0, 1), "at least 1"),
        (lambda q: q.image_size("800", 600), "in pixels"),
        (lambda q: q.larger(True, 5), "in pixels"),
        (lambda q: q.words(5), "must be text (given: int)"),
        (lambda q: q.words("x" * 501), "501 characters, but the maximum is 500"),
    ],
)
def test_refused_terms(build: Build, rule: str) -> None:
    with pytest.raises(QueryError, match=re.escape(rule)):
        build(Query())


@pytest.mark.rule("search-query")
def test_the_length_is_that_of_the_written_query() -> None:
    full = Query("x" * (MAX_QUERY_LENGTH - len(" site:a.com"))).site("a.com")
    assert len(str(full)) == MAX_QUERY_LENGTH
    assert SearchRequest(query=full).to_wire() == {"query": str(full)}
    with pytest.raises(QueryError, match="502 characters"):
        full.words("y")


def test_a_query_does_not_change() -> None:
    base = Query("a")
    longer = base.site("a.com").allinurl("x")
    assert str(base) == "a"
    assert longer == Query("a").site("a.com").allinurl("x")
    assert hash(longer) == hash(Query("a").site("a.com").allinurl("x"))
    assert longer != base
    for copied in (copy.deepcopy(longer), pickle.loads(pickle.dumps(longer))):
        assert copied == longer
        assert str(copied) == "a site:a.com allinurl:x"


@pytest.mark.rule("search-operator-text")
@given(
    st.text(max_size=60), st.sampled_from(["words", "phrase", "exclude", "inurl", "intitle", "allintitle"])
)
def test_no_text_becomes_an_operator(text: str, method: str) -> None:
    try:
        built = str(getattr(Query(), method)(text))
    except QueryError:
        return
    own = {"exclude": "-", "inurl": "inurl:", "intitle": "intitle:", "allintitle": "allintitle:"}.get(
        method, ""
    )
    assert built.startswith(own)
    rest = built[len(own) :]
    assert rest.count('"') % 2 == 0
    outside = re.sub(r'"[^"]*"', "", rest)
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
