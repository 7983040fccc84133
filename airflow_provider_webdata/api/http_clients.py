# SPDX-License-Identifier: Apache-2.0
"""HTTP clients whose proxies and certificates come from the connection or from the environment."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import ConfigurationError, EnvironmentVariableError
from airflow_provider_webdata.common import http_clients, tls
from airflow_provider_webdata.common.tls import CertificateFileError, UnusableVariableError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from airflow_provider_webdata.common.http_library import httpx


def http_client(**options: Any) -> httpx.Client:
    """Return a blocking client.

    :raises EnvironmentVariableError: a variable of the environment is invalid.
    """
    with configured():
        return http_clients.http_client(**options)


def async_http_client(**options: Any) -> httpx.AsyncClient:
    """Return a non-blocking client.

    :raises EnvironmentVariableError: a variable of the environment is invalid.
    """
    with configured():
        return http_clients.async_http_client(**options)


def tls_context(**options: Any) -> ssl.SSLContext:
    """Return a TLS context; see `tls.tls_context`.

    :raises EnvironmentVariableError: a variable of the environment is invalid.
    :raises ConfigurationError: a file of the connection cannot be loaded.
    """
    with configured():
        return tls.tls_context(**options)


def context_for(url: str, **options: Any) -> ssl.SSLContext:
    """Return the TLS context of a client for one host; see `http_clients.context_for`.

    :raises EnvironmentVariableError: a variable of the environment is invalid.
    :raises ConfigurationError: a file of the connection cannot be loaded.
    """
    with configured():
        return http_clients.context_for(url, **options)


@contextmanager
def configured() -> Iterator[None]:
    """Translate the errors of clients that are built in this block, as `http_client` does."""
    try:
        yield
    except UnusableVariableError as error:
        raise EnvironmentVariableError(str(error)) from None
    except CertificateFileError as error:
        raise ConfigurationError(str(error)) from None
