# SPDX-License-Identifier: Apache-2.0
"""Quoting of text in search queries, and time filters.

Untrusted text in a query passes through `words` or `phrase`, where it cannot become an operator. The service's query
language cannot escape a double quote, so double quotes become spaces.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any, Literal

import pendulum

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.run_span import run_span

MAX_QUERY_LENGTH = 500
"""Maximum length of a query, in characters."""


class QueryError(CodedError, ValueError):
    """The service does not accept the query or time filter."""

    help_code = "WD-004"


_OPERATORS = (
    "site",
    "filetype",
    "inurl",
    "allinurl",
    "intitle",
    "allintitle",
    "related",
    "imagesize",
    "larger",
)
_OPERATOR = re.compile(rf"(?<!\w)(?:{'|'.join(_OPERATORS)}):", re.IGNORECASE)
_QUOTES = re.compile('["\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02]')


def words(text: str) -> str:
    """Return text for a query in which each word that looks like an operator or an exclusion is quoted.

    :param text: any text; each double quote becomes a space.
    """
    return " ".join(_plain(token) for token in _QUOTES.sub(" ", text).split())


def phrase(text: str) -> str:
    """Return text in quotes, as an exact phrase.

    :param text: any text; each double quote becomes a space.
    :raises QueryError: the text is blank.
    """
    tokens = _QUOTES.sub(" ", text).split()
    if not tokens:
        raise QueryError("a phrase must not be blank")
    return f'"{" ".join(tokens)}"'


def _plain(token: str) -> str:
    # A search engine may skip leading punctuation, such as a bracket, before an operator.
    if _OPERATOR.search(token) or (re.match(r"\W*-", token) and token.strip("-")):
        return f'"{token}"'
    return token


_TBS_FORMS = (
    "use qdr:h, qdr:d, qdr:w, qdr:m, or qdr:y; cdr:1,cd_min:MM/DD/YYYY,cd_max:MM/DD/YYYY; "
    "sbd:1 (by date); or sbd:1 and one of the others, separated by a comma"
)
_CUSTOM_RANGE = re.compile(r"cdr:1,cd_min:([^,]*),cd_max:([^,]*)")


def check_tbs(value: str) -> None:
    """Check a time filter against the documented grammar.

    Documented are `qdr:` with h, d, w, m, or y; `cdr:1,cd_min:MM/DD/YYYY,cd_max:MM/DD/YYYY`; `sbd:1`; and
    comma-separated combinations. Dates without leading zeros are also accepted; see `short_dates`. Other values that
    search engines may support, such as `qdr:h6`, are undocumented and rejected.

    :raises QueryError: the filter is undocumented, contains an invalid date, or ends before it begins.
    """
    rest = value
    span = _CUSTOM_RANGE.search(value)
    if span:
        first, last = _day_of_filter(span[1]), _day_of_filter(span[2])
        if last < first:
            raise QueryError(f"the time filter ends ({span[2]}) before it begins ({span[1]}); swap the dates")
        rest = f"{value[: span.start()]}cdr{value[span.end() :]}"
    parts = rest.split(",")
    for part in parts:
        if part == "cdr" and span:
            continue
        if not re.fullmatch(r"qdr:[hdwmy]|sbd:1", part):
            raise QueryError(f"the time filter contains {part!r}; {_TBS_FORMS}")
    kinds = [part.partition(":")[0] for part in parts]
    if len(set(kinds)) < len(kinds):
        raise QueryError("the time filter contains several parts of the same kind; keep one of each")
    if {"qdr", "cdr"} <= set(kinds):
        raise QueryError("the time filter contains a recent period (qdr) and a range (cdr); keep one of them")


def short_dates(value: str) -> list[str]:
    """Return the dates of a time filter that lack a leading zero, such as `3/1/2026`.

    The service's guides use this form; its reference documents MM/DD/YYYY.

    :param value: a time filter that `check_tbs` accepts.
    """
    span = _CUSTOM_RANGE.search(value)
    return [text for text in span.groups() if len(text) < len("MM/DD/YYYY")] if span else []


def _day_of_filter(text: str) -> date:
    match = re.fullmatch(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", text)
    try:
        if match:
            return date(int(match[3]), int(match[1]), int(match[2]))
    except ValueError:
        pass
    raise QueryError(f"the time filter contains {text!r}, which is not a valid date in the form MM/DD/YYYY")


Period = Literal["hour", "day", "week", "month", "year"]
_PERIODS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": None,
    "year": None,
}


def recent(period: Period | timedelta, *, sort_by_date: bool = False) -> str:
    """Return the time filter for the last hour, day, week, month, or year.

    :param period: name of the period, or a timedelta of exactly one hour, day, or week.
    :param sort_by_date: sort results by date, newest first.
    :raises QueryError: the service does not support the period; use `tbs` for any two dates.
    """
    if isinstance(period, timedelta):
        names = [
            name for name, length in _PERIODS.items() if length == timedelta(seconds=period.total_seconds())
        ]
    else:
        names = [period] if period in _PERIODS else []
    if not names:
        raise QueryError(
            f"the period must be one of {', '.join(_PERIODS)} (given: {period!r}); for another period, "
            "pass two dates to tbs()"
        )
    return _sorted(f"qdr:{names[0][0]}", sort_by_date)


def tbs(start: Any, end: Any = None, *, sort_by_date: bool = False, tz: str | tzinfo | None = None) -> str:
    """Return the time filter for a range of days: `cdr:1,cd_min:MM/DD/YYYY,cd_max:MM/DD/YYYY`.

    The filter supports only whole days, and includes both. An end at midnight excludes its day, so the data interval
    of a daily DAG gives one day. A range within a day, or an empty range, gives that day.

    :param start: start of the range: a datetime or date (including pendulum's), or ISO 8601 text such as `{{ ds }}`. If
        `end` is omitted, an object with `start` and `end` (a pendulum Interval, a DataInterval), or a DAG run: its
        partition, its data interval, or the day of its `run_after`; see `run_span`.
    :param end: end of the range; a plain date, or text without a time, includes its day.
    :param sort_by_date: sort results by date, newest first.
    :param tz: time zone of the days. Default: that of `start`.
    :raises QueryError: the range ends before it begins, its start or end is missing, or only one of them has a time
        zone.
    """
    zone = _zone(tz)
    if end is None and not _is_missing(start):
        if hasattr(start, "run_after"):
            start, end = run_span(start, zone)
        elif hasattr(start, "start") and hasattr(start, "end"):
            start, end = start.start, start.end
    first, last = _moment(start, "start"), _moment(end, "end")
    if isinstance(first, datetime) and isinstance(last, datetime):
        if (first.tzinfo is None) != (last.tzinfo is None):
            raise QueryError("only one end of the range has a time zone; set both or neither")
        if last < first:
            raise QueryError(f"the range ends ({last}) before it begins ({first}); swap them")
    zone = zone or (first.tzinfo if isinstance(first, datetime) else None)
    first_day, last_day = _day(first, zone), _day(last, zone)
    if isinstance(last, datetime) and last_day > first_day and _local(last, zone).time() == time.min:
        last_day -= timedelta(days=1)
    if last_day < first_day:
        raise QueryError(f"the range ends ({last_day}) before it begins ({first_day}); swap them")
    return _sorted(f"cdr:1,cd_min:{_written(first_day)},cd_max:{_written(last_day)}", sort_by_date)


def _moment(value: Any, which: str) -> date:
    if isinstance(value, str):
        if (found := moment(value, zone=None)) is None:
            raise QueryError(
                f"the {which} of the range must be an ISO 8601 date such as 2026-05-01 or "
                f"2026-05-01T06:00:00+00:00 (given: {value!r})"
            )
        return found.date() if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) else found
    if isinstance(value, date):
        return value
    if _is_missing(value):
        raise QueryError(
            f"the range has no {which}: a run that was triggered manually or by an asset may have no data interval. "
            "In a template, use macros.webdata.tbs(dag_run), which uses the day of such a run; otherwise, pass two "
            "dates"
        )
    raise QueryError(f"the {which} of the range must be a date or a datetime (given: {type(value).__name__})")


def _is_missing(value: Any) -> bool:
    # Jinja passes an undefined name as an object that raises on any use.
    return value is None or any(kind.__name__ == "Undefined" for kind in type(value).__mro__)


def _zone(tz: str | tzinfo | None) -> tzinfo | None:
    if not isinstance(tz, str):
        return tz
    try:
        return pendulum.Timezone(tz)
    except (ValueError, OSError):
        raise QueryError(f"unknown time zone {tz!r}; use an IANA name such as Europe/Berlin") from None


def _local(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment.astimezone(zone) if zone is not None and moment.tzinfo is not None else moment


def _day(moment: date, zone: tzinfo | None) -> date:
    if isinstance(moment, datetime):
        moment = _local(moment, zone)
    return date(moment.year, moment.month, moment.day)


def _written(day: date) -> str:
    return f"{day.month:02}/{day.day:02}/{day.year:04}"


def _sorted(value: str, sort_by_date: bool) -> str:
    return f"sbd:1,{value}" if sort_by_date else value
