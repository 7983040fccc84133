# SPDX-License-Identifier: Apache-2.0
"""Normalized asset URIs: `webdata://<connection>/monitors/<id or name>` and `.../jobs/<kind>`.

A monitor's URI may end with `/meaningful`: the asset is updated only with meaningful checks. The id and the name of one
monitor are two different assets, because only the service can resolve the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit
from uuid import UUID

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.job_kinds import checked_delivered_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Asset

SCHEME = "webdata"
_MEANINGFUL = "/meaningful"
DEFAULT_CONN_ID = "webdata_default"


def monitor_uri(
    monitor: str, webdata_conn_id: str = DEFAULT_CONN_ID, *, only_if_meaningful: bool = False
) -> str:
    """Return the URI of a monitor.

    :param monitor: id or name of the monitor.
    :param webdata_conn_id: id of a connection of the monitor's team.
    :param only_if_meaningful: return the URI of the monitor's meaningful checks.
    :raises ArgumentError: an argument is empty.
    """
    return _uri(webdata_conn_id, "monitors", _one_spelling(monitor)) + _MEANINGFUL * only_if_meaningful


def is_meaningful_uri(uri: str) -> bool:
    """Return whether a normalized URI is that of a monitor's meaningful checks."""
    # A monitor's name is one segment, so the path of the monitor itself has two.
    return uri.endswith(_MEANINGFUL) and urlsplit(uri).path.count("/") > 2


def job_uri(kind: str, webdata_conn_id: str = DEFAULT_CONN_ID) -> str:
    """Return the URI of the jobs of a kind.

    :param kind: `crawl`, `batch_scrape`, `agent`, or `extract`.
    :param webdata_conn_id: id of the connection whose inbox receives the deliveries.
    :raises ArgumentError: `kind` is unknown, or `webdata_conn_id` is empty.
    """
    return _uri(webdata_conn_id, "jobs", checked_delivered_kind(kind))


_URIS: dict[str, Callable[[str, str], str]] = {"monitors": monitor_uri, "jobs": job_uri}


def normalized(parts: SplitResult) -> SplitResult:
    """Return the normalized URI of an asset. Airflow calls this for each asset with the scheme `webdata`.

    :raises ArgumentError: the URI names neither a monitor nor a job kind.
    """
    path = parts.path.strip("/")
    only_if_meaningful = path.startswith("monitors/") and path.count("/") > 1 and path.endswith(_MEANINGFUL)
    folder, _, name = path.removesuffix(_MEANINGFUL if only_if_meaningful else "").partition("/")
    if folder not in _URIS or not name or "/" in name or parts.query:
        raise ArgumentError(
            f"an asset URI with the scheme {SCHEME} must be {SCHEME}://<connection id>/monitors/<id or name of the "
            f"monitor>[{_MEANINGFUL}] or {SCHEME}://<connection id>/jobs/<kind>, each percent-encoded (given: "
            f"{parts.geturl()!r}); build it with monitor_asset() or job_asset()"
        )
    uri = _URIS[folder](unquote(name), unquote(parts.netloc) or DEFAULT_CONN_ID)
    return urlsplit(uri + _MEANINGFUL * only_if_meaningful)


def dataset(uri: str) -> tuple[str, str]:
    """Return the namespace and name of an asset's OpenLineage dataset.

    :param uri: the asset's normalized URI.
    """
    parts = urlsplit(uri)
    return f"{SCHEME}://{parts.netloc}", parts.path.lstrip("/")


def to_openlineage(asset: Asset, lineage_context: Any) -> Any:  # noqa: ARG001
    """Return the OpenLineage dataset of an asset. The OpenLineage provider calls this if it is installed."""
    from openlineage.client.event_v2 import Dataset

    namespace, name = dataset(str(asset.uri))
    return Dataset(namespace=namespace, name=name)


def _uri(webdata_conn_id: str, folder: str, name: str) -> str:
    if not webdata_conn_id.strip():
        raise ArgumentError("webdata_conn_id must be the id of a connection (given: an empty string)")
    return f"{SCHEME}://{quote(webdata_conn_id, safe='')}/{folder}/{quote(name, safe='')}"


def _one_spelling(monitor: str) -> str:
    if not monitor.strip():
        raise ArgumentError("monitor must be the id or the name of a monitor (given: an empty string)")
    try:
        return str(UUID(monitor)) if "-" in monitor else monitor.strip()
    except ValueError:
        return monitor.strip()
