"""The extra of the asset events of a task's outlets, by which downstream DAGs find a written file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.definitions.asset import AssetRef

if TYPE_CHECKING:
    from collections.abc import Mapping


def annotate_outlets(context: Mapping[str, Any], facts: Mapping[str, Any]) -> int:
    """Add facts to the event of each of the task's outlet assets and aliases, and return how many there are.

    What the DAG's author has put there already stays.

    :param facts: JSON values by name; those that are None are left out.
    """
    events, task = context.get("outlet_events"), context.get("task")
    if events is None or task is None:
        return 0

    known = {name: value for name, value in facts.items() if value is not None}
    annotated = 0
    for outlet in task.outlets or ():
        if isinstance(outlet, (Asset, AssetAlias, AssetRef)):
            extra = events[outlet].extra
            extra.update({name: value for name, value in known.items() if name not in extra})
            annotated += 1
    return annotated
