# SPDX-License-Identifier: Apache-2.0
"""Counters and gauges in Airflow's own metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.common.component_metrics import safe_tags

if TYPE_CHECKING:
    from airflow.sdk import Context


def count(name: str, number: float, context: Context, **tags: str) -> None:
    """Add to a counter, tagged with the task.

    :param number: increment; a fraction is rounded.
    """
    from airflow.sdk.observability.stats import Stats

    tags = safe_tags(tags)
    if (ti := context.get("ti")) is not None:
        tags = {"dag_id": ti.dag_id, "task_id": ti.task_id, **tags}
    Stats.incr(name, round(number), tags=tags)


def gauge(name: str, number: float, context: Context, **tags: str) -> None:
    """Set a gauge, tagged with the task."""
    from airflow.sdk.observability.stats import Stats

    tags = safe_tags(tags)
    if (ti := context.get("ti")) is not None:
        tags = {"dag_id": ti.dag_id, "task_id": ti.task_id, **tags}
    Stats.gauge(name, number, tags=tags)
