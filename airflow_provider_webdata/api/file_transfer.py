# SPDX-License-Identifier: Apache-2.0
"""Upload of a file to the storage that the service specifies, on another host and without the API key.

See sandbox/docs/service.md#parse-by-reference.
"""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anyio.to_thread import run_sync

from airflow_provider_webdata.api.config import HEADER_VALUE, TOKEN
from airflow_provider_webdata.api.errors import (
    InvalidResponseError,
    UploadError,
    UploadTooLargeError,
)
from airflow_provider_webdata.api.exchange import allowed_for, route_options
from airflow_provider_webdata.api.http_clients import async_http_client, http_client
from airflow_provider_webdata.api.multipart import MultipartBody
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.deadline import AsyncDeadline, Deadline
from airflow_provider_webdata.common.hosts import (
    HostRefusedError,
    addresses_for,
    normal_host,
    url_host,
)
from airflow_provider_webdata.common.http_clients import goes_through_proxy
from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.common.surrogates import is_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.api.config import ClientConfig
    from airflow_provider_webdata.api.models import ParseUpload
    from airflow_provider_webdata.api.multipart import Upload

_OPERATION = "file upload"
_ANSWER_SECONDS = 60.0
_FRAMING = frozenset({"connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
_OURS = frozenset({"content-length", "host"})


class FileTransfer:
    """Upload of one file to a target: a URL, a method, and headers, all validated.

    The URL and the form's fields are secrets, and do not appear in messages. Only the status of the storage's response
    is read, not its body.

    :param upload: the file; its size must be known.
    :raises InvalidResponseError: the target is unusable.
    :raises UploadTooLargeError: the file is larger than the service accepts.
    """

    def __init__(self, config: ClientConfig, target: ParseUpload, upload: Upload) -> None:
        self._config = config
        self._upload = upload
        self._url = self._checked_url(target.upload_url)
        self._host = self._url.host
        self._method = (target.method or "PUT").upper()
        if self._method not in ("PUT", "POST"):
            raise _unusable(f"it requires the unsupported method {trimmed(self._method, 50)!r}")
        if target.max_size_bytes is not None and (upload.size or 0) > target.max_size_bytes:
            raise UploadTooLargeError(
                _OPERATION,
                f"the service accepts at most {target.max_size_bytes} bytes ({upload.name} has {upload.size})",
            )
        # The file must be the last part of the form, after the signed fields.
        self._form = (
            MultipartBody(upload, _checked_fields(target.form_fields or {}))
            if self._method == "POST"
            else None
        )
        self._headers = _checked_headers(target.headers or {})
        self._headers.update(self._form.headers if self._form else {"content-length": str(upload.size)})

    def send(self) -> None:
        """Send the file.

        :raises InvalidResponseError: the storage is neither a public host nor the service's own.
        :raises UploadError: the storage rejected the file, or the file's size or type is wrong.
        """
        deadline = Deadline(self._seconds)
        with (
            self._failures(),
            http_client(**self._options()) as client,
            deadline,
        ):
            for address in (addresses := self._addresses()):
                content = self._form.chunks() if self._form else self._upload.blocks()
                try:
                    with client.stream(**self._request(address), content=content) as response:
                        self._check(response)
                        return
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    if address is addresses[-1]:
                        raise

    async def asend(self) -> None:
        """Send the file without blocking; see `send`."""
        with self._failures():
            deadline = AsyncDeadline(self._seconds)
            async with async_http_client(**self._options()) as client, deadline:
                for address in (addresses := await run_sync(self._addresses)):
                    content = self._form.achunks() if self._form else self._upload.ablocks()
                    send = partial(client.stream, **self._request(address))
                    try:
                        async with send(content=allowed_for(content, deadline)) as response:
                            self._check(response)
                            return
                    except (httpx.ConnectError, httpx.ConnectTimeout):
                        if address is addresses[-1]:
                            raise

    @property
    def _seconds(self) -> float:
        return self._config.timeout + max(self._config.timeout, _ANSWER_SECONDS)

    def _checked_url(self, address: str) -> httpx.URL:
        base = urlsplit(self._config.base_url)
        host = url_host(address)
        try:
            url = httpx.URL(address)
            agreed = host is not None and normal_host(url.host) == host
        except (ValueError, httpx.InvalidURL):
            agreed = False
        # Plain http is allowed only if the service itself uses it.
        if not agreed or url.scheme not in {"https", base.scheme}:
            raise _unusable("it contains no valid https URL for the file")
        return url

    @property
    def _is_of_service(self) -> bool:
        return normal_host(self._host) == url_host(self._config.base_url)

    @property
    def _is_proxied(self) -> bool:
        return goes_through_proxy(self._url, self._config.proxy)

    def _addresses(self) -> list[str | None]:
        """Return the IP addresses to connect to; None means the host name."""
        if self._is_of_service:
            return [None]
        try:
            found = addresses_for(self._url, ())
        except HostRefusedError as error:
            raise _unusable(
                f"its storage {error}, nor the service's own host; upload the file as a form, or configure the "
                "service to store files elsewhere"
            ) from None
        except OSError as error:
            # The proxy may be able to resolve the name.
            if not self._is_proxied:
                raise UploadError(_OPERATION, f"{self._host}: {plain_reason(error)}") from None
            found = []
        return [None] if self._is_proxied else [*found]

    def _request(self, address: str | None) -> dict[str, Any]:
        url, headers = self._url, {**self._headers}
        extensions: dict[str, Any] = {}
        if address is not None:
            # The Host header and the certificate check still use the name.
            url = url.copy_with(host=address)
            headers["host"] = self._url.netloc.decode("ascii")
            extensions["sni_hostname"] = self._url.raw_host.decode("ascii")
        return {"method": self._method, "url": url, "headers": headers, "extensions": extensions}

    def _options(self) -> dict[str, Any]:
        seconds = self._config.timeout
        timeout = httpx.Timeout(seconds, read=max(seconds, _ANSWER_SECONDS))
        return {
            **route_options(self._config, str(self._url), is_service=self._is_of_service),
            "timeout": timeout,
            "follow_redirects": False,
            "is_direct": not self._is_of_service and not self._is_proxied,
        }

    def _check(self, response: httpx.Response) -> None:
        if not response.is_success:
            raise UploadError(_OPERATION, f"{self._host} returned HTTP {response.status_code}")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        # On an asynchronous connection, anyio lets a TLS alert through.
        except (httpx.HTTPError, ssl.SSLError) as error:
            raise UploadError(_OPERATION, f"{self._host}: {plain_reason(error)}") from None


def _checked_headers(given: dict[str, str]) -> dict[str, str]:
    headers = {}
    for name, value in given.items():
        if not TOKEN.fullmatch(name) or not HEADER_VALUE.fullmatch(value) or name.lower() in _FRAMING:
            raise _unusable(f"it requires a header that cannot be sent ({trimmed(repr(name), 50)})")
        if name.lower() not in _OURS:
            headers[name.lower()] = value
    return headers


def _checked_fields(given: dict[str, str]) -> dict[str, str]:
    for name, value in given.items():
        if '"' in name or not name.isprintable() or not is_utf8(value):
            raise _unusable(f"it requires a form field that cannot be sent ({trimmed(repr(name), 50)})")
    return given


def _unusable(reason: str) -> InvalidResponseError:
    return InvalidResponseError(_OPERATION, reason, status=200)
