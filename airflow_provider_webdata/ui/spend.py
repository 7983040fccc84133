"""Credits by DAG and day: sums, forecast for the billing period, and chart."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import TYPE_CHECKING

from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.ui.charts import SERIES, ChartColumn, columns_chart, drawable, sparkline
from airflow_provider_webdata.ui.rendering import in_utc

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from markupsafe import Markup

    from airflow_provider_webdata.api.models import CreditHistory, CreditUsage

DAYS = 14
"""Days up to today that the chart shows if they have credits, in addition to the billing period."""
_MAX_PERIOD = 62
_WEEK = 7
_YEAR = 365
_OTHERS = "other DAGs"


@dataclass(frozen=True)
class Period:
    """A billing period in UTC days.

    :param start: first day.
    :param end: first day after the period.
    :param plan: credits of the plan; None if unknown.
    :param left: remaining credits; None if unknown.
    :param is_reported: whether the service reported the days. Otherwise, they are the calendar month.
    """

    start: date
    end: date
    plan: float | None = None
    left: float | None = None
    is_reported: bool = False

    @classmethod
    def of(cls, usage: CreditUsage | None, today: date) -> Period:
        """Return the period that the service reports, or the calendar month if it reports none."""
        start = today.replace(day=1)
        end = (start + timedelta(days=32)).replace(day=1)
        if usage is None:
            return cls(start, end)
        starts, ends = _day(usage.billing_period_start), _day(usage.billing_period_end)
        longest = timedelta(days=_MAX_PERIOD)
        is_reported = bool(starts and ends and starts <= today < ends and ends - starts <= longest)
        if starts and ends and is_reported:
            start, end = starts, ends
        plan, left = (
            None if one is None else drawable(one) for one in (usage.plan_credits, usage.remaining_credits)
        )
        return cls(start, end, plan, left, is_reported)

    def used_by_team(self, history: CreditHistory | None) -> float | None:
        """Return the team's credits in this period; None if the service does not report the period."""
        periods = history.periods if history is not None else ()
        used = next(
            (one.used for one in periods if not one.api_key and _day(one.start_date) == self.start), None
        )
        return None if used is None else drawable(used)

    def shown_from(self, today: date) -> date:
        """Return the first day that the chart may show."""
        return min(self.start, today - timedelta(days=DAYS - 1))


@dataclass(frozen=True)
class DagSpend:
    """Credits of one DAG, or of all DAGs.

    :param per_run: average of the runs in the period; None if unknown.
    :param trend: credits of each of the last 14 days, oldest first.
    """

    dag_id: str
    today: float
    week: float
    period: float
    per_run: float | None = None
    trend: tuple[float, ...] = ()

    def trend_chart(self) -> Markup:
        """Return the credits of the last 14 days as a small chart."""
        return sparkline(self.trend, f"Credits of {self.dag_id} on each of the last {len(self.trend)} days")


@dataclass(frozen=True)
class Spend:
    """Credits that DAGs spent.

    :param total: sum of all DAGs.
    :param dags: each DAG, highest credits first.
    :param per_day: daily average of the last 7 days, or of the days since the first credit if those are fewer.
    :param forecast: projected credits at the end of the period at this rate.
    :param enough_until: day on which the credits run out at this rate; None if unknown, or not within a year.
    :param is_enough_for_a_year: whether they run out later.
    :param names: names of the chart's series.
    :param columns: columns of the chart.
    """

    total: DagSpend
    dags: list[DagSpend]
    per_day: float
    forecast: float
    enough_until: date | None
    is_enough_for_a_year: bool
    names: list[str]
    columns: list[ChartColumn]
    plan_per_day: float | None

    def chart(self) -> Markup:
        """Return the credits by day as a chart."""
        lines = [(f"Plan: {self.plan_per_day:,.0f} a day", self.plan_per_day)] if self.plan_per_day else []
        return columns_chart(self.columns, "Credits per day by DAG", "credits", lines)


def spend_of(
    by_day: Mapping[date, Mapping[str, float]],
    dag_ids: Collection[str],
    period: Period,
    today: date,
    runs: Mapping[str, int] = MappingProxyType({}),
    chosen: str = "",
) -> Spend:
    """Sum the credits of some DAGs.

    :param by_day: credits by UTC day and DAG.
    :param today: current UTC day.
    :param runs: number of runs in the period, by DAG.
    :param chosen: the DAG that the chart shows; empty: all.
    """
    last_days = [today - timedelta(days=number) for number in reversed(range(DAYS))]
    week = today - timedelta(days=_WEEK - 1)
    mine = {one for used_by in by_day.values() for one in used_by if one in dag_ids}

    def spent(dag_id: str, since: date) -> float:
        return sum(used_by.get(dag_id, 0) for day, used_by in by_day.items() if day >= since)

    dags = sorted(
        (
            DagSpend(
                dag_id,
                spent(dag_id, today),
                spent(dag_id, week),
                spent(dag_id, period.start),
                per_run=spent(dag_id, period.start) / runs[dag_id] if runs.get(dag_id) else None,
                trend=tuple(by_day.get(day, {}).get(dag_id, 0) for day in last_days),
            )
            for dag_id in mine
        ),
        key=lambda one: (-one.period, -one.week, one.dag_id),
    )
    total = DagSpend(
        "", sum(one.today for one in dags), sum(one.week for one in dags), sum(one.period for one in dags)
    )
    first = min(
        (day for day, used_by in by_day.items() if any(used_by.get(one) for one in mine)), default=today
    )
    per_day = total.week / min(max((today - first).days + 1, 1), _WEEK)
    drawn = [one for one in dags if chosen in ("", one.dag_id)]
    names = [one.dag_id for one in drawn[: SERIES - 1]]
    others = [one.dag_id for one in drawn[SERIES - 1 :]]
    rate = sum(sum(one.trend[-_WEEK:]) for one in drawn) / min(max((today - first).days + 1, 1), _WEEK)
    columns = []
    day = max(period.shown_from(today), min(first, period.start))
    while day < period.end:
        used_by = by_day.get(day, {})
        parts = [used_by.get(name, 0) for name in names]
        parts += [sum(used_by.get(name, 0) for name in others)] if others else []
        is_forecast = day > today
        columns.append(
            ChartColumn(f"{day.day} {day:%b}", [rate] if is_forecast else parts or [0], is_forecast)
        )
        day += timedelta(days=1)
    days_left = period.left / per_day if period.left is not None and per_day > 0 else None
    return Spend(
        total,
        dags,
        per_day,
        total.period + per_day * max((period.end - today).days - 1, 0),
        today + timedelta(days=int(days_left)) if days_left is not None and days_left < _YEAR else None,
        days_left is not None and days_left >= _YEAR,
        names + ([_OTHERS] if others else []),
        columns,
        period.plan / (period.end - period.start).days if period.plan else None,
    )


def _day(text: str | None) -> date | None:
    found = moment(text)
    return in_utc(found).date() if found else None


def today() -> date:
    """Return the current UTC day."""
    return datetime.now(timezone.utc).date()
