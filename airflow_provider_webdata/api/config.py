# SPDX-License-Identifier: Apache-2.0
"""Validated settings of a client."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.servers import (
    KINDS,
    PLACEHOLDER_KEY,
    WITHOUT_KEY,
    Kind,
    Server,
    is_hosted_service,
    server_of,
)
from airflow_provider_webdata.common.http_clients import PROXY_RULE, is_proxy
from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.common.tls import ClientCertificate, file_version

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")

_RESERVED_HEADERS = frozenset(
    {"authorization", "content-length", "content-type", "host", "transfer-encoding"}
)


@dataclass(frozen=True)
class ClientConfig:
    """Settings of a client.

    :param base_url: origin of the service, with a path prefix before `/v2` if a proxy adds one. A trailing `/v2`
        is removed.
    :param api_key: the bearer key. See sandbox/docs/service.md#authentication. Empty only for a self-hosted server or a
        gateway, which receives a placeholder.
    :param timeout: seconds for connecting and writing, and the minimum for reading. The read timeout is always longer
        than the service-side `timeout` of the request. Both limit a whole attempt: docs/errors.md.
    :param retry_budget: seconds that one call may spend on retries and the pauses between them; 0 disables
        retries.
    :param max_concurrency: maximum number of concurrent requests; None: the default of the connection pool (100).
    :param max_response_bytes: maximum size of a response in bytes, after decompression.
    :param verify: whether to verify TLS certificates.
    :param ca_file: path of a CA bundle that replaces the default one.
    :param client_cert_file: path of a PEM file with a client certificate, which only the service's host receives.
    :param client_key_file: path of a PEM file with its private key; None: it is in `client_cert_file`.
    :param client_key_password: of the private key.
    :param proxy: URL of an HTTP proxy.
    :param headers: sent with every request.
    :param declared: kind of the server: `hosted`, `gateway`, or `self-hosted`. None: unknown, unless it is the hosted
        service.
    :ivar files: versions of the files with certificates and the key. Settings that were read after a file was renewed
        differ, so that a wait whose call fails builds its client again.
    :raises ConfigurationError: a setting is invalid. The message names the setting, but no secret value.
    """

    base_url: str
    api_key: str = field(repr=False)
    timeout: float = 30.0
    retry_budget: float = 30.0
    max_concurrency: int | None = None
    max_response_bytes: int = 64 * 2**20
    verify: bool = True
    ca_file: str | None = None
    client_cert_file: str | None = None
    client_key_file: str | None = None
    client_key_password: str | None = field(default=None, repr=False)
    proxy: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    declared: Kind | None = None
    files: tuple[object, ...] = field(init=False, repr=False)

    @cached_property
    def server(self) -> Server:
        """What is known about the server."""
        return server_of(self.base_url, self.declared)

    @property
    def certificate(self) -> ClientCertificate | None:
        """The client certificate; None: there is none."""
        if self.client_cert_file is None:
            return None
        return ClientCertificate(self.client_cert_file, self.client_key_file, self.client_key_password)

    @cached_property
    def warned(self) -> set[str]:
        """Warnings about the service that have already been logged."""
        return set()

    @property
    def account(self) -> str:
        """Name of the account that calls are billed to: a digest of base URL and API key, which reveals neither."""
        return hashlib.sha256(f"{self.base_url}\n{self.api_key}".encode()).hexdigest()[:16]

    @property
    def has_api_key(self) -> bool:
        """Whether the connection has an API key."""
        return self.api_key != PLACEHOLDER_KEY

    def __post_init__(self) -> None:
        paths = (self.ca_file, self.client_cert_file, self.client_key_file)
        object.__setattr__(self, "files", tuple(map(file_version, paths)))
        base_url = self.base_url.strip().rstrip("/").removesuffix("/v2").rstrip("/")
        object.__setattr__(self, "base_url", base_url)
        self._check_base_url()
        self._check_declared()
        if not self.api_key and not self.server.requires_key:
            object.__setattr__(self, "api_key", PLACEHOLDER_KEY)
        if not self.api_key:
            raise ConfigurationError(
                f"the API key is empty; enter the service's key, or set server to {WITHOUT_KEY} if it requires none"
            )
        if not _VISIBLE.fullmatch(self.api_key):
            # httpx would include the key in its error message.
            raise ConfigurationError(
                "the API key contains spaces, line breaks, or non-ASCII characters; paste it again"
            )
        numbers: tuple[tuple[str, float, float], ...] = (
            ("timeout", self.timeout, 0.001),
            ("retry_budget", self.retry_budget, 0),
            ("max_response_bytes", self.max_response_bytes, 1),
            ("max_concurrency", 1 if self.max_concurrency is None else self.max_concurrency, 1),
        )
        for name, number, least in numbers:
            if not least <= number < float("inf"):
                raise ConfigurationError(f"{name} must be a number of at least {least} (given: {number!r})")
        for name in ("client_key_file", "client_key_password"):
            if self.client_cert_file is None and getattr(self, name) is not None:
                raise ConfigurationError(
                    f"{name} is set without client_cert_file; set client_cert_file, or clear {name}"
                )
        if self.proxy is not None and not is_proxy(self.proxy):
            # httpx would include parts of a password in its error message.
            raise ConfigurationError(f"proxy {PROXY_RULE}")
        for name, value in self.headers.items():
            if not TOKEN.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
                raise ConfigurationError(f"headers: {name!r} cannot be set as an extra header")
            if not isinstance(value, str) or not HEADER_VALUE.fullmatch(value):
                raise ConfigurationError(f"headers: the value of {name!r} must be one line of ASCII text")

    def _check_declared(self) -> None:
        if self.declared not in (None, *KINDS):
            raise ConfigurationError(f"server must be one of {', '.join(KINDS)} (given: {self.declared!r})")
        if self.declared == "self-hosted" and is_hosted_service(self.base_url):
            raise ConfigurationError(
                "server is 'self-hosted', but the base URL is the hosted service's, which bills; clear server"
            )

    def _check_base_url(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
            good = good and _VISIBLE.fullmatch(self.base_url) is not None
            httpx.URL(self.base_url)
        except (ValueError, httpx.InvalidURL):
            good = False
            parts = urlsplit("")
        if not good or parts.query or parts.fragment or parts.username or parts.password:
            shown = "" if "@" in self.base_url else f" (given: {self.base_url[:200]!r})"
            raise ConfigurationError(
                "the base URL must have the form https://host or https://host:port/path, without credentials, query, "
                f"or fragment{shown}"
            )
