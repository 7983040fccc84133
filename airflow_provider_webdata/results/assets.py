"""What downstream DAGs are told of a written file: the extra of the asset events of a task's outlets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def annotate_outlets(context: Mapping[str, Any], facts: Mapping[str, Any]) -> int:
    """Put facts into the event of each of the task's outlet assets and aliases.

    What the DAG's author has put there already stays.

    :param context: the task's context.
    :param facts: JSON values by name; those that are None are left out.
    :return: how many outlets were told.
    """
    events, task = context.get("outlet_events"), context.get("task")
    if events is None or task is None:
        return 0
    from airflow.sdk import Asset, AssetAlias
    from airflow.sdk.definitions.asset import AssetRef

    known = {name: value for name, value in facts.items() if value is not None}
    told = 0
    for outlet in task.outlets or ():
        if isinstance(outlet, (Asset, AssetAlias, AssetRef)):
            extra = events[outlet].extra
            extra.update({name: value for name, value in known.items() if name not in extra})
            told += 1
    return told
