"""The checks of a task's data, as its XComs hold them, and the same facts of its earlier runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from airflow_provider_webdata.ui.charts import Column, columns_chart
from airflow_provider_webdata.ui.tasks import is_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.ui.tasks import TaskFacts

_MOST_SHOWN = 50


class Quality(NamedTuple):
    """The quality of a task's data.

    :param is_rejected: whether the results were not published.
    :param failed: each check that failed, as text.
    :param coverage: share of items that have a field, by field.
    :param blocked: substitute pages, by kind.
    :param invalid: number of items that do not match the schema, and of those that were compared; None: no schema.
    :param chart: items of the last runs; empty if they are fewer than two.
    """

    is_rejected: bool
    failed: list[str]
    coverage: dict[str, float]
    blocked: dict[str, float]
    invalid: tuple[int, int] | None
    chart: Markup


def quality_of(facts: TaskFacts, past: Callable[[], list[tuple[str, Any]]]) -> Quality | None:
    """Return what the checks of a task found, None if it has none.

    :param past: returns run and XCom `quality` of the last runs, the oldest first.
    """
    rejected = facts.fact("qualityRejected")
    found = rejected if isinstance(rejected, dict) else facts.fact("quality")
    validation = facts.fact("validation")
    invalid: tuple[int, int] | None = None
    if isinstance(validation, dict):
        wrong, checked = validation.get("invalid"), validation.get("checked")
        if isinstance(wrong, int) and isinstance(checked, int):
            invalid = wrong, checked
    if not isinstance(found, dict):
        return None if invalid is None else Quality(False, [], {}, {}, invalid, Markup())
    failed = found.get("failed")
    return Quality(
        found is rejected,
        [_said(one) for one in failed[:_MOST_SHOWN]] if isinstance(failed, list) else [],
        _numbers(found.get("coverage")),
        _numbers(found.get("blocked")),
        invalid,
        _chart(past()),
    )


def _said(check: Any) -> str:
    if not isinstance(check, dict):
        return str(check)
    name = " ".join(str(check[part]) for part in ("check", "field") if check.get(part))
    return f"{name}: expected {check.get('expected')}, got {check.get('actual')}"


def _numbers(value: Any) -> dict[str, float]:
    items = list(value.items())[:_MOST_SHOWN] if isinstance(value, dict) else []
    return {str(name): one for name, one in items if is_number(one)}


def _chart(past: list[tuple[str, Any]]) -> Markup:
    items = [(run_id, facts.get("items")) for run_id, facts in past if isinstance(facts, dict)]
    columns = [
        Column(run_id.partition("__")[2][:10] or run_id[:10], [count])
        for run_id, count in items
        if is_number(count)
    ]
    return columns_chart(columns, "Items of the last runs", "items") if len(columns) > 1 else Markup()
