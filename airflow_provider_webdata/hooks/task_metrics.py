"""Counters and gauges in Airflow's own metrics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import Context

_MAX_TAG = 100


def count(name: str, number: float, context: Context, **tags: str) -> None:
    """Add to a counter, tagged with the task.

    :param number: increment; a fraction is rounded.
    """
    from airflow.sdk.observability.stats import Stats

    tags = _safe(tags)
    if (ti := context.get("ti")) is not None:
        tags = {"dag_id": ti.dag_id, "task_id": ti.task_id, **tags}
    Stats.incr(name, round(number), tags=tags)


def gauge(name: str, number: float, context: Context, **tags: str) -> None:
    """Set a gauge, tagged with the task."""
    from airflow.sdk.observability.stats import Stats

    tags = _safe(tags)
    if (ti := context.get("ti")) is not None:
        tags = {"dag_id": ti.dag_id, "task_id": ti.task_id, **tags}
    Stats.gauge(name, number, tags=tags)


def _safe(tags: dict[str, str]) -> dict[str, str]:
    """Return tags that cannot end a line of StatsD, which would add other metrics: the service sets some values."""
    return {name: re.sub(r"[^\w./()!-]+", "_", value)[:_MAX_TAG] for name, value in tags.items()}
