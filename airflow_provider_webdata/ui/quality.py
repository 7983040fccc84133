# SPDX-License-Identifier: Apache-2.0
"""Data quality of a task and its earlier runs, read from XCom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from airflow_provider_webdata.common.xcom_keys import QUALITY, QUALITY_REJECTED
from airflow_provider_webdata.ui.charts import ChartColumn, columns_chart, sparkline
from airflow_provider_webdata.ui.rendering import number
from airflow_provider_webdata.ui.tasks import is_number, sum_known

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_provider_webdata.ui.tasks import TaskSummary

KEYS = (QUALITY, QUALITY_REJECTED, "changes")
"""Keys of the XComs of earlier runs that the charts show."""
_CHANGES = {"new": "New", "changed": "Changed", "removed": "Removed"}
_OF_ITEMS = frozenset(("min_items", "drop_vs_last"))
_MAX_SHOWN = 50
_LAST = 7


class Measurement(NamedTuple):
    """A measurement of a task's data.

    :param name: name of the measurement or field.
    :param value: value in this run.
    :param course: chart of the values in the last runs; empty if there are fewer than two.
    """

    name: str
    value: float
    course: Markup


class Condition(NamedTuple):
    """A failed condition.

    :param name: name of the condition, with its field if any.
    :param expected: expected value as text.
    :param actual: value in this run as text.
    :param last: values of the last runs as text, oldest first; empty if unknown.
    """

    name: str
    expected: str
    actual: str
    last: str = ""


class QualityRecord(NamedTuple):
    """The quality of a task's data.

    :param is_rejected: whether the results were rejected.
    :param failed: failed conditions.
    :param blocked: number of substitute pages by kind.
    :param invalid: numbers of items that do not match the schema and of validated items; None without a schema.
    :param measurements: measurements of the results.
    :param coverage: share of items that have a field, by field.
    :param chart: chart of the items in the last runs; empty if there are fewer than two.
    :param has_rejected: whether the results of one of these runs were rejected.
    :param least: minimum number of items in this run, which the chart shows as a line; None if unknown or 0.
    """

    is_rejected: bool
    failed: list[Condition]
    blocked: dict[str, float]
    invalid: tuple[int, int] | None
    measurements: Sequence[Measurement] = ()
    coverage: Sequence[Measurement] = ()
    chart: Markup = Markup()
    has_rejected: bool = False
    least: float | None = None


def quality_of(
    summary: TaskSummary,
    past: Callable[[], list[tuple[str, dict[str, Any]]]],
    run_url: Callable[[str], str] = lambda _: "",
) -> QualityRecord | None:
    """Return the data quality of a task, or None if it has no conditions.

    :param past: returns the last runs, with this one last, and their XComs `KEYS`, oldest first.
    :param run_url: returns the address of this task in a run.
    """
    rejected = summary.fact(QUALITY_REJECTED)
    found = rejected if isinstance(rejected, dict) else summary.fact(QUALITY)
    validation = summary.fact("validation")
    invalid: tuple[int, int] | None = None
    if isinstance(validation, dict):
        wrong, checked = validation.get("invalid"), validation.get("checked")
        if isinstance(wrong, int) and isinstance(checked, int):
            invalid = wrong, checked
    if not isinstance(found, dict):
        return None if invalid is None else QualityRecord(False, [], {}, invalid)
    failed = found.get("failed")
    runs = [(run_id, xcoms) for run_id, xcoms in past() if _quality(xcoms)]
    before = [_quality(xcoms) for run_id, xcoms in runs if run_id != summary.name.run_id]
    measured, covered = _measured(found, summary.fact("changes")), _numbers(found.get("coverage"))
    earlier = [_measured(_quality(xcoms), xcoms.get("changes")) for _, xcoms in runs]
    columns = [
        # Rejected results have a different color.
        ChartColumn(
            run_id.partition("__")[2][:10] or run_id[:10],
            [0, 0, items] if QUALITY_REJECTED in xcoms else [items],
            href=run_url(run_id),
        )
        for run_id, xcoms in runs
        if is_number(items := _quality(xcoms).get("items"))
    ]
    limit = found.get("min_items")
    least = limit if is_number(limit) and limit > 0 else None
    return QualityRecord(
        found is rejected,
        [_condition(one, before) for one in failed[:_MAX_SHOWN]] if isinstance(failed, list) else [],
        _numbers(found.get("blocked")),
        invalid,
        _measures(measured, earlier),
        _measures(covered, [_numbers(_quality(xcoms).get("coverage")) for _, xcoms in runs], 1),
        columns_chart(columns, "Items in the last runs", "items", [] if least is None else [least])
        if len(columns) > 1
        else Markup(),
        any(len(column.parts) > 1 for column in columns),
        least,
    )


def _quality(xcoms: Mapping[str, Any]) -> dict[str, Any]:
    found = xcoms.get(QUALITY_REJECTED, xcoms.get(QUALITY))
    return found if isinstance(found, dict) else {}


def _measured(quality: Mapping[str, Any], changes: Any) -> dict[str, float]:
    """Return the measurements of a run by the names shown on the page."""
    changes = changes if isinstance(changes, dict) else {}
    return _numbers(
        {
            "Substitute pages": sum_known([0, *_numbers(quality.get("blocked")).values()]),
            "Credits per item": quality.get("credits_per_item"),
            **{shown: changes.get(name) for name, shown in _CHANGES.items()},
        }
    )


def _measures(
    now: Mapping[str, float], runs: Sequence[Mapping[str, float]], top: float = 0
) -> list[Measurement]:
    """Return measurements with charts of their values over runs.

    :param top: highest possible value; 0 if unlimited.
    """
    return [
        Measurement(
            name,
            value,
            sparkline([run.get(name) for run in runs], f"{name} in the last runs", top)
            if len(runs) > 1
            else Markup(),
        )
        for name, value in now.items()
    ]


def _condition(condition: Any, runs: Sequence[Mapping[str, Any]]) -> Condition:
    if not isinstance(condition, dict):
        return Condition(str(condition), "", "")
    kind, field = condition.get("condition"), condition.get("field")
    if kind in _OF_ITEMS:
        values = [run.get("items") for run in runs]
    elif kind == "coverage":
        values = [_numbers(run.get("coverage")).get(str(field)) for run in runs]
    else:
        values = []
    last = [number(value) for value in values if is_number(value)][-_LAST:]
    name = " ".join(str(part) for part in (kind, field) if part)
    return Condition(name, str(condition.get("expected")), str(condition.get("actual")), ", ".join(last))


def _numbers(value: Any) -> dict[str, float]:
    items = list(value.items())[:_MAX_SHOWN] if isinstance(value, dict) else []
    return {str(name): one for name, one in items if is_number(one)}
