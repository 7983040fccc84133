# SPDX-License-Identifier: Apache-2.0
"""Monitors as Airflow assets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.assets.uri import DEFAULT_CONN_ID, monitor_uri

if TYPE_CHECKING:
    from airflow.sdk import Asset


def monitor_asset(
    monitor: str,
    webdata_conn_id: str = DEFAULT_CONN_ID,
    *,
    only_if_meaningful: bool = False,
    **kwargs: Any,
) -> Asset:
    """Return the asset for a monitor, which is the same in every DAG. Its name is its URI.

    :param monitor: id or name of the monitor. Use the same one everywhere; the lineage of tasks contains the id.
    :param webdata_conn_id: id of a connection of the monitor's team.
    :param only_if_meaningful: return the asset that is updated only with checks that have a new or changed page whose
        change was judged meaningful. The inbox reads this from the deliveries of the pages, so the monitor's webhook
        must send `monitor.page`; a check whose pages were not all delivered counts as meaningful.
    :param kwargs: further arguments of `Asset`, such as `watchers`, `group` and `extra`.
    :raises ArgumentError: `monitor` or `webdata_conn_id` is empty.
    """
    from airflow.sdk import Asset

    uri = monitor_uri(monitor, webdata_conn_id, only_if_meaningful=only_if_meaningful)
    return Asset(name=uri, uri=uri, **kwargs)
