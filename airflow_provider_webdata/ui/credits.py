# SPDX-License-Identifier: Apache-2.0
"""Credits by DAG and day: sums and chart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import TYPE_CHECKING

from airflow_provider_webdata.ui.charts import SERIES, ChartColumn, columns_chart, sparkline

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from markupsafe import Markup

DAYS = 30
"""Days up to today that the chart shows."""
_WEEK = 7
_TREND = 14
_OTHERS = "other DAGs"


@dataclass(frozen=True)
class DagCredits:
    """Credits of one DAG, or of all DAGs.

    :param all_days: credits of the last `DAYS` days.
    :param per_run: average of the runs in these days; None if unknown.
    :param trend: credits of each of the last 14 days, oldest first.
    """

    dag_id: str
    today: float
    week: float
    all_days: float
    per_run: float | None = None
    trend: tuple[float, ...] = ()

    def trend_chart(self) -> Markup:
        """Return the credits of the last 14 days as a small chart."""
        return sparkline(self.trend, f"Credits of {self.dag_id} on each of the last {len(self.trend)} days")


@dataclass(frozen=True)
class TaskCredits:
    """Credits of one task of a DAG.

    :param used: credits of the last `DAYS` days.
    :param instances: number of task instances that reported them.
    """

    task_id: str
    used: float
    instances: int

    @property
    def average(self) -> float:
        """Credits of a task instance."""
        return self.used / self.instances

    @property
    def limit(self) -> str:
        """The argument that caps an instance at twice the average, as Python."""
        return f"credit_limit={max(math.ceil(2 * self.average), 1)}"


@dataclass(frozen=True)
class Credits:
    """Credits of DAGs.

    :param total: sum of all DAGs.
    :param dags: each DAG, highest credits first.
    :param names: names of the chart's series.
    :param columns: columns of the chart.
    """

    total: DagCredits
    dags: list[DagCredits]
    names: list[str]
    columns: list[ChartColumn]

    def chart(self) -> Markup:
        """Return the credits by day as a chart."""
        return columns_chart(self.columns, "Credits per day by DAG", "credits")


def credits_of(
    by_day: Mapping[date, Mapping[str, float]],
    dag_ids: Collection[str],
    today: date,
    runs: Mapping[str, int] = MappingProxyType({}),
    chosen: str = "",
) -> Credits:
    """Sum the credits of some DAGs.

    :param by_day: credits by UTC day and DAG.
    :param today: current UTC day.
    :param runs: number of runs in the last `DAYS` days, by DAG.
    :param chosen: the DAG that the chart shows; empty: all.
    """
    days = [today - timedelta(days=number) for number in reversed(range(DAYS))]

    def credits_of_dag(dag_id: str) -> DagCredits:
        used = [by_day.get(day, {}).get(dag_id, 0) for day in days]
        return DagCredits(
            dag_id,
            used[-1],
            sum(used[-_WEEK:]),
            sum(used),
            per_run=sum(used) / runs[dag_id] if runs.get(dag_id) else None,
            trend=tuple(used[-_TREND:]),
        )

    spending = {one for used_by in by_day.values() for one in used_by if one in dag_ids}
    dags = sorted(map(credits_of_dag, spending), key=lambda one: (-one.all_days, -one.week, one.dag_id))
    total = DagCredits(
        "", sum(one.today for one in dags), sum(one.week for one in dags), sum(one.all_days for one in dags)
    )
    drawn = [one.dag_id for one in dags if chosen in ("", one.dag_id)]
    names, others = drawn[: SERIES - 1], drawn[SERIES - 1 :]
    columns = []
    for day in days:
        used_by = by_day.get(day, {})
        parts = [used_by.get(name, 0) for name in names]
        parts += [sum(used_by.get(name, 0) for name in others)] if others else []
        columns.append(ChartColumn(day.isoformat(), parts or [0]))
    return Credits(total, dags, names + ([_OTHERS] if others else []), columns)


def today() -> date:
    """Return the current UTC day."""
    return datetime.now(timezone.utc).date()
