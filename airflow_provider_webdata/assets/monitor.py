"""Monitors as Airflow's assets: `webdata://<connection>/monitors/<id or name>`, one spelling for each.

An id and a name that mean the same monitor are two assets: only the service knows that they are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit
from uuid import UUID

from airflow_provider_webdata.common.coded_errors import ArgumentError

if TYPE_CHECKING:
    from airflow.sdk import Asset

SCHEME = "webdata"
DEFAULT_CONN_ID = "webdata_default"

_FOLDER = "monitors"


def monitor_asset(monitor: str, webdata_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> Asset:
    """Return the asset that stands for a monitor, the same in every DAG: its name is its URI.

    :param monitor: id or name of the monitor. Take the same one everywhere; lineage of tasks names the id.
    :param webdata_conn_id: id of the connection whose team has it.
    :param kwargs: further arguments of `Asset`, such as `watchers`, `group` and `extra`.
    :raises ArgumentError: `monitor` or `webdata_conn_id` is empty.
    """
    from airflow.sdk import Asset

    uri = monitor_uri(monitor, webdata_conn_id)
    return Asset(name=uri, uri=uri, **kwargs)


def monitor_uri(monitor: str, webdata_conn_id: str = DEFAULT_CONN_ID) -> str:
    """Return the URI of a monitor.

    :param monitor: its id or name.
    :param webdata_conn_id: id of the connection whose team has it.
    :raises ArgumentError: one of them is empty.
    """
    if not webdata_conn_id.strip():
        raise ArgumentError("webdata_conn_id must name a connection (given: an empty text)")
    return f"{SCHEME}://{_quoted(webdata_conn_id)}/{_FOLDER}/{_quoted(_one_spelling(monitor))}"


def normalized(parts: SplitResult) -> SplitResult:
    """Return an asset's URI in its one spelling; Airflow calls it for each asset of the scheme `webdata`.

    :raises ArgumentError: it names no monitor.
    """
    folder, _, monitor = parts.path.strip("/").partition("/")
    if folder != _FOLDER or not monitor or "/" in monitor or parts.query:
        raise ArgumentError(
            f"an asset's URI of the scheme {SCHEME} must be {SCHEME}://<connection id>/{_FOLDER}/<id or name of the "
            f"monitor>, each percent-encoded (given: {parts.geturl()!r}); monitor_asset() makes one"
        )
    return urlsplit(monitor_uri(unquote(monitor), unquote(parts.netloc) or DEFAULT_CONN_ID))


def dataset(uri: str) -> tuple[str, str]:
    """Return namespace and name of a monitor, as OpenLineage names datasets.

    :param uri: of the monitor, in its one spelling.
    """
    parts = urlsplit(uri)
    return f"{SCHEME}://{parts.netloc}", parts.path.lstrip("/")


def to_openlineage(asset: Asset, lineage_context: Any) -> Any:  # noqa: ARG001
    """Return the dataset of OpenLineage that an asset is; its provider calls it, where that is installed."""
    from openlineage.client.event_v2 import Dataset

    namespace, name = dataset(str(asset.uri))
    return Dataset(namespace=namespace, name=name)


def _one_spelling(monitor: str) -> str:
    if not monitor.strip():
        raise ArgumentError("monitor must be the id or the name of a monitor (given: an empty text)")
    try:
        return str(UUID(monitor)) if "-" in monitor else monitor.strip()
    except ValueError:
        return monitor.strip()


def _quoted(text: str) -> str:
    return quote(text, safe="")
