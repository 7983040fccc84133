# SPDX-License-Identifier: Apache-2.0
"""Asset events of a task's outlets, through which downstream DAGs find a written file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.page_urls import page_url
from airflow_provider_webdata.common.spelling import snake_case
from airflow_provider_webdata.common.storable import storable

if TYPE_CHECKING:
    from collections.abc import Mapping


def annotate_outlets(context: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Add a summary to the extra of each outlet's event.

    Values set by the DAG's author take precedence.

    :param summary: JSON values by name, which become snake_case; None is omitted.
    """
    task = context.get("task")
    if context.get("outlet_events") is None or task is None:
        return
    from airflow.sdk import Asset, AssetAlias
    from airflow.sdk.definitions.asset import AssetRef

    known = {snake_case(name): value for name, value in summary.items() if value is not None}
    for outlet in task.outlets or ():
        if isinstance(outlet, (Asset, AssetRef, AssetAlias)):
            extra = context["outlet_events"][outlet].extra
            extra.update({name: storable(value) for name, value in known.items() if name not in extra})


def link_outlets(context: Mapping[str, Any], page: str) -> None:
    """Link the event of each outlet to a page of the provider in Airflow's UI.

    :param page: path of the page.
    """
    annotate_outlets(context, {"page_url": page_url(page)})
