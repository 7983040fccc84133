# SPDX-License-Identifier: Apache-2.0
"""Charts, and the numbers behind them."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import pytest

from airflow_provider_webdata.ui.charts import ChartColumn, columns_chart, small_line
from airflow_provider_webdata.ui.credits import credits_of

TODAY = date(2026, 1, 20)


def drawn(columns: list[ChartColumn], *lines: float) -> str:
    return str(columns_chart(columns, "Credits", "credits", lines))


def test_a_chart_has_an_axis_a_unit_and_values() -> None:
    chart = drawn([ChartColumn("<19 Jan>", [30, 12]), ChartColumn("20 Jan", [5])])
    assert "<19" not in chart
    ticks = re.findall(r">([\d,]+)</text>", chart.partition('class="unit"')[0])
    assert ticks == ["0", "20", "40", "60"]
    assert ">credits</text>" in chart
    assert ">42</text>" in chart
    assert "<title>20 Jan: 5 credits</title>" in chart
    # The parts of a column stand on each other.
    (y0, h0), (y1, h1) = re.findall(r'class="s[01]" [^>]* y="([\d.]+)" [^>]*height="([\d.]+)"', chart)[:2]
    assert float(y1) + float(h1) == pytest.approx(float(y0), abs=0.2)
    assert float(h0) > float(h1)


@pytest.mark.parametrize(("limit", "is_line"), [(50, True), (5000, False)])
def test_a_limit_far_above_the_columns_does_not_flatten_them(limit: float, is_line: bool) -> None:
    chart = drawn([ChartColumn("20 Jan", [42])], limit)
    assert ('<line class="limit"' in chart) is is_line


@pytest.mark.parametrize("parts", [[], [0], [float("nan"), -3], [5e-324]])
def test_nothing_to_draw(parts: list[float]) -> None:
    assert drawn([]) == drawn([ChartColumn("none", parts)]) == ""


@pytest.mark.parametrize("value", [10**399, 1e308, float("inf"), 5e-324, 1e-9])
def test_odd_values_are_drawn(value: Any) -> None:
    chart = drawn([ChartColumn("odd", [value, value]), ChartColumn("plain", [1.5])], value)
    assert "<rect" in chart
    assert "nan" not in chart


def test_ticks_are_whole_numbers() -> None:
    ticks = re.findall(
        r">([^<]+)</text>", drawn([ChartColumn("all", [4_000_000])]).partition('class="unit"')[0]
    )
    assert ticks == ["0", "1,000,000", "2,000,000", "3,000,000", "4,000,000"]


def test_credits() -> None:
    """Sums of days up to today; DAGs that may not be read are not counted."""
    by_day = {
        TODAY - timedelta(days=number): {"shop": 10.0, "river": 4.0, "hidden": 99.0} for number in range(10)
    }
    credits = credits_of(by_day, {"shop", "river"}, TODAY, {"shop": 8})
    assert (credits.total.today, credits.total.week, credits.total.all_days) == (14, 98, 140)
    assert [(one.dag_id, one.all_days) for one in credits.dags] == [("shop", 100), ("river", 40)]
    assert [one.per_run for one in credits.dags] == [12.5, None]
    assert credits.dags[0].trend == (0.0,) * 4 + (10.0,) * 10
    assert [column.label for column in credits.columns[:: len(credits.columns) - 1]] == [
        "2025-12-22",
        "2026-01-20",
    ]
    assert [column.parts for column in credits.columns if column.label == str(TODAY)] == [[10, 4]]
    alone = credits_of(by_day, {"shop", "river"}, TODAY, chosen="river")
    assert (alone.names, alone.total.today, alone.columns[-1].parts) == (["river"], 14, [4])


def test_the_cheapest_dags_share_a_color() -> None:
    by_day = {TODAY: {f"dag{number}": float(10 - number) for number in range(8)}}
    credits = credits_of(by_day, by_day[TODAY], TODAY)
    assert credits.names == ["dag0", "dag1", "dag2", "dag3", "dag4", "other DAGs"]
    assert [column.parts[-1] for column in credits.columns if column.label == str(TODAY)] == [5 + 4 + 3]


def test_a_small_line_shows_small_changes() -> None:
    points = re.search(r'points="([^"]*)"', small_line([9.62, 10.1, 9.62], "price"))
    assert points
    heights = [float(point.partition(",")[2]) for point in points[1].split()]
    assert heights[0] == heights[2] > heights[1] + 10
    assert small_line([1.0], "price") == ""
    assert "nan" not in small_line([5.0, 5.0, -1e299, 1e299], "price")
