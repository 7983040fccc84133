"""HTTP clients whose proxies come from the connection or from the environment."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.common import http_clients
from airflow_provider_webdata.common.http_clients import UnreadableProxyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.common.http_library import httpx


def http_client(**options: Any) -> httpx.Client:
    """Return a blocking client.

    :raises ConfigurationError: a proxy in the environment is invalid.
    """
    with _configured():
        return http_clients.http_client(**options)


def async_http_client(**options: Any) -> httpx.AsyncClient:
    """Return a non-blocking client.

    :raises ConfigurationError: a proxy in the environment is invalid.
    """
    with _configured():
        return http_clients.async_http_client(**options)


@contextmanager
def _configured() -> Iterator[None]:
    try:
        yield
    except UnreadableProxyError as error:
        raise ConfigurationError(str(error)) from None
