"""Charts, and the numbers behind them."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import pytest

from airflow_provider_webdata.api.models import CreditUsage
from airflow_provider_webdata.ui.charts import ChartColumn, columns_chart, small_line
from airflow_provider_webdata.ui.spend import Period, spend_of

TODAY = date(2026, 1, 20)


def drawn(columns: list[ChartColumn], *lines: tuple[str, float]) -> str:
    return str(columns_chart(columns, "Credits", "credits", lines))


def test_a_chart_has_an_axis_a_unit_and_values() -> None:
    chart = drawn([ChartColumn("<19 Jan>", [30, 12]), ChartColumn("20 Jan", [5], is_forecast=True)])
    assert "<19" not in chart
    ticks = re.findall(r">([\d,]+)</text>", chart.partition('class="unit"')[0])
    assert ticks == ["0", "20", "40", "60"]
    assert ">credits</text>" in chart
    assert ">42</text>" in chart
    assert "<title>20 Jan: 5 credits expected</title>" in chart
    # The parts of a column stand on each other.
    (y0, h0), (y1, h1) = re.findall(r'class="s[01]" [^>]* y="([\d.]+)" [^>]*height="([\d.]+)"', chart)[:2]
    assert float(y1) + float(h1) == pytest.approx(float(y0), abs=0.2)
    assert float(h0) > float(h1)


@pytest.mark.parametrize(("limit", "is_line"), [(50, True), (5000, False)])
def test_a_limit_far_above_the_columns_does_not_flatten_them(limit: float, is_line: bool) -> None:
    chart = drawn([ChartColumn("20 Jan", [42])], ("Plan", limit))
    assert ('<line class="limit"' in chart) is is_line
    assert ("Plan ↑" in chart) is not is_line


@pytest.mark.parametrize("parts", [[], [0], [float("nan"), -3], [5e-324]])
def test_nothing_to_draw(parts: list[float]) -> None:
    assert drawn([]) == drawn([ChartColumn("none", parts)]) == ""


@pytest.mark.parametrize("value", [10**399, 1e308, float("inf"), 5e-324, 1e-9])
def test_odd_values_are_drawn(value: Any) -> None:
    chart = drawn([ChartColumn("odd", [value, value]), ChartColumn("plain", [1.5])], ("limit", value))
    assert "<rect" in chart
    assert "nan" not in chart


def test_ticks_are_whole_numbers() -> None:
    ticks = re.findall(
        r">([^<]+)</text>", drawn([ChartColumn("all", [4_000_000])]).partition('class="unit"')[0]
    )
    assert ticks == ["0", "1,000,000", "2,000,000", "3,000,000", "4,000,000"]


def test_spend() -> None:
    """Sums, forecast, and end of the credits follow the last 7 days; DAGs that may not be read are not counted."""
    by_day = {
        TODAY - timedelta(days=number): {"shop": 10.0, "river": 4.0, "hidden": 99.0} for number in range(10)
    }
    usage = CreditUsage(
        remaining_credits=280,
        plan_credits=310,
        billing_period_start="2026-01-15T06:00:00Z",
        billing_period_end="2026-02-15T06:00:00Z",
    )
    period = Period.of(usage, TODAY)
    spend = spend_of(by_day, {"shop", "river"}, period, TODAY, {"shop": 8})
    assert (spend.total.today, spend.total.week, spend.total.period) == (14, 98, 84)
    assert [(one.dag_id, one.period) for one in spend.dags] == [("shop", 60), ("river", 24)]
    assert (spend.per_day, spend.forecast, spend.enough_until) == (14, 84 + 14 * 25, date(2026, 2, 9))
    assert [one.per_run for one in spend.dags] == [7.5, None]
    assert spend.dags[0].trend == (0.0,) * 4 + (10.0,) * 10
    alone = spend_of(by_day, {"shop", "river"}, period, TODAY, chosen="river")
    assert (alone.names, alone.total.today, alone.columns[-1].parts) == (["river"], 14, [4])
    assert spend.plan_per_day == 10
    assert [column.label for column in spend.columns[:: len(spend.columns) - 1]] == ["11 Jan", "14 Feb"]
    assert [column.parts for column in spend.columns if column.label == "20 Jan"] == [[10, 4]]
    assert spend.columns[-1].is_forecast
    assert 'class="limit"' in spend.chart()


@pytest.mark.parametrize(
    ("left", "plan", "until", "is_enough", "per_day"),
    [
        (10**15, 10**15, None, True, 1e15 / 31),
        (-5, 310, TODAY, False, 10),
        (10**400, float("nan"), None, False, None),
    ],
    ids=["large", "negative", "no number"],
)
def test_odd_balances(
    left: float, plan: float | None, until: date | None, is_enough: bool, per_day: float | None
) -> None:
    period = Period.of(CreditUsage(remaining_credits=left, plan_credits=plan), TODAY)
    spend = spend_of({TODAY: {"shop": 1.0}}, {"shop"}, period, TODAY)
    assert (spend.enough_until, spend.is_enough_for_a_year, spend.plan_per_day) == (until, is_enough, per_day)


@pytest.mark.parametrize(
    ("start", "end"),
    [(None, None), ("odd", "2026-02-01"), ("2000-01-01", "2999-01-01"), ("2026-03-01", "2026-04-01")],
)
def test_a_period_that_cannot_be_is_the_calendar_month(start: str | None, end: str | None) -> None:
    usage = CreditUsage(billing_period_start=start, billing_period_end=end)
    assert Period.of(usage, TODAY) == Period.of(None, TODAY) == Period(date(2026, 1, 1), date(2026, 2, 1))


def test_the_cheapest_dags_share_a_color() -> None:
    by_day = {TODAY: {f"dag{number}": float(10 - number) for number in range(8)}}
    spend = spend_of(by_day, by_day[TODAY], Period.of(None, TODAY), TODAY)
    assert spend.names == ["dag0", "dag1", "dag2", "dag3", "dag4", "other DAGs"]
    assert [column.parts[-1] for column in spend.columns if column.label == "20 Jan"] == [5 + 4 + 3]


def test_a_small_line_shows_small_changes() -> None:
    points = re.search(r'points="([^"]*)"', small_line([9.62, 10.1, 9.62], "price"))
    assert points
    heights = [float(point.partition(",")[2]) for point in points[1].split()]
    assert heights[0] == heights[2] > heights[1] + 10
    assert small_line([1.0], "price") == ""
    assert "nan" not in small_line([5.0, 5.0, -1e299, 1e299], "price")
