# SPDX-License-Identifier: Apache-2.0
"""Jobs as Airflow assets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.assets.uri import DEFAULT_CONN_ID, job_uri

if TYPE_CHECKING:
    from airflow.sdk import Asset

    from airflow_provider_webdata.common.job_kinds import DeliveredKind


def job_asset(kind: DeliveredKind, webdata_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> Asset:
    """Return the asset that is updated with each completed job of a kind. Its name is its URI.

    The API server registers one event for each job whose completion a webhook reports to the connection's inbox
    (sandbox/docs/service.md#event-job-completed).

    :param kind: `crawl`, `batch_scrape`, or `agent`; or `extract`, for jobs of other clients.
    :param webdata_conn_id: id of the connection whose inbox receives the deliveries.
    :param kwargs: further arguments of `Asset`, such as `group` and `extra`.
    :raises ArgumentError: an unknown kind, or an empty `webdata_conn_id`.
    """
    from airflow.sdk import Asset

    uri = job_uri(kind, webdata_conn_id)
    return Asset(name=uri, uri=uri, **kwargs)
