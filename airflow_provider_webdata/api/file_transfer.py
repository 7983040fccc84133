"""A file on its way to the storage that the service names: to another host, without the key, then parsed by reference.

See docs/service.md#parse-by-reference.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from airflow_provider_webdata.api.errors import (
    InvalidResponseError,
    UploadError,
    UploadTooLargeError,
    trimmed,
)
from airflow_provider_webdata.api.exchange import route_options
from airflow_provider_webdata.api.multipart import MultipartBody

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from airflow_provider_webdata.api.config import ClientConfig
    from airflow_provider_webdata.api.models import ParseUpload
    from airflow_provider_webdata.api.multipart import Upload

_OPERATION = "file upload"
_ANSWER_SECONDS = 60.0
_METHODS = ("PUT", "POST")


class FileTransfer:
    """One file, and where the service wants it.

    The address and the form's fields are as good as a key: they stand in no message.

    :param config: how hosts are reached.
    :param target: the service's answer.
    :param upload: the file; its size must be known.
    :raises InvalidResponseError: nothing can be sent there.
    :raises UploadTooLargeError: the file is larger than the service takes.
    """

    def __init__(self, config: ClientConfig, target: ParseUpload, upload: Upload) -> None:
        parts, base = urlsplit(target.upload_url), urlsplit(config.base_url)
        self._host = parts.hostname or ""
        # Plain http is for a service that is reached so itself.
        if not self._host or parts.scheme not in {"https", base.scheme}:
            raise InvalidResponseError(_OPERATION, "it names no https address for the file", status=200)
        self._method = (target.method or "PUT").upper()
        if self._method not in _METHODS:
            raise InvalidResponseError(_OPERATION, f"it wants the method {self._method!r}", status=200)
        if target.max_size_bytes is not None and (upload.size or 0) > target.max_size_bytes:
            raise UploadTooLargeError(
                _OPERATION,
                f"the service takes at most {target.max_size_bytes} bytes ({upload.name} has {upload.size})",
            )
        self._config = config
        self._url = target.upload_url
        self._upload = upload
        # A form's file comes last, after the fields that its signature covers.
        self._form = MultipartBody(upload, target.form_fields or {}) if self._method == "POST" else None
        self._headers = {**(target.headers or {})}
        if self._form is not None:
            self._headers.update(self._form.headers)
        else:
            self._headers["content-length"] = str(upload.size)

    def send(self) -> None:
        """Send the file.

        :raises UploadError: the storage did not take it, or the file is not what it was said to be.
        """
        content = self._form.chunks() if self._form else self._upload.blocks()
        with self._failures(), httpx.Client(**self._options()) as client:
            self._check(client.request(self._method, self._url, headers=self._headers, content=content))

    async def asend(self) -> None:
        """Send the file without blocking; see `send`."""
        content: AsyncIterator[bytes] = self._form.achunks() if self._form else self._upload.ablocks()
        with self._failures():
            async with httpx.AsyncClient(**self._options()) as client:
                self._check(
                    await client.request(self._method, self._url, headers=self._headers, content=content)
                )

    def _options(self) -> dict[str, Any]:
        seconds = self._config.timeout
        timeout = httpx.Timeout(seconds, read=max(seconds, _ANSWER_SECONDS))
        return {**route_options(self._config), "timeout": timeout, "follow_redirects": False}

    def _check(self, response: httpx.Response) -> None:
        if not response.is_success:
            raise UploadError(_OPERATION, f"{self._host} answered HTTP {response.status_code}")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            reason = trimmed(str(error), 200) or type(error).__name__
            raise UploadError(_OPERATION, f"{self._host}: {reason}") from None
